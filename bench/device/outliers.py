# about: the distance of each point from a distribution, on the diagonal of the matrix of all pairs
# cause: all of a product for its diagonal
# expect: diagonal_product
# run: distances
# mended: distances_by_rows
# targets: h100, tpu-v5e
import jax.numpy as jnp


def distances(points, mean, precision):
    away = points - mean
    return jnp.sqrt(jnp.diag(away @ precision @ away.T))  # <- cause


def distances_inputs(random):
    mixed = random.standard_normal((32, 64), dtype="float32")
    return random.standard_normal((4000, 32), dtype="float32"), random.random(32, dtype="float32"), mixed @ mixed.T


def distances_by_rows(points, mean, precision):
    away = points - mean
    return jnp.sqrt(((away @ precision) * away).sum(1))


distances_by_rows_inputs = distances_inputs
