# about: nothing: NUTS of numpyro, whose whole loop is compiled
# how: script
# expect: -
# allow: cache_off, many_tiny_jits
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def schools(effect, error):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, error), obs=effect)


effect = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
error = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
mcmc = MCMC(NUTS(schools), num_warmup=500, num_samples=3000, progress_bar=False)
mcmc.run(jax.random.key(0), effect, error)
print(mcmc.get_samples()["mu"].mean())
