# about: all scores are sorted for the ten best
# cause: kernel far below
# expect: whole_sort | slow_kernel
# run: best
# mended: best_by_top_k
import jax
import jax.numpy as jnp


def best(queries, answers):
    scores = queries @ answers.T
    order = jnp.argsort(scores, axis=-1)[:, ::-1]  # <- cause
    return order[:, :10], jnp.take_along_axis(scores, order[:, :10], -1)


def best_inputs(random):
    return random.standard_normal((32, 32), dtype="float32"), random.standard_normal((20_000, 32), dtype="float32")


def best_by_top_k(queries, answers):
    scores, order = jax.lax.top_k(queries @ answers.T, 10)
    return order, scores


best_by_top_k_inputs = best_inputs
