# about: the statistics of metrics_thread are made in a process of their own
# verdict: dispatch-bound | host-bound | device-bound | -
# forbid: lock_held, op_by_op_loop, host_sync, many_tiny_jits, data_waits
import subprocess
import sys

import jax
import jax.numpy as jnp

STATISTICS = """
counts = {}
while True:
    for n in range(10000):
        counts[n % 97] = counts.get(n % 97, 0) + n
"""


@jax.jit
def relax(field):
    return 0.5 * field + 0.125 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1))


steps = int(8000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
worker = subprocess.Popen([sys.executable, "-c", STATISTICS])
field = jnp.ones((48, 48))
for step in range(steps):
    field = relax(field)
print(float(field.sum()))
worker.kill()
worker.wait()
