# about: the loop hands its newest array on as the old one, so whole arrays are copied in each iteration
# cause: copies
# expect: copy_traffic | whole_carry
# run: series
# mended: series_by_two
import jax
import jax.numpy as jnp


def series(x):
    """The Chebyshev polynomial of degree 201 at each x, by its recurrence."""

    def body(_, pair):
        newer, older = pair
        return 2 * x * newer - older, newer  # <- cause

    return jax.lax.fori_loop(0, 200, body, (x, jnp.ones_like(x)))[0]  # <- cause


def series_inputs(random):
    return 2 * random.random(1 << 20, dtype="float32") - 1


def series_by_two(x):
    def body(_, pair):
        newer, older = pair
        older = 2 * x * newer - older
        return 2 * x * older - newer, older

    return jax.lax.fori_loop(0, 100, body, (x, jnp.ones_like(x)))[0]


series_by_two_inputs = series_inputs
