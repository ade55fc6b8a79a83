# about: the method that nnx.jit compiled gets another batch size each time
# verdict: compile-bound
# expect: varying_shapes
# forbid: op_by_op_loop, recompile_in_loop, host_sync, data_waits, host_work, closure_varies
# lines: varying_shapes@cause
# needs: flax
# mended: nnx_sales_padded
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(16, 16, rngs=rngs) for _ in range(4)])

    def __call__(self, x):
        for layer in self.layers:
            x = x + nnx.tanh(layer(x))
        return x.sum(-1)


@nnx.jit
def train_step(model, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p, g: p - 0.01 * g, params, grads))
    return loss


def main():
    model = Model(nnx.Rngs(0))
    rng = np.random.default_rng(0)
    for week in range(int(6 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        x = jax.device_put(rng.standard_normal((60 + week, 16), dtype=np.float32))
        y = x[:1].sum()
        loss = train_step(model, x, y)  # <- cause
    print(loss)


main()
