# about: nothing; stochastic variational inference with a jitted update in a Python loop
# verdict: device-bound | -
# forbid: *
# allow: many_tiny_jits
# advice-not: (?i)put jax.jit around the function that calls them
# needs: numpyro
import sys

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(jnp.sin(x) @ slope, 0.5), obs=y)


def main():
    steps = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    x = jax.random.normal(jax.random.key(0), (60_000, 16))
    y = x.sum(1)
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    state = svi.init(jax.random.key(1), x, y)
    update = jax.jit(svi.update)
    for _ in range(steps):
        state, loss = update(state, x, y)
    print(loss)


main()
