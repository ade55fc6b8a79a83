# about: jax.profiler.start_trace before the loop, and stop_trace after it
# verdict: - | device-bound | dispatch-bound | host-bound
# expect: profiler_on
# lines: profiler_on@start
# forbid: many_tiny_jits, host_sync, data_waits, recompile_in_loop
# mended: spring_chain_some_steps
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
jax.profiler.start_trace(tempfile.mkdtemp())  # <- start
for _ in range(int(12_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    position, speed = advance(position, speed)
print(position[:3])
jax.profiler.stop_trace()
