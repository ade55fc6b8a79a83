"""Which programs have numbers that know nothing of each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.engine.measure.pitfalls import is_elementwise, traced_is_elementwise

X = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    "function",
    [
        jnp.exp,
        jax.nn.selu,
        jax.jit(lambda x: jnp.where(x > 0, x, jnp.expm1(x)).T),
        lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
        lambda x: jnp.sort(x)[::-1] + x.max(),
        jax.grad(lambda x: jnp.tanh(x).sum()),
        lambda x: jax.random.uniform(jax.random.key(0), x.shape) * x,
        lambda x: (jnp.dot(x, x), 2 * x)[1],
    ],
)
def test_programs_without_a_sum(function):
    assert traced_is_elementwise(function, (X,))
    assert is_elementwise(jax.jit(function).trace(X).jaxpr)


@pytest.mark.parametrize(
    "function",
    [
        jnp.dot,
        lambda x: x - x.mean(),
        jax.nn.softmax,
        jnp.cumsum,
        jnp.linalg.inv,
        jax.jit(lambda x: jnp.exp(x @ x)),
        lambda x: jax.lax.scan(lambda carry, row: (carry + row, row), jnp.zeros(4), x)[0],
        lambda x: jax.lax.fori_loop(0, 9, lambda _, x: x + 1, x),
        lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x @ x, x),
        lambda x: x.at[0].add(x[1]),
        lambda x: jax.pure_callback(np.exp, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
    ],
)
def test_programs_with_a_sum_or_something_unknown(function):
    arguments = (X, X) if function is jnp.dot else (X,)
    assert not traced_is_elementwise(function, arguments)
    assert not is_elementwise(jax.jit(function).trace(*arguments).jaxpr)
