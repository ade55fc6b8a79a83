# about: nothing; NUTS of numpyro, whose loop is compiled, so that a short run is bound by its compilations
# verdict: - | device-bound | compile-bound
# forbid: *
# allow: many_tiny_jits
# advice-not: (?i)put jax.jit around the function that calls them
# needs: numpyro
import sys

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(x @ slope, noise), obs=y)


draws = int(200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
x = jax.random.normal(jax.random.key(0), (2000, 5))
mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=draws, progress_bar=False)
mcmc.run(jax.random.key(1), x, x.sum(1))
print(mcmc.get_samples()["slope"].mean(0))
