"""Every reason has a pair: a program in which it appears, and the edit that removes it. Both are compiled here, but for
those that a CPU module cannot show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.analysis.programs import compiled, f32, s32, written
from jaxprof.hlo.analysis.barriers import REASONS, Barrier, barriers
from jaxprof.hlo.fusion_reasons import with_reasons
from jaxprof.hlo.model import Module

_X = f32(512, 512)
_Program = tuple[Callable[..., Any], tuple[Any, ...]]


def _updated(x: jax.Array, u: jax.Array, i: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(jnp.tanh(x), u, (i, 0))


def _unrolled(x: jax.Array) -> jax.Array:
    y = jnp.sin(x)
    for _ in range(3):
        y = y * 2 + 1
    return y


_UPDATE = (_X, f32(4, 512), s32())
_PAIRS: dict[str, tuple[_Program, _Program]] = {
    "control-flow": (
        (lambda x: lax.fori_loop(0, 100, lambda _, c: c * 2 + 1, jnp.sin(x)), (_X,)),
        (_unrolled, (_X,)),
    ),
    "library-call": (  # a factorisation, or a plain square
        (lambda x: jnp.linalg.cholesky(x @ x.T), (_X,)),
        (lambda x: x * x, (_X,)),
    ),
    "whole-array": (  # sorting to find the largest
        (lambda x: jnp.sort(x)[:, -1], (_X,)),
        (lambda x: jnp.max(x, 1), (_X,)),
    ),
    "layout": (
        (lambda x: (x.T, x.T + 1), (_X,)),
        (lambda x: (x, x + 1), (_X,)),
    ),
    "buffer-copy": (  # the old value is returned as well
        (lambda x, u, i: (jnp.tanh(x), _updated(x, u, i)), _UPDATE),
        (_updated, _UPDATE),
    ),
    "scatter": (
        (lambda x, i, u: x.at[i].add(jnp.sin(u)), (_X, s32(100), f32(100, 512))),
        (lambda x, u: x + jnp.sin(u), (_X, _X)),
    ),
    "reduction": (  # the mean is computed, or known
        (lambda x: x - x.mean(-1, keepdims=True), (_X,)),
        (lambda x, mean: x - mean, (_X, f32(512, 1))),
    ),
    "several-users": (  # a softmax, or only its denominator
        (lambda x: (lambda e: e / e.sum(-1, keepdims=True))(jnp.exp(x)), (_X,)),
        (lambda x: jnp.exp(x).sum(-1), (_X,)),
    ),
    "program-output": (
        (lambda x: (lambda y: (y, jnp.tanh(y).sum()))(jnp.sin(x)), (_X,)),
        (lambda x: jnp.tanh(jnp.sin(x)).sum(), (_X,)),
    ),
    "recomputation": (  # one exponential for each row, or for each element
        (lambda x, y: jnp.exp(x)[:, None] * y, (f32(512), _X)),
        (lambda x, y: jnp.exp(x) * y, (_X, _X)),
    ),
    "not-told": (
        (lambda x: lax.associative_scan(jnp.add, x), (f32(1000, 8),)),
        (lambda x: x + x, (f32(1000, 8),)),
    ),
}


def _reasons(module: Module) -> set[str]:
    return {barrier.reason for barrier in barriers(module)}


@pytest.mark.parametrize("reason", _PAIRS)
def test_a_barrier_appears_and_the_edit_removes_it(reason: str) -> None:
    (with_it, arguments), (without_it, other_arguments) = _PAIRS[reason]
    assert reason in _reasons(compiled(with_it, *arguments))
    assert reason not in _reasons(compiled(without_it, *other_arguments))


_DUMP = """fusion_steps {
  update_priority {
    producer_name: "y"
    consumer_names: "z"
    us_fused: 1.5
    us_unfused: 4.5
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "y"
    reason: "%s"
  }
}
gpu_device_info {
}
"""
_TWO = (
    "ENTRY main {\n  x = f32[64,64] parameter(0)\n  y = f32[64,64] negate(x)\n  ROOT z = f32[64,64] multiply(y, y)\n}\n"
)


def test_the_last_word_of_xla_is_the_reason() -> None:
    (barrier,) = barriers(written(with_reasons(_TWO, _DUMP % "no valid tilings found")))
    assert (barrier.reason, barrier.stated) == ("stated", "no valid tilings found")
    assert "XLA: no valid tilings found" in barrier.words


@pytest.mark.parametrize(
    "dump",
    [
        "",  # none
        _DUMP.partition("fusion_steps {\n  producer_ineligible")[0],  # fusing would have paid: no reason against it
        (_DUMP % "x").replace("gpu_device_info", 'fusion_steps {\n  fusion {\n    producer_name: "y"\n  }\n}\ngpu'),
        (_DUMP % "x").replace('"y"', '"other"'),
    ],
)
def test_without_its_word_the_reason_is_derived(dump: str) -> None:
    (barrier,) = barriers(written(with_reasons(_TWO, dump)))
    assert (barrier.reason, barrier.stated) == ("not-told", "")


def test_what_xla_says_of_any_such_kernel_does_not_hide_what_it_is() -> None:
    product = "dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = with_reasons(_TWO.replace("multiply(y, y)", product), _DUMP % "the consumer is not fusible")
    (barrier,) = barriers(written(text))
    assert (barrier.reason, barrier.stated) == ("matrix-product", "the consumer is not fusible")


_PARTS = """
    add {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }}

    summing {{
      p = f32[16,64] parameter(0)
      zero = f32[] constant(0)
      ROOT r = f32[64] reduce(p, zero), dimensions={{0}}, to_apply=add
    }}

    ENTRY main {{
      x = f32[16,64] parameter(0)
      y = f32[16,64] negate(x)
      sum = f32[64] fusion(y), kind=kInput, calls=summing, metadata={{op_name="jit(f)/{}"}}
      ROOT out = f32[64] sort(sum), dimensions={{0}}, to_apply=less
    }}
"""


@pytest.mark.parametrize(("made_of", "reason"), [("dot_general", "split-k"), ("reduce_sum", "reduction")])
def test_a_sum_that_xla_put_behind_a_product_is_told_from_one_of_the_program(made_of: str, reason: str) -> None:
    found = {barrier.producer: barrier.reason for barrier in barriers(written(_PARTS.format(made_of)))}
    assert found["sum"] == reason


def test_dimensions_of_one_element_move_nothing() -> None:
    text = """ENTRY main {{
      x = f32[64,{0}]{{1,0}} parameter(0)
      y = f32[64,{0}]{{1,0}} negate(x)
      ROOT z = f32[64,{0}]{{0,1}} copy(y)
    }}"""
    assert _reasons(written(text.format(8))) == {"layout"}
    assert _reasons(written(text.format(1))) == {"buffer-copy"}


@pytest.mark.parametrize(
    ("along", "config", "reason"),
    [
        (1, ', backend_config={"outer_dimension_partitions":["2"]}', "cpu-rule"),
        (0, ', backend_config={"outer_dimension_partitions":["2"]}', "not-told"),
        (1, "", "not-told"),  # not known to be a CPU's
    ],
)
def test_a_cpu_leaves_concatenations_along_the_fastest_dimension_alone(along: int, config: str, reason: str) -> None:
    module = written(f"""ENTRY main {{
      x = f32[64,64]{{1,0}} parameter(0)
      y = f32[128,128]{{1,0}} concatenate(x, x), dimensions={{{along}}}
      ROOT z = f32[128,128]{{1,0}} negate(y){config}
    }}""")
    assert _reasons(module) == {reason}


_REDUCED = """
    add {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }}

    ENTRY main {{
      x = f32[1024] parameter(0)
      partial = f32[1024] negate(x)
      {exchange}
      ROOT out = f32[1024] multiply(whole, whole)
    }}
"""


def test_communication_between_devices_and_its_pair() -> None:
    """The sum over devices, or the same on one device."""
    with_it = written(
        _REDUCED.format(exchange="whole = f32[1024] all-reduce(partial), replica_groups={}, to_apply=add")
    )
    assert [barrier.reason for barrier in barriers(with_it)] == ["communication", "communication"]
    without_it = written(_REDUCED.format(exchange="whole = f32[1024] add(partial, partial)"))
    assert "communication" not in _reasons(without_it)


def test_a_matrix_product_of_xlas_own_and_its_pair() -> None:
    text = "ENTRY main {{\n  x = f32[64,64] parameter(0)\n  y = f32[64,64] negate(x)\n  ROOT z = f32[64,64] {}\n}}"
    product = written(text.format("dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
    assert _reasons(product) == {"matrix-product"}
    assert _reasons(written(text.format("multiply(y, y)"))) == {"not-told"}


def _sum_of(count: int) -> Module:
    """A GPU fusion of `count` arrays, and one that takes its result with another `count`."""

    def names(prefix: str) -> str:
        return ", ".join(f"{prefix}{number}" for number in range(count))

    def body(extra: str) -> str:
        lines = [f"  p{number} = f32[1024] parameter({number})" for number in range(count + bool(extra))]
        total = "p0"
        for number in range(1, count + bool(extra)):
            lines.append(f"  s{number} = f32[1024] add({total}, p{number})")
            total = f"s{number}"
        return "\n".join([*lines, f"  ROOT r = f32[1024] negate({total})"])

    inputs = "\n".join(
        f"  {prefix}{number} = f32[1024] parameter({number + offset})"
        for prefix, offset in (("a", 0), ("b", count))
        for number in range(count)
    )
    return written(
        f"first {{\n{body('')}\n}}\n\nsecond {{\n{body('more')}\n}}\n\nENTRY main {{\n{inputs}\n"
        f"  one = f32[1024] fusion({names('a')}), kind=kLoop, calls=first\n"
        f"  ROOT two = f32[1024] fusion({names('b')}, one), kind=kLoop, calls=second\n}}"
    )


def test_the_size_limit_of_a_fusion_and_its_pair() -> None:
    """Sixty arrays on each side exceed the 96 operands of a fusion; ten do not."""
    assert _reasons(_sum_of(60)) == {"size-limit"}
    assert _reasons(_sum_of(10)) == {"not-told"}


def test_every_reason_has_a_pair() -> None:
    assert {*_PAIRS, "communication", "matrix-product", "size-limit", "stated", "split-k", "cpu-rule"} == set(REASONS)


def _only(module: Module, reason: str) -> Barrier:
    (found,) = (barrier for barrier in barriers(module) if barrier.reason == reason)
    return found


def test_the_bytes_of_a_barrier_are_what_one_kernel_would_not_move() -> None:
    """The only reader: written and read once less. One of two readers: read once less. A result: it is written."""
    alone = _only(compiled(lambda x: jnp.sort(jnp.sin(x)), _X), "whole-array")
    assert alone.bytes == 2 * 512 * 512 * 4
    (with_it, arguments), _ = _PAIRS["several-users"]
    assert {b.bytes for b in barriers(compiled(with_it, *arguments)) if b.reason == "several-users"} == {512 * 512 * 4}
    (with_it, arguments), _ = _PAIRS["program-output"]
    assert _only(compiled(with_it, *arguments), "program-output").bytes == 512 * 512 * 4


def test_the_list_begins_with_what_costs_most_and_has_no_scalars() -> None:
    found = barriers(compiled(lambda x: jax.nn.softmax(jnp.sort(x)), _X))
    assert [barrier.bytes for barrier in found] == sorted((barrier.bytes for barrier in found), reverse=True)
    assert all(barrier.shape.rank for barrier in found)
    assert all(barrier.producer in barrier.words and barrier.consumer in barrier.words for barrier in found)


def test_the_reason_is_also_there_without_the_two_names() -> None:
    found = barriers(_sum_of(3))[0]
    assert found.words == f"{found.producer} and {found.consumer}: {found.why}"


def test_a_module_before_optimisation_has_no_barriers() -> None:
    module = written(
        "HloModule m\n\nENTRY main {\n  x = f32[9] parameter(0)\n  y = f32[9] sine(x)\n  ROOT z = f32[9] negate(y)\n}"
    )
    assert barriers(module) == ()
