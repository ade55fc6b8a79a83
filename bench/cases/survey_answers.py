# about: the keys of the batch come and go, so that its tree is another one nearly each time
# verdict: compile-bound
# expect: arguments_vary
# forbid: op_by_op_loop, many_tiny_jits, recompile_in_loop, varying_shapes, host_sync, data_waits, host_work
# lines: arguments_vary@cause
# mended: survey_answers_padded
import itertools
import sys

import jax
import jax.numpy as jnp

FIELDS = ["age", "income", "rooms", "pets", "cars", "debt", "tax"]


@jax.jit
def score(weights, answers):
    total = 0.0
    for name, values in answers.items():
        total += jnp.sum(jax.nn.softmax(jnp.outer(values, weights[name])) * jnp.sort(values)[:, None])
        total += jnp.linalg.norm(jnp.cumsum(values) @ jnp.sin(jnp.outer(values, values)))
    return total


def main():
    count = int(6 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    weights = {name: jnp.linspace(-1.0, 1.0, 32) for name in FIELDS}
    values = {name: jnp.linspace(0.0, 1.0, 64) for name in FIELDS}
    groups = itertools.chain(itertools.combinations(FIELDS, 3), itertools.combinations(FIELDS, 4))
    total = jnp.zeros(())
    for group in itertools.islice(groups, count):
        total = score(weights, {name: values[name] for name in group})  # <- cause
    print(total)


main()
