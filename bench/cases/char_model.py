# about: a function that encodes text in Python makes each batch, between the steps
# verdict: data-bound
# expect: data_waits
# forbid: op_by_op_loop, host_sync, many_tiny_jits, dispatch_bound, arrays_grow
# lines: data_waits@cause
# mended: char_model_cached
import random
import sys

import jax
import jax.numpy as jnp
import numpy as np

TEXT = "the quick brown fox jumps over the lazy dog and runs away " * 200
VOCABULARY = {letter: index for index, letter in enumerate(sorted(set(TEXT)))}
steps = int(250 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


def prepare(chooser, size=64, length=256):
    rows = []
    for _ in range(size):  # <- cause
        start = chooser.randrange(len(TEXT) - length)
        rows.append([VOCABULARY[letter] for letter in TEXT[start : start + length]])  # <- cause
    return np.array(rows, dtype=np.int32)  # <- cause


@jax.jit
def update(table, tokens):
    def loss(table):
        logits = table[tokens[:, :-1:8]]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, tokens[:, 1::8, None], -1)[..., 0])

    value, gradient = jax.value_and_grad(loss)(table)
    return table - 0.5 * gradient, value


chooser = random.Random(0)
table = jnp.zeros((len(VOCABULARY), len(VOCABULARY)))
for step in range(steps):
    tokens = prepare(chooser)  # <- cause
    table, value = update(table, tokens)
print("loss", float(value))
