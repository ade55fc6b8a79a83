# about: nothing; numpyro
# needs: numpyro
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density


def slopes(x, y=None):
    b = numpyro.sample("b", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ b, scale), obs=y)


def data(random, rows=20_000, columns=32):
    x = random.standard_normal((rows, columns), dtype="float32")
    return x, x.sum(1) + random.standard_normal(rows, dtype="float32")


INFERENCE = SVI(slopes, AutoNormal(slopes), numpyro.optim.Adam(0.01), Trace_ELBO())


@jax.jit
def variational(state, x, y):
    return INFERENCE.update(state, x, y)


def variational_inputs(random):
    x, y = data(random)
    return INFERENCE.init(jax.random.key(0), x, y), x, y


HAMILTONIAN = HMC(slopes, step_size=1e-3, num_steps=10, adapt_step_size=False)


@jax.jit
def hamiltonian(state, x, y):
    return HAMILTONIAN.sample(state, (x, y), {})


def hamiltonian_inputs(random):
    x, y = data(random)
    return HAMILTONIAN.init(jax.random.key(1), 0, None, (x, y)), x, y


@jax.jit
def evidence(draws, x, y):
    return jax.vmap(lambda d: log_density(slopes, (x, y), {}, d)[0])(draws)


def evidence_inputs(random):
    draws = {"b": random.standard_normal((64, 32), dtype="float32"), "scale": jnp.ones(64)}
    return draws, *data(random)


def intercepts(group, y=None):
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 50):
        a = numpyro.sample("a", dist.Normal(0, spread))
    with numpyro.plate("rows", group.size):
        numpyro.sample("y", dist.Bernoulli(logits=a[group]), obs=y)


@jax.jit
def hierarchical_gradient(values, group, y):
    return jax.grad(lambda v: log_density(intercepts, (group, y), {}, v)[0])(values)


def hierarchical_gradient_inputs(random):
    values = {"spread": jnp.float32(0.7), "a": random.standard_normal(50, dtype="float32")}
    return values, random.integers(0, 50, 2000, dtype="int32"), random.integers(0, 2, 2000, dtype="int32")


@jax.jit
def replicated(key, draws, x):
    return Predictive(slopes, draws)(key, x)["y"].mean(0)


def replicated_inputs(random):
    draws = {"b": random.standard_normal((20, 256), dtype="float32"), "scale": jnp.ones(20)}
    return jax.random.key(2), draws, random.standard_normal((2000, 256), dtype="float32")
