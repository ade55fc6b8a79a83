# about: each pass of a generator reads, decompresses and unpickles a tile, in the main thread
# verdict: data-bound
# expect: data_waits
# forbid: op_by_op_loop, many_tiny_jits, host_sync, dispatch_bound, repeated_fetch, numpy_argument, host_work
# lines: data_waits@cause
# mended: tiles_from_disk_once
import os
import pickle
import sys
import tempfile
import zlib

import jax
import jax.numpy as jnp
import numpy as np


def write(folder, count):
    rng = np.random.default_rng(0)
    for number in range(count):
        tile = (8 * rng.standard_normal((128, 128, 3))).astype(np.int16)
        with open(os.path.join(folder, f"{number}.bin"), "wb") as file:
            file.write(zlib.compress(pickle.dumps(tile.tolist()), 1))


def tiles(folder, passes):
    for _ in range(passes):
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                yield np.array(pickle.loads(zlib.decompress(file.read())), np.float32)  # <- cause


@jax.jit
def accumulate(mean, tile):
    return 0.99 * mean + 0.01 * tile.mean((0, 1))


passes = int(25 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
mean = jnp.zeros(3)
with tempfile.TemporaryDirectory() as folder:
    write(folder, 4)
    for tile in tiles(folder, passes):  # <- cause
        mean = accumulate(mean, tile)
print(mean)
