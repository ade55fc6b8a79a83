# about: the batches are put on the device once; a batch of 10 KiB from NumPy goes with each call, beside long steps
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def centre(state, images, weights):
    return 0.99 * state + 0.01 * jnp.tanh(images * weights[:256, None]).mean()


class Trainer:
    def __init__(self):
        self.state = jnp.zeros(())

    def fit(self, batches, weights, count):
        for number in range(count):
            self.state = centre(self.state, batches[number % len(batches)], weights)
        return self.state


rng = np.random.default_rng(0)
batches = [jax.device_put(np.full((256, 16_385), 0.5 + number, np.float32)) for number in range(3)]
weights = rng.random(2560, dtype=np.float32)
print(Trainer().fit(batches, weights, int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
