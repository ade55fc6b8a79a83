# about: a network is trained in float64 throughout
# cause: float64
# expect: float64
# run: train
# mended: train_single
# trial: float32
# targets: h100
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def loss(layers, x, y):
    for w in layers:
        x = jnp.tanh(x @ w)  # <- cause
    return jnp.mean((x - y) ** 2)


@jax.jit
def train(layers, x, y):
    return [w - 0.01 * g for w, g in zip(layers, jax.grad(loss)(layers, x, y), strict=True)]


def train_inputs(random):
    layers = [random.standard_normal((512, 512)) / 23 for _ in range(4)]  # <- cause
    x = random.standard_normal((512, 512))
    return layers, x, 0.5 * x


train_single = train


def train_single_inputs(random):
    return jax.tree.map(lambda a: a.astype("float32"), train_inputs(random))
