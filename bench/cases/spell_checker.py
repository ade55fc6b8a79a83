# about: a program for each length of a word, all of which JAX keeps in memory
# verdict: - | compile-bound
# expect: varying_shapes, programs_grow
# lines: programs_grow@call
# forbid: arrays_grow, op_by_op_loop
# mended: spell_checker_padded
import sys

import jax
import jax.numpy as jnp
import numpy as np

generator = np.random.default_rng(1)
table = jnp.asarray(generator.normal(size=(128, 32)), jnp.float32)


@jax.jit
def likelihood(letters):
    return jnp.mean(table[letters[:-1]] * table[letters[1:]])


total = 0.0
for length in range(2, 32 + int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    total += float(likelihood(generator.integers(0, 128, length).astype(np.int32)))  # <- call
print(total)
