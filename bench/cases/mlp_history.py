# about: the loss of every step is fetched with float(), so that no step is dispatched before the last has ended
# verdict: device-bound | host-bound | dispatch-bound
# expect: host_sync
# forbid: op_by_op_loop, many_tiny_jits, data_waits, arrays_grow, repeated_fetch
# lines: host_sync@cause
# mended: mlp_history_every_hundred
import sys

import jax
import jax.numpy as jnp


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [0.05 * jax.random.normal(k, (m, n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def predict(params, x):
    for w in params[:-1]:
        x = jnp.tanh(x @ w)
    return x @ params[-1]


@jax.jit
def train_step(params, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
    return [p - 0.01 * g for p, g in zip(params, grads)], loss


def main():
    steps = int(400 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    x = jax.random.normal(jax.random.key(1), (256, 256))
    y = jnp.sin(x[:, :1])
    params = init(jax.random.key(0), [256, 256, 256, 1])
    history = []
    for _ in range(steps):
        params, loss = train_step(params, x, y)
        history.append(float(loss))  # <- cause
    print(len(history), history[-1])


if __name__ == "__main__":
    main()
