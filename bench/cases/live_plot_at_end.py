# about: the figure is drawn once, after the loop
# verdict: device-bound
# forbid: *
# path: site-packages
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
    x = jnp.linspace(0.0, 6.28, 2_000_000)
    u = jnp.sin(x) * jnp.exp(-x) + 0.1
    v = jnp.zeros_like(u)
    for _ in range(frames):
        u, v = wave(u, v)
    figure = plt.figure(160, 60)
    figure.plot(x[::10_000], u[::10_000])
    figure.draw()
    return figure


frames = int(200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(len(simulate(frames).text))
