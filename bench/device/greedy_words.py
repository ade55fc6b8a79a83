# about: the likeliest word of each sentence of a batch
# cause: an argmax, number by number
# expect: unvectorised
# run: likeliest
# mended: likeliest_by_maximum
import jax.numpy as jnp


def likeliest(scores, bias):
    return jnp.argmax(scores + bias, axis=-1)  # <- cause


def likeliest_inputs(random):
    return random.standard_normal((64, 50_257), dtype="float32"), random.standard_normal(50_257, dtype="float32")


def likeliest_by_maximum(scores, bias):
    scores = scores + bias
    words = scores.shape[-1]
    is_largest = scores == scores.max(-1, keepdims=True)
    return jnp.where(is_largest, jnp.arange(words), words).min(-1)


likeliest_by_maximum_inputs = likeliest_inputs
