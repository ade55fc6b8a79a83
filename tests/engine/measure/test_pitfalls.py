"""What changes the meaning of a time is told, once, and not where it is not so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxprof.engine.measure.pitfalls import dead_operations, program_findings, recompiled, zero_copies
from jaxprof.engine.measure.stages import CompileLedger, StageSpan


def program(before: float | None, after: float | None, hlo: str = "", function: Any = lambda x: x + 1) -> Any:
    return SimpleNamespace(
        lowered_flops=before, compiled_flops=after, hlo=hlo, jaxpr=jax.jit(function).trace(jnp.ones(3)).jaxpr
    )


@pytest.mark.parametrize(
    ("before", "after", "hlo", "folded"),
    [
        (1000.0, 9.0, "", True),
        (1000.0, 10.0, "", False),
        (1000.0, None, "", True),
        (1000.0, 0.0, "", True),
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

    def smoothed(x: jax.Array) -> jax.Array:
        return jax.checkpoint(jnp.cumsum)(x)

    assert list(program_findings(program(1e10, 1e7, "", smoothed))) == []
    assert [found.code for found in program_findings(program(1e10, 1e7, "", jnp.sum))] == ["folded_constants"]


def test_what_is_computed_and_not_used_is_named_once():
    def wasteful(x: jax.Array) -> jax.Array:
        jnp.sort(x)
        jnp.sort(-x)
        return x * 2

    (found,) = program_findings(program(None, None, "", wasteful))
    assert found.code == "dead_code"
    assert found.message.endswith("removed it: sort")


def test_what_has_an_effect_or_is_used_later_is_not_dead():
    def used(x: jax.Array) -> jax.Array:
        once = jnp.sort(x)
        jax.debug.print("{}", jnp.sort(-x))
        return jnp.cumsum(once)

    assert dead_operations(jax.jit(used).trace(jnp.ones(4)).jaxpr) == []


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


def test_the_value_that_a_gradient_does_not_need_is_not_dead_code():
    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return (jnp.tanh(x) @ weights).sum()

    def wasteful(weights: jax.Array, x: jax.Array) -> jax.Array:
        jnp.linalg.svd(x)
        return jax.grad(loss)(weights, x)

    matrix = jnp.ones((8, 8))
    assert dead_operations(jax.jit(jax.grad(loss)).trace(matrix, matrix).jaxpr) == []
    assert dead_operations(jax.jit(wasteful).trace(matrix, matrix).jaxpr) == ["svd"]
