# about: the state is fetched and pickled once in many passes
# verdict: device-bound
# forbid: *
import os
import pickle
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def relax(field):
    def sweep(field, _):
        field = 0.25 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1) + jnp.roll(field, -1, 1))
        return field, None

    return jax.lax.scan(sweep, field, length=50)[0]


def save(path, field, step):
    with open(path, "wb") as file:
        pickle.dump({"step": step, "field": jax.device_get(field)}, file)


def run(steps):
    field = jax.random.normal(jax.random.key(0), (512, 512))
    with tempfile.TemporaryDirectory() as folder:
        for step in range(steps):
            field = relax(field)
            if step % 20 == 0:
                save(os.path.join(folder, "latest.pkl"), field, step)
    return float(field.mean())


print(run(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
