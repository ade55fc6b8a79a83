# about: the spell checker, whose words are padded to one length
# verdict: - | device-bound | dispatch-bound | host-bound | data-bound
# forbid: varying_shapes, programs_grow, arrays_grow, op_by_op_loop
import sys

import jax
import jax.numpy as jnp
import numpy as np

generator = np.random.default_rng(1)
table = jnp.asarray(generator.normal(size=(128, 32)), jnp.float32)


@jax.jit
def likelihood(letters, length):
    pairs = table[letters[:-1]] * table[letters[1:]]
    return jnp.sum(jnp.where(jnp.arange(1, 300)[:, None] < length, pairs, 0.0)) / (32 * (length - 1))


total = 0.0
for length in range(2, 32 + int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    letters = np.zeros(300, np.int32)
    letters[:length] = generator.integers(0, 128, length)
    total += float(likelihood(letters, np.int32(length)))
print(total)
