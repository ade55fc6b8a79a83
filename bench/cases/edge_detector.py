# about: nothing; convolutions in training steps, the loss fetched every tenth step
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def conv(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")


@jax.jit
def step(kernels, images, edges):
    def loss(kernels):
        hidden = images
        for kernel in kernels:
            hidden = jax.nn.relu(conv(hidden, kernel))
        return jnp.mean((hidden - edges) ** 2)

    value, grads = jax.value_and_grad(loss)(kernels)
    return [k - 0.01 * g for k, g in zip(kernels, grads)], value


def main():
    images = jnp.sin(jnp.arange(8.0 * 3 * 64 * 64)).reshape(8, 3, 64, 64)
    edges = jnp.abs(jnp.roll(images, 1, 3) - images).mean(1, keepdims=True)
    kernels = [
        jnp.full((8, 3, 3, 3), 0.05, jnp.float32),
        jnp.full((8, 8, 3, 3), 0.02, jnp.float32),
        jnp.full((1, 8, 3, 3), 0.05, jnp.float32),
    ]
    history = {}
    for number in range(int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        kernels, value = step(kernels, images, edges)
        if number % 10 == 0:
            history[number] = float(value)
    print(history)


main()
