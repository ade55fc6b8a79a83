"""Imports JAX, compiles one function, and ends: what is left over is the fixed start."""

import jax

print(jax.jit(lambda x: x + 1)(1.0))
