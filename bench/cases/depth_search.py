# about: networks of other depths are compared, each a program of its own, which a factory makes: none could be spared
# verdict: compile-bound | -
# forbid: closure_varies, recompile_in_loop, static_argument_varies, varying_shapes, op_by_op_loop, data_waits
import sys

import jax
import jax.numpy as jnp


def make_network(depth):
    @jax.jit
    def train(w, x):
        def loss(w):
            hidden = x
            for _ in range(depth):
                hidden = jnp.tanh(hidden @ w)
            return jnp.mean((hidden - x) ** 2)

        return w - 0.1 * jax.grad(loss)(w)

    return train


x = jnp.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)
for depth in range(1, 1 + int(14 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    train = make_network(depth)
    w = jnp.eye(32)
    for _ in range(20):
        w = train(w, x)
    print(depth, w[0, :2])
