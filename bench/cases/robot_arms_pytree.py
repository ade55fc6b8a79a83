# about: the lengths are an argument, and all arms are reached for at once
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def reach(length, angles):
    turned = jnp.cumsum(angles)
    return jnp.linalg.norm(length * jnp.array([jnp.cos(turned).sum(), jnp.sin(turned).sum()]))


@jax.jit
def survey(lengths, angles):
    return jax.vmap(reach, in_axes=(0, None))(lengths, angles), jnp.sort(jnp.outer(lengths, angles), axis=0)


def main():
    angles, lengths = jnp.linspace(0.1, 0.4, 12), jnp.linspace(1.0, 2.0, 5_000)
    for _ in range(int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        reached, _ = survey(lengths, angles)
    print(reached[:3])


main()
