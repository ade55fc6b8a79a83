# about: a callback draws the fit in each pass, with a few operations outside any jit beside the drawing
# verdict: host-bound
# expect: host_work
# forbid: op_by_op_loop, many_tiny_jits, host_sync, data_waits, dispatch_bound
# lines: host_work@cause
# path: site-packages
# advice-not: jax\.jit on .?`?callback
# mended: live_plot_at_end
import sys

import jax
import jax.numpy as jnp
import plotlib as plt


def log_density(x, mean, log_scale):
    return -0.5 * ((x - mean) / jnp.exp(log_scale)) ** 2 - log_scale


@jax.jit
def gradient_step(params, x):
    gradient = jax.grad(lambda p: -jnp.mean(log_density(x, *p)))(params)
    return [p - 0.1 * g for p, g in zip(params, gradient)]


def fit(x, steps, callback):
    params = [jnp.zeros(()), jnp.zeros(())]
    for step in range(steps):
        params = gradient_step(params, x)
        callback(step, params)  # <- cause
    return params


figure = plt.figure(160, 60)
grid = jnp.linspace(-3.0, 3.0, 200)


def callback(step, params):
    mean, log_scale = params
    density = jnp.exp(log_density(grid, mean, log_scale))
    figure.clear()
    figure.plot(grid, density)
    figure.draw()  # <- cause


x = 1.0 + 0.5 * jnp.sin(jnp.arange(1000.0))
print(fit(x, int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1)), callback))
