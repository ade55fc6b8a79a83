# about: settings that have __eq__ and __hash__ are a static argument, and one of them changes in each round
# verdict: compile-bound
# expect: static_argument_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work, recompile_in_loop
# lines: static_argument_varies@cause
# advice-not: give its class __eq__
# mended: layout_settings_argument
import sys
from functools import partial

import jax
import jax.numpy as jnp


class Settings:
    def __init__(self, spring, repulsion):
        self.spring, self.repulsion = spring, repulsion

    def __eq__(self, other):
        return (self.spring, self.repulsion) == (other.spring, other.repulsion)

    def __hash__(self):
        return hash((self.spring, self.repulsion))


@partial(jax.jit, static_argnums=1)
def relax(points, settings):
    for _ in range(8):
        apart = points[:, None] - points[None]
        squared = jnp.sum(apart**2, -1, keepdims=True) + 1e-3
        points = points + 1e-3 * jnp.sum(settings.repulsion * apart / squared - settings.spring * apart, axis=1)
    return points


points = jnp.stack([jnp.cos(jnp.arange(60.0)), jnp.sin(jnp.arange(60.0) * 1.7)], axis=1)
for number in range(int(12 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    settings = Settings(0.1 + 0.01 * number, 1.0)
    for _ in range(5):
        points = relax(points, settings)  # <- cause
print(points[0])
