# about: a backup stops the whole process for a second
# verdict: device-bound | host-bound | dispatch-bound | -
# expect: paused
# forbid: data_waits, recompiles, op_by_op_loop, callback_in_loop
# mended: terrain_backup_beside
import os
import subprocess
import sys

import jax
import jax.numpy as jnp


@jax.jit
def relax(height):
    return height + 0.2 * (jnp.roll(height, 1, 0) + jnp.roll(height, -1, 0) - 2.0 * jnp.sin(height))


def backup(freezes, seconds):
    """Copies the disk, as cron does it."""
    signals = f"kill -STOP {os.getpid()}; sleep {seconds}; kill -CONT {os.getpid()}" if freezes else f"sleep {seconds}"
    return subprocess.Popen(["sh", "-c", f"sleep 0.3; {signals}"])


def erode(turns):
    height = jnp.ones((600, 600)).at[300].set(9.0)
    for turn in range(turns):
        height = relax(height)
        if turn % 20 == 0:
            height.block_until_ready()
        if turn == turns // 4:
            copying = backup(True, 1.0)
    copying.wait()
    return height


print(erode(int(1200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))).sum())
