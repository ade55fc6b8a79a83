# about: nothing; large steps keep the device busy, the loss is printed after each tenth
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def block(x, p):
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    weights = jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 16.0)
    x = x + weights @ v
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


@jax.jit
def update(params, x):
    def loss(params):
        y = x
        for p in params:
            y = block(y, p)
        return jnp.mean(y**2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), value


@jax.jit
def init(key, width=256, depth=2):
    shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "up": (width, 1024), "down": (1024, width)}
    params = []
    for layer in range(depth):
        keys = jax.random.split(jax.random.fold_in(key, layer), len(shapes))
        params.append({n: 0.02 * jax.random.normal(k, s) for k, (n, s) in zip(keys, shapes.items())})
    return params


def main():
    params = init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (4, 128, 256))
    for step in range(int(20 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        params, value = update(params, x)
        if step % 10 == 9:
            print(f"{step} {value:.4f}")


main()
