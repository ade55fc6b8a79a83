# about: the rain that has fallen until each day, at many stations
# cause: a cumulative sum along the first axis
# expect: cumulative_sum
# run: fallen
# mended: fallen_by_day
import jax
import jax.numpy as jnp


def fallen(rain, soaked):
    return jnp.cumsum(rain * (1 - soaked), axis=0)  # <- cause


def fallen_inputs(random):
    return random.random((365, 4000), dtype="float32"), random.random(4000, dtype="float32")


def fallen_by_day(rain, soaked):
    def day(total, each):
        total = total + each
        return total, total

    return jax.lax.scan(day, jnp.zeros_like(soaked), rain * (1 - soaked))[1]


fallen_by_day_inputs = fallen_inputs
