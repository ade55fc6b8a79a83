# about: a thread sorts large arrays with NumPy, which releases Python's lock
# verdict: dispatch-bound | host-bound | device-bound | -
# forbid: lock_held, op_by_op_loop, host_sync, many_tiny_jits, data_waits
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def relax(field):
    return 0.5 * field + 0.125 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1))


def order(done, values):
    while not done.is_set():
        np.sort(values)


steps = int(40000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
done = threading.Event()
worker = threading.Thread(target=order, args=(done, np.random.default_rng(0).random(2_000_000)))
worker.start()
field = jnp.ones((48, 48))
for step in range(steps):
    field = relax(field)
print(float(field.sum()))
done.set()
worker.join()
