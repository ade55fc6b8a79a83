"""Weights must not end in a file: large literals leave every kind of program text, and nothing else does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.engine.measure.stages import redact_literals

NUMBERS = ", ".join(map(str, range(40)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"%c = f32[40]{{0}} constant({{{NUMBERS}}})", "%c = f32[40]{0} constant({...})"),
        (
            f'constant({{ {{ {NUMBERS} }}, {{ {NUMBERS} }} }}), metadata={{op_name="f"}}',
            'constant({...}), metadata={op_name="f"}',
        ),
        (f"stablehlo.constant dense<[{NUMBERS}]> : tensor<40xi32>", "stablehlo.constant dense<[...]> : tensor<40xi32>"),
        ('dense<"0x0123ABCD"> : tensor<2xf32>', "dense<...> : tensor<2xf32>"),
        (f"let a = [{NUMBERS}] in", "let a = [...] in"),
        (f"cut off constant({{{NUMBERS}", "cut off constant({...}"),
    ],
)
def test_a_large_literal_is_elided(text, shown):
    assert redact_literals(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "%c = f32[4]{0} constant({1, 2, 3, 4})",
        "%c = f32[] constant(516.168091)",
        'fusion(%a, %b), kind=kLoop, calls=%f, metadata={op_name="constant({" stack_frame_id=3}',
        "dense<[1, 2, 3]> : tensor<3xi32>",
        f'backend_config="[{NUMBERS}]"',
        f"dot_general[dimension_numbers=(({NUMBERS}), ())] a b",
    ],
)
def test_everything_else_stays(text):
    assert redact_literals(text) == text


@given(st.text(alphabet="dense<>constant({})[]\"'0123456789,. \n\\x"))
def test_any_text_is_taken_and_never_grows(text):
    assert len(redact_literals(text)) <= len(text) + 8


def test_no_stage_of_a_real_program_holds_the_weights():
    weights = np.random.default_rng(0).random((40, 40), dtype=np.float32)
    short = np.arange(20, dtype=np.float32) + 0.125

    def model(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ weights)[:20] * short

    traced = jax.jit(model).trace(np.ones(40, np.float32))
    lowered = traced.lower()
    for text in (str(traced.jaxpr), lowered.as_text(), lowered.compile().as_text() or ""):
        shown = redact_literals(text)
        assert "17.125" not in shown
        assert "1.712500e+01" not in shown
    assert "1.712500e+01" in lowered.as_text(), "the plain text holds them"
