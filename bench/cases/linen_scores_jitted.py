# about: the same model, applied by a jitted function to more documents
# verdict: device-bound
# forbid: *
# needs: flax
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp


class Ranker(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (256, 256, 256):
            x = nn.LayerNorm()(nn.gelu(nn.Dense(width)(x)))
        return nn.Dense(1)(x)


def rank(apply, params, documents, queries):
    best = []
    for query in range(queries):
        scores = apply(params, documents)
        best = scores
    return best


queries = int(50 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
model = Ranker()
documents = jnp.linspace(0.0, 1.0, 4096 * 32).reshape(4096, 32)
params = jax.jit(model.init)(jax.random.key(0), documents)
print(rank(jax.jit(model.apply), params, documents, queries)[0])
