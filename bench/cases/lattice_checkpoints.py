# about: the whole state is fetched and pickled to disk in every pass, between cheap steps
# verdict: host-bound | copy-bound | wait-bound
# expect: host_work | host_waits | repeated_fetch
# forbid: op_by_op_loop, many_tiny_jits, data_waits, dispatch_bound, numpy_argument
# lines: host_work@cause, host_waits@cause, repeated_fetch@cause
# mended: lattice_checkpoints_rarely
import os
import pickle
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def relax(field):
    return 0.25 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1) + jnp.roll(field, -1, 1))


def save(path, field, step):
    with open(path, "wb") as file:
        pickle.dump({"step": step, "field": jax.device_get(field).tolist()}, file)  # <- cause


def run(steps):
    field = jax.random.normal(jax.random.key(0), (256, 256))
    with tempfile.TemporaryDirectory() as folder:
        for step in range(steps):
            field = relax(field)
            save(os.path.join(folder, "latest.pkl"), field, step)  # <- cause
    return float(field.mean())


print(run(int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
