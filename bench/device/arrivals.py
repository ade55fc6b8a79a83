# about: Poisson numbers by rejection, all of one small rate, whose table has a few entries
# cause: random bits
# expect: rejection_sampling
# run: served
# mended: served_by_table
# differs: other random numbers
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp

RATE = 12.0


def queue(arriving):
    def minute(waiting, new):
        waiting = jnp.maximum(waiting + new - 13, 0)
        return waiting, waiting

    return jax.lax.scan(minute, jnp.zeros(arriving.shape[1]), arriving)[1].mean(0)


@jax.jit
def served(key):
    return queue(jax.random.poisson(key, RATE, (120, 2000)))  # <- cause


def served_inputs():
    return jax.random.key(11)


@jax.jit
def served_by_table(key):
    counts = jnp.arange(40)
    table = jax.scipy.stats.poisson.cdf(counts, RATE)
    return queue(jnp.searchsorted(table, jax.random.uniform(key, (120, 2000))).astype(int))


served_by_table_inputs = served_inputs
