# about: each frame is paced by a sleep that the viewer needed once, and nothing needs any more
# verdict: wait-bound
# expect: host_waits
# forbid: host_work, data_waits, host_sync, op_by_op_loop, many_tiny_jits, dispatch_bound
# lines: host_waits@cause
# mended: flock_viewer_unpaced
import sys
import time

import jax


@jax.jit
def fly(places, headings):
    mean = headings.mean(axis=0)
    headings = 0.95 * headings + 0.05 * mean
    return places + 0.01 * headings, headings


def run(frames):
    places = jax.random.uniform(jax.random.key(0), (500, 2))
    headings = jax.random.normal(jax.random.key(1), (500, 2))
    for _ in range(frames):
        places, headings = fly(places, headings)
        time.sleep(0.02)  # <- cause
    return places


frames = int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(run(frames).mean())
