# about: the loop waits for a queue that a slower thread fills
# verdict: data-bound
# expect: data_waits
# forbid: op_by_op_loop, host_sync, host_work, many_tiny_jits, dispatch_bound, numpy_argument
# lines: data_waits@cause
# mended: tabular_queue_ahead
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
    for _ in range(count):
        time.sleep(0.03)  # the disk
        ready.put(rng.standard_normal((128, 32), dtype=np.float32))
    ready.put(None)


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w - x[:, :1]) ** 2))(w)


threading.Thread(target=fill, daemon=True).start()
w = jnp.zeros((32, 1))
while (x := ready.get()) is not None:  # <- cause
    w = step(w, x)
print(w[:2])
