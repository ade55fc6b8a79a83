# about: one sharding for every call
# verdict: device-bound
# forbid: *
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("x",))


@jax.jit
def relax(field):
    return jnp.sin(field) * 0.5 + jnp.tanh(field * field)


def measure(field, repeats):
    for _ in range(repeats):
        field = relax(field)
    return field


field = jax.device_put(np.ones((1024, 1024), np.float32), NamedSharding(mesh, PartitionSpec("x")))
print(measure(field, int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0, :3])
