# about: the same network; the losses stay arrays, and are fetched together after each hundred steps
# verdict: device-bound
# forbid: *
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
    history, pending = [], []
    for step in range(steps):
        params, loss = train_step(params, x, y)
        pending.append(loss)
        if step % 100 == 99:
            history += [float(value) for value in jax.device_get(pending)]
            pending.clear()
    print(len(history), history[-1])


if __name__ == "__main__":
    main()
