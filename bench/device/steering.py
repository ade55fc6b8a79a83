# about: the gradient of a loop that writes its path in place carries the gradient of the whole path through each step
# cause: loop carry
# expect: whole_carry
# run: improve
# mended: improve_stacked
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp
from jax import lax

STEPS, WIDTH = 1500, 64


def rollout(controls, start):
    def move(t, path):
        push = jnp.tanh(controls[t] - path[t])  # <- cause
        return path.at[t + 1].set(path[t] + 0.05 * push)  # <- cause

    path = jnp.zeros((STEPS + 1, WIDTH)).at[0].set(start)
    return lax.fori_loop(0, STEPS, move, path)  # <- cause


def cost(controls, start):
    path = rollout(controls, start)
    return jnp.sum((path[-1] - 1) ** 2) + 1e-4 * jnp.sum(path**2)


@jax.jit
def improve(controls, start):
    return controls - 0.1 * jax.grad(cost)(controls, start)  # <- cause


def improve_inputs(random):
    return random.standard_normal((STEPS, WIDTH), dtype="float32"), jnp.zeros(WIDTH)


def cost_stacked(controls, start):
    def move(here, control):
        there = here + 0.05 * jnp.tanh(control - here)
        return there, there

    _, path = lax.scan(move, start, controls)
    return jnp.sum((path[-1] - 1) ** 2) + 1e-4 * (jnp.sum(path**2) + jnp.sum(start**2))


@jax.jit
def improve_stacked(controls, start):
    return controls - 0.1 * jax.grad(cost_stacked)(controls, start)


improve_stacked_inputs = improve_inputs
