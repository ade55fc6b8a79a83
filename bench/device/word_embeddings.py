# about: an embedding as a product with one-hot rows
# cause: slow batched form
# expect: one_hot_product
# run: encode
# mended: encode_by_index
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp

VOCABULARY = 8192


@jax.jit
def encode(table, tokens, projection):
    words = jax.nn.one_hot(tokens, VOCABULARY) @ table  # <- cause
    return jnp.tanh(words @ projection).mean(1)


def encode_inputs(random):
    table = random.standard_normal((VOCABULARY, 128), dtype="float32")
    return (
        table,
        random.integers(0, VOCABULARY, (32, 64), dtype="int32"),
        random.standard_normal((128, 128), dtype="float32"),
    )


@jax.jit
def encode_by_index(table, tokens, projection):
    return jnp.tanh(table[tokens] @ projection).mean(1)


encode_by_index_inputs = encode_inputs
