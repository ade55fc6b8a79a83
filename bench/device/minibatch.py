# about: a minibatch without replacement sorts as many random numbers as there are rows
# cause: kernel far below
# expect: whole_sort | slow_kernel
# run: step
# mended: step_shifted
# differs: other random numbers
import jax
import jax.numpy as jnp


def descend(w, x, y):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)


@jax.jit
def step(w, key, x, y):
    rows = jax.random.choice(key, x.shape[0], (256,), replace=False)  # <- cause
    return descend(w, x[rows], y[rows])


def step_inputs(random):
    x = random.standard_normal((150_000, 32), dtype="float32")
    return jnp.zeros(32), jax.random.key(7), x, jnp.sin(x[:, 0])


@jax.jit
def step_shifted(w, key, x, y):
    rows = jax.random.randint(key, (256,), 0, x.shape[0])
    return descend(w, x[rows], y[rows])


step_shifted_inputs = step_inputs
