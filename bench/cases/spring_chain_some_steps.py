# about: the chain of springs, of which a few steps are profiled
# verdict: - | device-bound | dispatch-bound | host-bound
# forbid: profiler_on, many_tiny_jits, host_sync, data_waits, recompile_in_loop
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def advance(position, speed):
    pull = jnp.roll(position, 1) - 2 * position + jnp.roll(position, -1)
    speed = 0.999 * speed + 0.01 * jnp.sin(pull)
    return position + 0.01 * speed, speed


position = jnp.sin(jnp.linspace(0.0, 20.0, 2000))
speed = jnp.zeros(2000)
for step in range(int(12_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    if step == 10:
        jax.profiler.start_trace(tempfile.mkdtemp())
    position, speed = advance(position, speed)
    if step == 20:
        position.block_until_ready()
        jax.profiler.stop_trace()
print(position[:3])
