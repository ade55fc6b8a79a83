"""What changes the meaning of a time is told, once, and not where it is not so. Which programs have numbers that know
nothing of each other."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.engine.measure.pitfalls import (
    dead_operations,
    is_elementwise,
    program_findings,
    recompiled,
    traced_is_elementwise,
    zero_copies,
)
from jaxprof.engine.measure.stages import CompileLedger, StageSpan


def program(before, after, hlo="", function=lambda x: x + 1):
    return SimpleNamespace(
        lowered_flops=before, compiled_flops=after, hlo=hlo, jaxpr=jax.jit(function).trace(jnp.ones(3)).jaxpr
    )


@pytest.mark.parametrize(
    ("before", "after", "hlo", "folded"),
    [
        (1000.0, 9.0, "", True),
        (1000.0, 10.0, "", False),
        (1000.0, None, "", True),
        (50.0, None, "", True),
        (0.0, 0.0, "", False),
        (None, None, "", False),
        (1000.0, 0.0, "custom-call(f32[3] x)", False),
        (1000.0, 0.0, "__triton", False),
    ],
)
def test_work_that_is_gone_after_compiling_was_folded(before, after, hlo, folded):
    assert [found.code for found in program_findings(program(before, after, hlo))] == ["folded_constants"] * folded


def test_of_windows_xla_counts_more_than_it_computes():
    """A cumulative sum goes into XLA as one window for each element: few of those FLOPs are ever computed."""

    def smoothed(x):
        return jax.checkpoint(jnp.cumsum)(x)

    assert list(program_findings(program(1e10, 1e7, "", smoothed))) == []
    assert [found.code for found in program_findings(program(1e10, 1e7, "", jnp.sum))] == ["folded_constants"]


def test_what_is_computed_and_not_used_is_named_once():
    def wasteful(x):
        jnp.sort(x)
        jnp.sort(-x)
        return x * 2

    (found,) = program_findings(program(None, None, "", wasteful))
    assert found.code == "dead_code"
    assert found.message.endswith("removed it: sort")


def test_compilations_that_nobody_expected_are_counted_and_named():
    spans = [StageSpan(stage, name, 0.0, 1.0) for name in ("f", "g", "f") for stage in ("trace", "compile")]
    (found,) = recompiled(CompileLedger(spans), "during the run")
    assert found.message == "3 unexpected compilations during the run: f, g"
    (one,) = recompiled(CompileLedger(spans[:2]), "at the first call")
    assert one.message == "1 unexpected compilation at the first call: f"
    assert not list(recompiled(CompileLedger(spans[:1]), "at the first call")), "tracing is no compilation"


@pytest.mark.parametrize(
    ("directions", "calls", "said"),
    [
        ([], False, []),
        (["in"], False, ["the transfer in copied nothing"]),
        (["in", "out"], True, ["the transfer in and out copied nothing", "a call moved no data"]),
        ([], True, ["a call moved no data"]),
    ],
)
def test_a_transfer_that_copied_nothing_is_no_copy(directions, calls, said):
    found = list(zero_copies(directions, calls=calls))
    assert [warning.message.partition(":")[0] for warning in found] == said
    assert {warning.code for warning in found} <= {"zero_copy"}


def test_what_has_an_effect_or_is_used_later_or_is_the_value_of_a_gradient_is_not_dead_code():
    def loss(weights, x):
        return (jnp.tanh(x) @ weights).sum()

    def wasteful(weights, x):
        jnp.linalg.svd(x)
        return jax.grad(loss)(weights, x)

    def used(weights, x):
        once = jnp.sort(x)
        jax.debug.print("{}", jnp.sort(-x))
        return jnp.cumsum(once)

    matrix = jnp.ones((8, 8))
    for function in (jax.grad(loss), used):
        assert dead_operations(jax.jit(function).trace(matrix, matrix).jaxpr) == []
    assert dead_operations(jax.jit(wasteful).trace(matrix, matrix).jaxpr) == ["svd"]


X = np.ones((4, 4), np.float32)


ALONE = [
    jax.nn.selu,
    jax.jit(lambda x: jnp.where(x > 0, x, jnp.expm1(x)).T),
    lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    jax.grad(lambda x: jnp.tanh(x).sum()),
    lambda x: jax.random.uniform(jax.random.key(0), x.shape) * x,
    lambda x: (jnp.dot(x, x), 2 * x)[1],
]
TOGETHER = [
    lambda x: jnp.dot(x, X),
    lambda x: x - x.mean(),
    jnp.cumsum,
    jax.jit(lambda x: jnp.exp(x @ x)),
    lambda x: jax.lax.scan(lambda carry, row: (carry + row, row), jnp.zeros(4), x)[0],
    lambda x: jax.lax.fori_loop(0, 9, lambda _, x: x + 1, x),
    lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x @ x, x),
    lambda x: x.at[0].add(x[1]),
    lambda x: jax.pure_callback(np.exp, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
]


@pytest.mark.parametrize("function", [*ALONE, *TOGETHER])
def test_numbers_know_nothing_of_each_other_in_programs_without_a_sum_or_something_unknown(function):
    assert traced_is_elementwise(function, (X,)) == (function in ALONE)
    assert is_elementwise(jax.jit(function).trace(X).jaxpr) == (function in ALONE)
