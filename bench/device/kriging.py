# about: predictions of a Gaussian process with the inverse of its covariance
# cause: an inverse in place of a solution
# expect: inverse_product
# allow: unvectorised
# run: predict
# mended: predict_by_solving
# targets: h100
import jax.numpy as jnp


def predict(known, values, wanted):
    def covariance(a, b):
        return jnp.exp(-((a[:, None] - b) ** 2).sum(-1))

    precision = jnp.linalg.inv(covariance(known, known) + 0.1 * jnp.eye(len(known)))  # <- cause
    return covariance(wanted, known) @ (precision @ values)


def predict_inputs(random):
    known, wanted = (random.standard_normal((size, 3), dtype="float32") for size in (1000, 64))
    return known, random.standard_normal((1000, 4), dtype="float32"), wanted


def predict_by_solving(known, values, wanted):
    def covariance(a, b):
        return jnp.exp(-((a[:, None] - b) ** 2).sum(-1))

    weights = jnp.linalg.solve(covariance(known, known) + 0.1 * jnp.eye(len(known)), values)
    return covariance(wanted, known) @ weights


predict_by_solving_inputs = predict_inputs
