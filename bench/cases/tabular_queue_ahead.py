# about: the thread is faster than the steps, so that the queue is always full
# verdict: device-bound
# forbid: *
import queue
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

count = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
ready = queue.Queue(maxsize=4)


def fill():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 512), dtype=np.float32)
    for _ in range(count):
        time.sleep(0.001)  # the disk
        ready.put(jax.device_put(x))
    ready.put(None)


@jax.jit
def step(w, x):
    def loss(w):
        h = x
        for _ in range(4):
            h = jnp.tanh(h @ w)
        return jnp.mean((h - x) ** 2)

    return w - 0.01 * jax.grad(loss)(w)


threading.Thread(target=fill, daemon=True).start()
w = jnp.eye(512)
while (x := ready.get()) is not None:
    w = step(w, x).block_until_ready()
print(w[:2, 0])
