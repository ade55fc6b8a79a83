# about: a jitted method has `self` as a static argument, and each arm is a new object
# verdict: compile-bound
# expect: static_argument_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work, weak_type_flips
# lines: static_argument_varies@cause
# mended: robot_arms_pytree
import sys
from functools import partial

import jax
import jax.numpy as jnp


class Arm:
    def __init__(self, length):
        self.length = length

    @partial(jax.jit, static_argnums=0)
    def reach(self, angles):
        position = jnp.zeros(2)
        for joint in range(12):
            turned = jnp.cumsum(angles)[joint]
            position = position + self.length * jnp.array([jnp.cos(turned), jnp.sin(turned)])
        return jnp.linalg.norm(position), jnp.sort(angles)


def survey(count):
    angles = jnp.linspace(0.1, 0.4, 12)
    reached = 0.0
    for number in range(count):
        arm = Arm(1.0 + number / 10)
        reached = arm.reach(angles)[0]  # <- cause
    return reached


print(survey(int(10 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
