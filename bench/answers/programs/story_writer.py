# about: each generated token makes the context one longer, and each length is compiled
# how: script
# expect: varying_shapes
import jax
import jax.numpy as jnp

VOCABULARY, WIDTH = 500, 64


def init(key):
    a, b, c = jax.random.split(key, 3)
    return {
        "embed": jax.random.normal(a, (VOCABULARY, WIDTH)),
        "mix": jax.random.normal(b, (WIDTH, WIDTH)) / 8,
        "head": jax.random.normal(c, (WIDTH, VOCABULARY)) / 8,
    }


@jax.jit
def next_token(params, tokens):
    x = params["embed"][tokens]
    scores = jnp.tril(x @ x.T / WIDTH**0.5)
    x = jax.nn.softmax(scores) @ x
    return jnp.argmax(jnp.tanh(x[-1] @ params["mix"]) @ params["head"])


params = init(jax.random.key(0))
tokens = jnp.array([1, 2, 3])
for _ in range(40):
    tokens = jnp.append(tokens, next_token(params, tokens))
print(tokens)
