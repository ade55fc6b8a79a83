# about: the rate is an array; a user's filter_jit function is no operation outside jit
# verdict: device-bound
# forbid: *
# needs: equinox
import sys

import equinox as eqx
import jax
import jax.numpy as jnp


@eqx.filter_jit
def make_step(model, x, y, rate):
    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    grads = eqx.filter_grad(loss)(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -rate * g, grads)), 0.97 * rate


def main():
    steps = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    model = eqx.nn.MLP(4, 1, 256, 2, key=jax.random.key(0))
    x = jnp.linspace(0.0, 1.0, 4096 * 4).reshape(4096, 4)
    y = x.sum(1, keepdims=True)
    rate = jnp.float32(0.01)
    for _ in range(steps):
        model, rate = make_step(model, x, y, rate)
    print(rate)


main()
