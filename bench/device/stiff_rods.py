# about: rods with different conductivity step until each is at rest; under vmap all wait for the slowest
# cause: longest lane
# expect: longest_lane
# run: settle
# mended: settle_in_turn
# trial: map
# targets: h100, tpu-v5e
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import while_loop


@partial(jax.vmap, in_axes=(0, 0))  # <- cause
def settle(rod, rate):
    return _settle_one(rod, rate)  # <- cause


def _settle_one(rod, rate):
    def step(state):
        u, n, _ = state
        flux = jnp.diff(u)
        change = rate * jnp.diff(flux, prepend=0.0, append=0.0)
        change = jnp.concatenate([flux[:1], flux[1:] - flux[:-1], -flux[-1:]]) * rate
        return u + change, n + 1, jnp.abs(change).max()

    state = while_loop(lambda s: s[2] > 3e-5, step, (rod, 0, jnp.float32(1)))  # <- cause
    return state[0], state[1]


def settle_inputs(random):
    rods = random.random((64, 1024), dtype="float32")
    rates = np.full(64, 0.45, "float32")
    scale = np.full((64, 1), 1e-3, "float32")
    scale[::32] = 1.0
    return rods * scale, rates


def settle_in_turn(rods, rates):
    return jax.lax.map(lambda rod: _settle_one(*rod), (rods, rates))


settle_in_turn_inputs = settle_inputs
