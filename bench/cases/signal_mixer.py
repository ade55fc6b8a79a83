# about: each pass adds a NumPy array of 16 MB to a jax array outside any jit: an implicit copy to the device each time
# verdict: copy-bound | dispatch-bound | device-bound
# expect: implicit_transfers | numpy_argument
# forbid: op_by_op_loop, host_sync, many_tiny_jits, data_waits, dispatch_bound, arrays_grow
# lines: implicit_transfers@cause, numpy_argument@cause
# mended: signal_mixer_on_device
import sys

import jax.numpy as jnp
import numpy as np


def mix(tracks, passes):
    mixed = jnp.zeros(tracks[0].shape, jnp.float32)
    for number in range(passes):
        mixed = mixed + tracks[number % len(tracks)]  # <- cause
    return mixed


rng = np.random.default_rng(0)
tracks = [rng.standard_normal((4, 1_000_003), dtype=np.float32) for _ in range(3)]
print(mix(tracks, int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0, :3])
