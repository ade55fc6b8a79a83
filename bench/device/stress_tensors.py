# about: eigenvalues of a hundred thousand 2 x 2 matrices by a library
# cause: slow batched form
# expect: small_decompositions
# run: principal
# mended: principal_closed
from jax import numpy as jnp
from jax import vmap


def principal(stress):
    return vmap(jnp.linalg.eigvalsh)(stress)  # <- cause


def principal_inputs(random):
    s = random.standard_normal((100_000, 2, 2), dtype="float32")
    return s + s.swapaxes(1, 2)


def principal_closed(stress):
    middle = (stress[:, 0, 0] + stress[:, 1, 1]) / 2
    radius = jnp.hypot((stress[:, 0, 0] - stress[:, 1, 1]) / 2, (stress[:, 0, 1] + stress[:, 1, 0]) / 2)
    return jnp.stack([middle - radius, middle + radius], 1)


principal_closed_inputs = principal_inputs
