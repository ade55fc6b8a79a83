# about: a figure is drawn in every pass, by a library; beside it a few operations outside any jit, once
# verdict: host-bound
# expect: host_work
# forbid: op_by_op_loop, many_tiny_jits, host_sync, data_waits, dispatch_bound, repeated_fetch
# lines: host_work@cause
# path: site-packages
# advice-not: (?i)jax\.jit on
# mended: live_plot_at_end
import sys

import jax
import jax.numpy as jnp
import plotlib as plt


@jax.jit
def wave(u, v):
    acceleration = jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)
    v = v + 0.1 * acceleration
    return u + 0.1 * v, v


def simulate(frames):
    x = jnp.linspace(0.0, 6.28, 200)
    u = jnp.sin(x) * jnp.exp(-x) + 0.1
    v = jnp.zeros_like(u)
    figure = plt.figure(160, 60)
    for _ in range(frames):
        u, v = wave(u, v)
        figure.clear()
        figure.plot(x, u)
        figure.draw()  # <- cause
    return figure


frames = int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(len(simulate(frames).text))
