# about: a linen model is applied in a loop without jit, operation by operation
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop
# forbid: host_sync, data_waits, dispatch_bound, arrays_grow
# lines: op_by_op_loop@cause
# needs: flax
# mended: linen_scores_jitted
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp


class Ranker(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (32, 32, 32):
            x = nn.LayerNorm()(nn.gelu(nn.Dense(width)(x)))  # <- cause
        return nn.Dense(1)(x)  # <- cause


def rank(model, params, documents, queries):
    best = []
    for query in range(queries):
        scores = model.apply(params, documents)  # <- cause
        best = scores
    return best


queries = int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
model = Ranker()
documents = jnp.linspace(0.0, 1.0, 16 * 32).reshape(16, 32)
params = jax.jit(model.init)(jax.random.key(0), documents)
print(rank(model, params, documents, queries)[0])
