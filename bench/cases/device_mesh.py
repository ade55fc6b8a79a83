# about: the argument has another sharding in each of the first calls, and JAX compiles for each
# verdict: compile-bound | - | device-bound
# expect: arguments_vary
# forbid: op_by_op_loop, varying_shapes, host_sync, data_waits, host_work, many_tiny_jits
# mended: device_mesh_fixed
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
layouts = [("x", None), (None, "x"), ("x", "y"), ("y", "x"), (None, "y"), ("y", None)]


@jax.jit
def relax(field):
    for _ in range(10):
        field = 0.25 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1) + jnp.roll(field, -1, 1))
    return field.mean()


def measure(repeats):
    values = []
    for _ in range(repeats):
        for layout in layouts:
            field = jax.device_put(host, NamedSharding(mesh, PartitionSpec(*layout)))
            values.append(relax(field))  # <- cause
    return values


host = np.ones((64, 64), np.float32)
print(len(measure(int(2 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))))
