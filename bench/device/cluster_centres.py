# about: the sums of each cluster as a product with the one-hot matrix of its members
# cause: slow batched form
# expect: one_hot_product
# run: centres
# mended: centres_by_segment
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp


def centres(points, labels, *, k=2048):
    members = (labels[:, None] == jnp.arange(k)).astype(points.dtype)  # <- cause
    sums = members.T @ points  # <- cause
    return sums / jnp.maximum(members.sum(0), 1)[:, None]


def centres_inputs(random):
    return random.standard_normal((8192, 64), dtype="float32"), random.integers(0, 2048, 8192, dtype="int32")


def centres_by_segment(points, labels, *, k=2048):
    sums = jax.ops.segment_sum(points, labels, k)
    counts = jnp.bincount(labels, length=k)
    return sums / jnp.maximum(counts, 1)[:, None]


centres_by_segment_inputs = centres_inputs
