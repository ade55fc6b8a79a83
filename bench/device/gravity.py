# about: accelerations towards a centre, by a power
# cause: a power with half a number for its exponent
# expect: unvectorised
# run: towards
# mended: towards_by_roots
import jax.numpy as jnp


def towards(x, y, z):
    scale = -((x * x + y * y + z * z + 1e-3) ** -1.5)  # <- cause
    return jnp.stack([scale * x, scale * y, scale * z])


def towards_inputs(random):
    return tuple(random.standard_normal((3, 500_000), dtype="float32"))


def towards_by_roots(x, y, z):
    squared = x * x + y * y + z * z + 1e-3
    scale = -1 / (squared * jnp.sqrt(squared))
    return jnp.stack([scale * x, scale * y, scale * z])


towards_by_roots_inputs = towards_inputs
