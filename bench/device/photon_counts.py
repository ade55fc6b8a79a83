# about: counts of photons in evenly spaced bins of energy
# cause: a search in the edges for each photon
# expect: binary_search
# run: spectrum
# mended: spectrum_by_index
import jax.numpy as jnp

BINS = 128


def spectrum(energies):
    return jnp.histogram(energies, BINS, (0.0, 1.0))[0]  # <- cause


def spectrum_inputs(random):
    return (random.random(1_000_000, dtype="float32"),)


def spectrum_by_index(energies):
    places = jnp.clip((energies * BINS).astype(int), 0, BINS - 1)
    return jnp.zeros(BINS).at[places].add(1.0)


spectrum_by_index_inputs = spectrum_inputs
