# about: a cumulative logsumexp adds up all earlier elements for each element
# cause: kernel far below
# expect: slow_kernel
# run: log_risk
# mended: log_risk_scan
import jax
import jax.numpy as jnp


def log_risk(scores):
    """Cox's log partial likelihood, for each column of scores in order of time."""
    at_risk = jax.lax.cumlogsumexp(scores, axis=0, reverse=True)  # <- cause
    return jnp.sum(scores - at_risk, 0)


def log_risk_inputs(random):
    return random.standard_normal((1000, 256), dtype="float32")


def log_risk_scan(scores):
    def add(total, row):
        total = jnp.logaddexp(total, row)
        return total, total

    _, at_risk = jax.lax.scan(add, jnp.full(scores.shape[1], -jnp.inf), scores, reverse=True)
    return jnp.sum(scores - at_risk, 0)


log_risk_scan_inputs = log_risk_inputs
