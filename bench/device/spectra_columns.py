# about: a softmax over the first axis of a matrix whose rows lie together
# cause: kernel far below
# expect: slow_kernel
# run: mixing
# mended: mixing_rows
import jax
import jax.numpy as jnp


def mixing(logits, spectra):
    shares = jax.nn.softmax(logits, axis=0)  # <- cause
    return jnp.einsum("kn,k->n", shares, spectra)


def mixing_inputs(random):
    return random.standard_normal((512, 16_384), dtype="float32"), random.standard_normal(512, dtype="float32")


def mixing_rows(logits, spectra):
    return jax.nn.softmax(logits, axis=1) @ spectra


def mixing_rows_inputs(random):
    logits, spectra = mixing_inputs(random)
    return jnp.array(logits.T), spectra
