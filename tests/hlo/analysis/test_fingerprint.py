# ruff: noqa: E501 - an instruction of HLO is one line
"""Fingerprints that do not depend on names, ids or order; and what changed between two modules."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import pytest

from hlo.analysis.programs import compiled, f32, written
from jaxprof.hlo.analysis.fingerprint import diff, fingerprint

_TEXT = """
    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ENTRY main {
      x = f32[8,4]{1,0} parameter(0)
      y = f32[8,4]{1,0} parameter(1)
      c = f32[] constant(0)
      m = f32[8,4]{1,0} multiply(x, y)
      n = f32[8,4]{1,0} negate(x)
      d = f32[8,4]{1,0} subtract(m, n)
      ROOT r = f32[8]{0} reduce(d, c), dimensions={1}, to_apply=add
    }
"""


def _print(text: str) -> str:
    return fingerprint(written(text), next(name for name in written(text).computations if "add" not in name))


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"\b([mnd])\b", r"\1_renamed.17"),
        (r"\bmain\b", "another"),
        (r"parameter\((\d)\)", r'parameter(\1), metadata={op_name="elsewhere" stack_frame_id=3}'),
        (r"(n = [^\n]*)\n", r'\1, backend_config={"operation_queue_id":"7"}, frontend_attributes={k="v"}' + "\n"),
        (r"(  m = [^\n]*\n)(\s*n = [^\n]*\n)", r"\2\1"),  # another order of the same things
    ],
)
def test_names_places_and_order_do_not_count(pattern: str, replacement: str) -> None:
    changed = re.sub(pattern, replacement, _TEXT)
    assert changed != _TEXT
    assert _print(changed) == _print(_TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("negate", "abs"),
        ("{1,0}", "{0,1}"),
        ("f32[8,4]", "f32[8,5]"),
        ("constant(0)", "constant(1)"),
        ("subtract(m, n)", "subtract(n, m)"),
        ("dimensions={1}", "dimensions={0}"),
        ("add(a, b)", "maximum(a, b)"),  # in the computation that is called
        ("multiply(x, y)", "multiply(x, x)"),
        ("parameter(1)", "parameter(2)"),
    ],
)
def test_what_is_computed_counts(old: str, new: str) -> None:
    assert old in _TEXT
    assert _print(_TEXT.replace(old, new)) != _print(_TEXT)


def test_side_effects_that_nothing_depends_on_count() -> None:
    text = "ENTRY main {\n  x = f32[8] parameter(0)\n  t = token[] after-all()\n%s  ROOT n = f32[8] negate(x)\n}"
    quiet = fingerprint(written(text % ""), "main")
    assert fingerprint(written(text % "  o = token[] outfeed(x, t)\n"), "main") != quiet


def test_a_library_call_counts_with_its_settings() -> None:
    text = 'ENTRY main {{\n  x = f32[8] parameter(0)\n  ROOT n = f32[8] custom-call(x), custom_call_target="f", backend_config={{"mode":"{}"}}\n}}'
    assert fingerprint(written(text.format("a")), "main") != fingerprint(written(text.format("b")), "main")


def test_the_same_program_compiled_twice_is_the_same_and_an_edit_shows_where() -> None:
    def program(x: jax.Array) -> jax.Array:
        return jnp.sort(jnp.tanh(x) * 2).sum() + 1

    def edited(x: jax.Array) -> jax.Array:
        return jnp.sort(jnp.tanh(x) * 3).sum() + 1

    first, second = compiled(program, f32(1000)), compiled(program, f32(1000))
    assert {difference.status for difference in diff(first, second)} == {"same"}
    statuses = [difference.status for difference in diff(first, compiled(edited, f32(1000)))]
    assert statuses.count("changed") == 2  # the fusion with the factor, and the entry that calls it
    assert set(statuses) == {"same", "changed"}
