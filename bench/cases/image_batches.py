# about: a generator hands out NumPy batches of 16 MB that are there already; each jitted call copies one
# verdict: copy-bound
# expect: numpy_argument
# forbid: op_by_op_loop, many_tiny_jits, host_sync, host_work, dispatch_bound, data_waits
# lines: numpy_argument@cause
# mended: image_batches_put_ahead
import sys

import jax
import jax.numpy as jnp
import numpy as np


def epochs(images, count, size=256):
    for number in range(count):
        start = number % 3 * size
        yield images[start : start + size]


@jax.jit
def centre(state, images):
    return 0.99 * state + 0.01 * images[:, 0].mean()


class Trainer:
    def __init__(self):
        self.state = jnp.zeros(())

    def fit(self, batches):
        for batch in batches:
            self.state = centre(self.state, batch)  # <- cause
        return self.state


images = np.random.default_rng(0).standard_normal((768, 16_385), dtype=np.float32)
print(Trainer().fit(epochs(images, int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))))
