# about: the energy of atoms from their distances, the differences summed over the last axis
# cause: a sum over a short last axis
# expect: unvectorised
# run: energy
# mended: energy_by_coordinates
import jax.numpy as jnp


def energy(atoms):
    apart = atoms[:, None] - atoms
    squared = (apart**2).sum(-1)  # <- cause
    return jnp.where(squared > 0, jnp.exp(-squared), 0).sum()


def energy_inputs(random):
    return (random.standard_normal((1500, 3), dtype="float32"),)


def energy_by_coordinates(atoms):
    squared = sum((atoms[:, None, axis] - atoms[:, axis]) ** 2 for axis in range(3))
    return jnp.where(squared > 0, jnp.exp(-squared), 0).sum()


energy_by_coordinates_inputs = energy_inputs
