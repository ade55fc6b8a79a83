# about: a thread computes statistics in Python all the time, while the loop dispatches small steps
# verdict: dispatch-bound | host-bound | device-bound | -
# expect: lock_held
# forbid: op_by_op_loop, host_sync, many_tiny_jits, data_waits, arrays_grow
# lines: lock_held@cause
# mended: metrics_process
import sys
import threading

import jax
import jax.numpy as jnp


@jax.jit
def relax(field):
    return 0.5 * field + 0.125 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1))


def statistics(done):
    counts = {}
    while not done.is_set():
        for n in range(10000):  # <- cause
            counts[n % 97] = counts.get(n % 97, 0) + n  # <- cause


steps = int(8000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
done = threading.Event()
worker = threading.Thread(target=statistics, args=(done,))
worker.start()
field = jnp.ones((48, 48))
for step in range(steps):
    field = relax(field)
print(float(field.sum()))
done.set()
worker.join()
