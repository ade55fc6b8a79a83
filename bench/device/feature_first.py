# about: the targets lie features first, and are read against the grain in one loop with the predictions
# cause: kernel far below
# expect: slow_kernel
# run: error
# mended: error_rows
import jax.numpy as jnp


def error(predicted, targets):
    """Huber loss; the targets come as (features, examples), as the file has them."""
    off = jnp.abs(predicted - targets.T)  # <- cause
    return jnp.mean(jnp.where(off < 1, 0.5 * off * off, off - 0.5))  # <- cause


def error_inputs(random):
    return tuple(random.standard_normal((2, 2048, 2048), dtype="float32"))


def error_rows(predicted, targets):
    off = jnp.abs(predicted - targets)
    return jnp.mean(jnp.where(off < 1, 0.5 * off * off, off - 0.5))


def error_rows_inputs(random):
    predicted, targets = error_inputs(random)
    return predicted, jnp.array(targets.T)
