# about: attention by two einsums with the scores of 2048 tokens between them
# how: run @:attend --arg f32[1,8,2048,64] --arg f32[1,8,2048,64] --arg f32[1,8,2048,64] --budget 1
# expect: attention_scores
# allow: layout_copy
import jax
import jax.numpy as jnp


def attend(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)
