"""A numpyro model, sampled with NUTS; ends with an error of the user's own after that."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(slope * x, 0.1), obs=y)


def main():
    x = np.linspace(0.0, 1.0, 20)
    sampler = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0), x, 2.0 * x)
    mean = float(sampler.get_samples()["slope"].mean())
    print(f"{mean:.0f}")
    raise SystemExit("not converged")


main()
