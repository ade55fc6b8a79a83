# about: absent answers are zeros with a mask: one tree
# verdict: device-bound
# forbid: *
import itertools
import sys

import jax
import jax.numpy as jnp

FIELDS = ["age", "income", "rooms", "pets", "cars", "debt", "tax"]


@jax.jit
def score(weights, answers, present):
    total = 0.0
    for index, name in enumerate(FIELDS):
        values = answers[name] * present[index]
        total += jnp.sum(jax.nn.softmax(jnp.outer(values, weights[name])) * jnp.sort(values)[:, None])
    return total


def main():
    count = int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    weights = {name: jnp.linspace(-1.0, 1.0, 256) for name in FIELDS}
    values = {name: jnp.linspace(0.0, 1.0, 2048) for name in FIELDS}
    masks = jnp.array(list(itertools.product([0.0, 1.0], repeat=len(FIELDS))))
    rows = [masks[row] for row in range(8)]
    for number in range(count):
        total = score(weights, values, rows[number % 8])
    print(total)


main()
