"""Live sizes by hand, and against what XLA assigned to real programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jaxprof.hlo.analysis.liveness import liveness
from jaxprof.hlo.read.parse import module

KIB = 1024

CHAIN = """HloModule chain, is_scheduled=true

%inside (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  ROOT %n = f32[256]{0} negate(%p)
}

ENTRY %main (x: f32[256], y: f32[512]) -> f32[256] {
  %x = f32[256]{0} parameter(0), metadata={op_name="x"}
  %y = f32[512]{0} parameter(1)
  %big = f32[512]{0} custom-call(%y), custom_call_target="f", \
metadata={op_name="jit(f)/f" source_file="me.py" source_line=7}
  %seen = f32[512]{0} bitcast(%big)
  %small = f32[256]{0} custom-call(%seen), custom_call_target="g"
  %loop = f32[256]{0} fusion(%small), kind=kLoop, calls=%inside
  ROOT %out = f32[256]{0} custom-call(%loop, %x), custom_call_target="h"
}
"""

LOOP = """HloModule loop, is_scheduled=true

%body (p: (s32[], f32[256])) -> (s32[], f32[256]) {
  %p = (s32[], f32[256]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[256]{0} get-tuple-element(%p), index=1
  %scratch = f32[1024]{0} custom-call(%v), custom_call_target="f"
  %next = f32[256]{0} custom-call(%scratch), custom_call_target="g"
  ROOT %t = (s32[], f32[256]{0}) tuple(%i, %next)
}

%condition (q: (s32[], f32[256])) -> pred[] {
  %q = (s32[], f32[256]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = f32[256]{0} copy(%x)
  %state = (s32[], f32[256]{0}) tuple(%zero, %start)
  %while = (s32[], f32[256]{0}) while(%state), condition=%condition, body=%body
  ROOT %out = f32[256]{0} get-tuple-element(%while), index=1
}
"""


def test_values_live_from_their_instruction_to_their_last_use() -> None:
    found = liveness(module(CHAIN))
    arguments = 3 * KIB
    # y goes in; `big` is 2 KiB and lives until `small` is made of it; the fusion takes the place of `small`.
    assert found.live_bytes == tuple(arguments + size for size in (0, 0, 2 * KIB, 2 * KIB, 3 * KIB, KIB, 2 * KIB))
    assert found.peak_bytes == max(found.live_bytes)
    assert found.parts == {"argument": 3 * KIB, "output": 0, "temporary": 3 * KIB, "constant": 0}
    big = next(value for value in found.values if value.instruction == "big")
    assert (big.bytes, big.kind, big.shape) == (2 * KIB, "temporary", "f32[512]{0}")
    assert (big.op_name, big.file, big.line, big.at_peak) == ("jit(f)/f", "me.py", 7, True)
    assert found.points[found.peak_at].instruction == "small"
    assert [value.instruction for value in found.alive(found.peak_at)] == ["y", "big", "x", "small"]
    assert [value.instruction for value in found.alive(5)] == ["y", "x", "loop"], "the loop has the place of small"


def test_a_loop_keeps_its_state_in_place_and_adds_what_its_body_needs() -> None:
    found = liveness(module(LOOP))
    # x, the two constants, the state (which is the output), and the body's scratch: the next state is where it was.
    assert found.peak_bytes == KIB + 5 + KIB + 4 * KIB
    assert found.parts == {"argument": KIB, "output": KIB, "temporary": 4 * KIB, "constant": 5}
    assert {value.instruction for value in found.values if value.at_peak} >= {"x", "start", "scratch"}
    scratch = next(value for value in found.values if value.instruction == "scratch")
    assert found.points[found.peak_at].instruction == "while"
    assert scratch.spans == ((4, 4),), "what the body needs is alive where the loop runs, and nowhere else"


def test_a_donated_argument_is_its_output_too() -> None:
    text = LOOP.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }")
    found = liveness(module(text))
    assert found.parts["output"] == 0


SCATTER = """HloModule embedding, is_scheduled=true

%zeros () -> f32[256] {
  %c = f32[] constant(0)
  ROOT %b = f32[256]{0} broadcast(%c), dimensions={}
}

%add (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %s = f32[] add(%l, %r)
}

%fused (t: f32[256], i: s32[4,1], u: f32[4]) -> f32[256] {
  %t = f32[256]{0} parameter(0)
  %i = s32[4,1]{1,0} parameter(1)
  %u = f32[4]{0} parameter(2)
  ROOT %scattered = f32[256]{0} scatter(%t, %i, %u), to_apply=%add, update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1
}

ENTRY %main (i: s32[4,1], u: f32[4]) -> f32[256] {
  %i = s32[4,1]{1,0} parameter(0)
  %u = f32[4]{0} parameter(1)
  %gradient = f32[256]{0} fusion(), kind=kLoop, calls=%zeros
  ROOT %out = f32[256]{0} fusion(%gradient, %i, %u), kind=kInput, calls=%fused
}
"""


def test_a_fused_update_in_place_takes_the_place_of_what_it_updates() -> None:
    found = liveness(module(SCATTER))
    assert found.peak_bytes == 4 * 4 + 4 * 4 + KIB
    elsewhere = SCATTER.replace("scatter(%t, %i, %u)", "scatter(%zero, %i, %u)").replace(
        "  ROOT %scattered", "  %zero = f32[256]{0} negate(%t)\n  ROOT %scattered"
    )
    other = liveness(module(elsewhere))
    assert other.peak_bytes == 4 * 4 + 4 * 4 + 2 * KIB


@pytest.mark.parametrize("text", [CHAIN.replace(", is_scheduled=true", ""), "HloModule empty, is_scheduled=true\n"])
def test_without_a_schedule_nothing_is_said(text: str) -> None:
    assert liveness(module(text)) is None


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]]:
    import jax
    import jax.numpy as jnp

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def train(weights: Any, x: Any, y: Any) -> Any:
        def loss(weights: Any) -> Any:
            h = x
            for weight in weights:
                h = jnp.tanh(h @ weight)
            return ((h - y) ** 2).mean()

        return [weight - 0.1 * grad for weight, grad in zip(weights, jax.grad(loss)(weights), strict=True)]

    def recurrent(x: Any, w: Any) -> Any:
        def loss(w: Any) -> Any:
            def step(carry: Any, xi: Any) -> Any:
                carry = jnp.tanh(carry @ w + xi)
                return carry, carry

            return (jax.lax.scan(step, jnp.zeros((32, 64)), x)[1] ** 2).mean()

        return jax.grad(loss)(w)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2)) @ v

    def branches(p: Any, x: Any) -> Any:
        return jax.lax.cond(p, lambda x: (x @ x) @ x, lambda x: jnp.sin(x).T, x)

    layers = ([array(256, 256)] * 3, array(128, 256), array(128, 256))
    return {
        "train": (train, layers, ()),
        "train donated": (train, layers, (0,)),
        "recurrent": (recurrent, (array(16, 32, 64), array(64, 64)), ()),
        "attention": (attention, (array(4, 128, 64),) * 3, ()),
        "branches": (branches, (jax.ShapeDtypeStruct((), jnp.bool_), array(128, 128)), ()),
        "fft": (lambda x: jnp.abs(jnp.fft.fft(x)) ** 2, (array(16, 1024),), ()),
        "sort": (lambda x: (jnp.sort(x), x.sum()), (array(128, 128),), ()),
        "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T), (array(128, 128),), ()),
    }


@pytest.mark.parametrize("name", _programs())
def test_the_estimate_is_below_what_xla_holds_and_not_by_much(name: str) -> None:
    import jax

    function, arguments, donated = _programs()[name]
    compiled: Any = jax.jit(function, donate_argnums=donated).lower(*arguments).compile()
    known = compiled.memory_analysis()
    found = liveness(module(compiled.as_text()))
    held = (
        known.argument_size_in_bytes + known.output_size_in_bytes - known.alias_size_in_bytes + known.temp_size_in_bytes
    )
    assert found.parts["argument"] == known.argument_size_in_bytes
    # XLA holds the outputs all the time and keeps branches apart; here a value counts only while it is needed.
    assert held / 1.36 - 4 * KIB <= found.peak_bytes <= held + 4 * KIB
    assert sum(found.parts.values()) == found.peak_bytes == max(found.live_bytes)
    for number, point in enumerate(found.points):
        assert sum(value.bytes for value in found.alive(number)) == point.bytes, point.instruction
