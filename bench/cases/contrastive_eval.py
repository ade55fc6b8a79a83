# about: training is jitted; the evaluation after each epoch is written operation by operation, and takes longer
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop|iterated_array, op_by_op_loop
# forbid: host_sync, data_waits, dispatch_bound, host_work, arrays_grow
# lines: op_by_op_loop@cause
# mended: contrastive_eval_jitted
import sys

import jax
import jax.numpy as jnp


def embed(w, x):
    return jnp.tanh(x @ w)  # <- cause


@jax.jit
def train_step(w, x):
    def loss(w):
        z = embed(w, x)
        return jnp.mean(jax.nn.logsumexp(z @ z.T, axis=1)) - jnp.mean(z**2)

    return w - 0.01 * jax.grad(loss)(w)


def evaluate(w, rows):
    score = jnp.zeros(())
    for row in rows:
        z = embed(w, row)  # <- cause
        z = z / jnp.sqrt(jnp.sum(z * z) + 1e-6)  # <- cause
        score = score + jnp.max(z) - jnp.mean(z)  # <- cause
    return score / len(rows)


x = jnp.sin(jnp.arange(64.0 * 16)).reshape(64, 16)
rows, w = list(x), jnp.eye(16)
for epoch in range(int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    for _ in range(20):
        w = train_step(w, x)
    score = evaluate(w, rows)  # <- cause
print(score)
