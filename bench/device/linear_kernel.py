# about: predictions with a linear kernel, whose square matrix of all pairs is made first
# cause: products in the costlier order
# expect: product_order
# run: predictions
# mended: predictions_by_features
# targets: h100, tpu-v5e
import jax.numpy as jnp


def predictions(known, wanted, weights):
    similar = wanted @ known.T  # <- cause
    return jnp.tanh(similar @ weights)  # <- cause


def predictions_inputs(random):
    known, wanted = (random.standard_normal((4000, 64), dtype="float32") for _ in range(2))
    return known, wanted, random.standard_normal((4000, 8), dtype="float32")


def predictions_by_features(known, wanted, weights):
    return jnp.tanh(wanted @ (known.T @ weights))


predictions_by_features_inputs = predictions_inputs
