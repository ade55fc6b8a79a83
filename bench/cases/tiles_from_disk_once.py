# about: the tiles are read once, before a loop that gives the device work
# verdict: device-bound
# forbid: *
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


def tiles(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            yield jnp.array(np.array(pickle.loads(zlib.decompress(file.read())), np.float32))


@jax.jit
def accumulate(kernel, tile):
    smooth = jax.lax.conv_general_dilated(tile.transpose(2, 0, 1)[:, None], kernel, (1, 1), "SAME")
    return kernel + 1e-6 * jnp.tanh(smooth).mean()


passes = int(25 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
kernel = jnp.ones((16, 1, 9, 9)) / 81
with tempfile.TemporaryDirectory() as folder:
    write(folder, 4)
    loaded = list(tiles(folder))
for _ in range(passes):
    for tile in loaded:
        kernel = accumulate(kernel, tile)
print(kernel[0, 0, 0, :3])
