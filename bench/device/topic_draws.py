# about: many draws from one categorical distribution take a Gumbel number for each draw and each category
# cause: random bits
# expect: random_bits
# run: draw
# mended: draw_inverted
# differs: other random numbers
import jax
import jax.numpy as jnp


def draw(key, logits):
    return jnp.bincount(jax.random.categorical(key, logits, shape=(4000,)), length=logits.size)  # <- cause


def draw_inputs(random):
    return jax.random.key(5), random.standard_normal(1000, dtype="float32")


def draw_inverted(key, logits):
    shares = jnp.cumsum(jax.nn.softmax(logits))
    drawn = jnp.searchsorted(shares, jax.random.uniform(key, (4000,)))
    return jnp.bincount(drawn, length=logits.size)


draw_inverted_inputs = draw_inputs
