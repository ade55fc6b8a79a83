# about: the sums stay on the device, and are fetched after the loop
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def evaluate(sums, w, x, y):
    logits = jnp.tanh(x @ w)
    return sums[0] + jnp.mean(jnp.argmax(logits, 1) == y), sums[1] + jnp.mean(jax.nn.logsumexp(logits, 1))


def main():
    w = jnp.eye(256, 10)
    x = jnp.sin(jnp.arange(16_384.0 * 256)).reshape(16_384, 256)
    y = jnp.arange(16_384) % 10
    sums = (jnp.zeros(()), jnp.zeros(()))
    for _ in range(int(250 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        sums = evaluate(sums, w, x, y)
    print(sums[0].item(), sums[1].item())


main()
