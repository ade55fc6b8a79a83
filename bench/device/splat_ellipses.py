# about: sixty thousand 3 x 3 matrices are inverted one by one by a library
# cause: slow batched form
# expect: small_decompositions
# run: distances
# mended: distances_by_cofactors
import jax.numpy as jnp


def distances(points, covariances):
    precision = jnp.linalg.inv(covariances)  # <- cause
    return jnp.einsum("ni,nij,nj->n", points, precision, points)


def distances_inputs(random, n=60_000):
    roots = random.standard_normal((n, 3, 3), dtype="float32")
    return random.standard_normal((n, 3), dtype="float32"), roots @ roots.swapaxes(1, 2) + jnp.eye(3)


def distances_by_cofactors(points, covariances):
    a, b, c = covariances[:, 0], covariances[:, 1], covariances[:, 2]
    columns = jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)
    inverse = jnp.stack(columns, -1) / jnp.sum(a * columns[0], -1)[:, None, None]
    return jnp.einsum("ni,nij,nj->n", points, inverse, points)


distances_by_cofactors_inputs = distances_inputs
