# about: a cumulative sum of a long vector
# cause: kernel far below
# expect: slow_kernel
# run: integral
# mended: integral_by_rows
import jax.numpy as jnp


def integral(rate, dt):
    return jnp.cumsum(rate * dt)  # <- cause


def integral_inputs(random):
    return random.random(1 << 21, dtype="float32"), jnp.float32(1e-4)


def integral_by_rows(rate, dt):
    rows = (rate * dt).reshape(-1, 1024)
    total = jnp.zeros(rows.shape[0])
    columns = []
    for n in range(0, 1024, 128):
        inside = rows[:, n : n + 128] @ jnp.triu(jnp.ones((128, 128))) + total[:, None]
        columns.append(inside)
        total = inside[:, -1]
    before = jnp.cumsum(total) - total
    return (jnp.concatenate(columns, 1) + before[:, None]).reshape(-1)


integral_by_rows_inputs = integral_inputs
