"""Pairs of programs whose truth is known: the same twice, one fusion broken, one dtype, one donation, one size."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from analysis.made_runs import hlo_text, planned, session
from hlo.corpus import real_files
from jaxprof import events as e
from jaxprof.analysis.gate import wider_products
from jaxprof.analysis.run_difference import ModuleDifference, RunDifference, module_difference, run_difference
from jaxprof.hlo.read import parse
from jaxprof.session import Session
from report.sessions import kernel_times

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)


def _session(hlo: str | None, *events: e.Event, **plan: Any) -> Session:
    text = [hlo_text(hlo)] if hlo is not None else []
    return session(planned(**plan), text, events)


def _compiled(function: Callable[..., Any], *shapes: Any, **options: Any) -> Session:
    """A run of `function` with what the engine reports of a compiled program."""
    lowered = jax.jit(function, **options).lower(*(shapes or (X,)))
    program, asked = lowered.compile(), lowered.as_text(dialect="hlo")
    memory, text = program.memory_analysis(), program.as_text()
    assert text is not None
    return _session(
        text,
        hlo_text(asked, name="hlo_before"),
        e.MemoryReported(
            run="r1", alias_bytes=memory.alias_size_in_bytes, argument_bytes=memory.argument_size_in_bytes
        ),
    )


def _difference(one: Session, other: Session) -> RunDifference:
    return run_difference(one, one.runs["r1"], other, other.runs["r1"])


def _changed(found: RunDifference) -> set[str]:
    return {fact.code for fact in found.facts if fact.differs}


def _fused(x: jax.Array) -> jax.Array:
    return jnp.tanh(x * 2.0 + 1.0)


def test_the_same_program_twice_does_not_differ():
    def again(x: jax.Array) -> jax.Array:
        return _fused(x)

    found = _difference(_compiled(_fused), _compiled(again))
    assert (found.kernels.differ, _changed(found), found.unlike) == (False, set(), ())
    assert {row.status for row in found.kernels.rows} == {"same"}
    assert found.differs is False
    assert {one.status for one in found.buffers or ()} == {"same"}


def _of_modules(before: str, after: str) -> ModuleDifference:
    return module_difference(parse.modules(before)[0], parse.modules(after)[0])


FUSED = """HloModule jit_f, is_scheduled=true

%inner (a: f32[1000]) -> f32[1000] {
  %a = f32[1000]{0} parameter(0)
  %e = f32[1000]{0} exponential(%a)
  ROOT %t = f32[1000]{0} tanh(%e)
}

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  ROOT %exp_tanh_fusion = f32[1000]{0} fusion(%x), kind=kLoop, calls=%inner, metadata={op_name="jit(f)/tanh"}
}
"""
BROKEN = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  %e = f32[1000]{0} exponential(%x), metadata={op_name="jit(f)/exp"}
  ROOT %t = f32[1000]{0} tanh(%e), metadata={op_name="jit(f)/tanh"}
}
"""


COLLECTIVE = """HloModule jit_f, is_scheduled=true, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  ROOT %all-reduce = f32[1000]{0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%sum
}
"""


LOOP = """HloModule m, is_scheduled=true

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[8]{0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %e = f32[8]{0} exponential(%v)
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %e)
}

%cond (p: (s32[], f32[8])) -> pred[] {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant(10)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (x: f32[8]) -> (s32[], f32[8]) {
  %x = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8]{0}) tuple(%zero, %x)
  ROOT %w = (s32[], f32[8]{0}) while(%init), condition=%cond, body=%body
}
"""
FUSION = """HloModule m, is_scheduled=true

%inner (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  ROOT %s = f32[8]{0} subtract(%a, %b)
}

ENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {
  %a.1 = f32[8]{0} parameter(0)
  %b.1 = f32[8]{0} parameter(1)
  ROOT %f = f32[8]{0} fusion(%a.1, %b.1), kind=kLoop, calls=%inner
}
"""


def _chain(third: str) -> str:
    """Steps of a loop that Python unrolled have one name and one line; of the third the second operation differs."""
    step = '%{0} = f32[1000]{{0}} {1}(%{2}), metadata={{op_name="jit(f)/{1}"}}'
    names = ["x", "m1", "r1", "m2", "r2", "m3", "r3"]
    lines = [step.format(name, "negate" if name[0] == "m" else "cosine", before) for before, name in pairwise(names)]
    lines[3] = lines[3].replace("cosine", third)
    body = "\n  ".join(["%x = f32[1000]{0} parameter(0)", *lines[:-1], f"ROOT {lines[-1]}"])
    return f"HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[1000]) -> f32[1000] {{\n  {body}\n}}\n"


ROOT = "ROOT %t = f32[1000]{0} tanh(%e)"
WITH_ORIGINS = FUSED.replace("exponential(%a)", 'exponential(%a), metadata={op_name="jit(f)/exp"}').replace(
    "tanh(%e)", 'tanh(%e), metadata={op_name="jit(f)/tanh"}'
)
APART = BROKEN.replace("exponential(%x)", "exponential(%y)").replace("tanh(%e)", "tanh(%x)")
APART = APART.replace("parameter(0)", "parameter(0)\n  %y = f32[1000]{0} parameter(1)")
NEGATED = FUSED.replace(ROOT, "%t = f32[1000]{0} tanh(%e)\n  ROOT %n = f32[1000]{0} negate(%t)")
TWICE = FUSED.replace(
    ROOT,
    "%n = f32[1000]{0} negate(%e)\n  %m = f32[1000]{0} negate(%n)\n  ROOT %t = f32[1000]{0} tanh(%m)",
)


@pytest.mark.parametrize(
    ("before", "after", "rows", "change"),
    [
        (FUSED, BROKEN, ["new e", "changed t"], ("operations", "exponential", "")),
        (BROKEN, FUSED, ["gone e", "changed exp_tanh_fusion"], ("operations", "", "exponential")),
        # a kernel that was split or merged says from or into what
        (WITH_ORIGINS, BROKEN, ["new e of exp_tanh_fusion", "changed t"], None),
        (BROKEN, WITH_ORIGINS, ["gone e of exp_tanh_fusion", "changed exp_tanh_fusion"], None),
        (WITH_ORIGINS, APART, ["new e", "changed t"], None),  # the same operation in another place is no part of it
        (_chain("cosine"), _chain("tanh"), ["changed r2"], None),  # of equal kernels the one that stands there
        # XLA gives a fusion the origin of its last operation
        (
            FUSED,
            NEGATED.replace("jit(f)/tanh", "jit(f)/neg"),
            ["changed exp_tanh_fusion"],
            ("operations", "", "negate"),
        ),
        (FUSED, TWICE, ["changed exp_tanh_fusion"], ("operations", "", "2 negate")),
        (FUSION, FUSION.replace("(%a, %b)", "(%b, %a)"), ["changed f"], None),  # other connections
        (FUSED, FUSED.replace("f32", "bf16"), ["changed exp_tanh_fusion"], None),
        (LOOP, LOOP.replace("constant(10)", "constant(12)"), ["changed e"], ("count", 10, 12)),
        (
            COLLECTIVE,
            COLLECTIVE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}"),
            ["changed all-reduce"],
            ("settings", "replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}"),
        ),
        (COLLECTIVE, COLLECTIVE.replace("all-reduce =", "all-reduce.7 ="), [], None),
    ],
)
def test_the_kernels_that_differ_and_in_what(before, after, rows, change):
    found = [row for row in _of_modules(before, after).kernels.rows if row.status != "same"]
    said = [f"{row.status} {row.name}" + (f" of {', '.join(row.moved)}" if row.moved else "") for row in found]
    assert set(said) >= set(rows)
    assert len(said) == len(rows) or before == LOOP
    changes = [(one.what, one.before, one.after) for row in found for one in row.changes]
    assert change is None or change in changes


def test_a_lost_donation_costs_memory_and_no_kernel():
    kept, donated = _compiled(_fused), _compiled(_fused, donate_argnums=0)
    found = _difference(donated, kept)
    assert not found.kernels.differ
    fact = found.fact("donated")
    assert (fact.before, fact.after, fact.differs) == (256 * 512 * 4, 0, True)
    assert found.differs is True


def test_another_size_is_not_the_same_measurement():
    small = _session(None, parameters={"n": 4})
    found = _difference(small, _session(None, parameters={"n": 8}))
    assert found.unlike == ("another n (4, 8)",)
    other = _difference(small, _session(None, parameters={"n": 4}, device="cuda:0", precision="highest"))
    assert [text.partition(" (")[0] for text in other.unlike] == ["another kind of device", "another precision"]


def test_what_is_unknown_differs_from_nothing():
    found = _difference(_session(None), _compiled(_fused))
    assert (found.kernels, found.collectives, found.findings) == (None, None, None)
    flops = found.fact("flops")
    assert (flops.before, flops.differs, flops.growth) == (None, None, None)
    assert found.differs is None
    assert found.fact("compiles") is None
    nothing = _difference(_session(None), _session("HloModule broken"))
    assert nothing.kernels is None or not nothing.kernels.rows


def test_collectives_by_kind_groups_and_bytes():
    found = _of_modules(COLLECTIVE, COLLECTIVE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}"))
    rows = [(one.opcode, one.group_size, one.before_count, one.after_count) for one in found.collectives]
    assert rows == [("all-reduce", 4, 1, 0), ("all-reduce", 2, 0, 1)]
    assert [(one.before_bytes, one.differs) for one in found.collectives] == [(4000, True), (0, True)]
    assert [one.differs for one in _of_modules(COLLECTIVE, COLLECTIVE).collectives] == [False]


CHAIN = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  %exp = f32[1000]{0} exponential(%x), metadata={op_name="jit(f)/exp"}
  %log = f32[1000]{0} log(%exp), metadata={op_name="jit(f)/log"}
  ROOT %out = f32[1000]{0} sine(%log), metadata={op_name="jit(f)/sin"}
}
"""


def _capture(**seconds: float) -> e.KernelsMeasured:
    rows = [kernel_times(name, took, 4, device="cpu:0") for name, took in seconds.items()]
    return e.KernelsMeasured(run="r1", kind="run", calls=2, rows=rows)


def _times(hlo: str, **seconds: float) -> Session:
    return _session(hlo, _capture(**seconds))


def test_the_parts_of_the_kernels_add_up_to_the_difference_of_the_totals():
    other = CHAIN.replace("exp = f32", "exp.5 = f32").replace("log(%exp)", "log(%exp.5)").replace("sine", "cosine")
    one = _times(CHAIN, exp=4e-6, log=2e-6, out=8e-6, stray=2e-6)
    two = _times(other, **{"exp.5": 10e-6, "out": 2e-6, "while": 6e-6})
    found = _difference(one, two).kernels
    assert sum(row.part_seconds or 0.0 for row in found.rows) == pytest.approx(found.difference_seconds)
    assert found.difference_seconds == pytest.approx((18e-6 - 16e-6) / 2)
    parts = [abs(row.part_seconds or 0.0) for row in found.rows]
    assert parts == sorted(parts, reverse=True)
    by_name = {row.name: row for row in found.rows}
    assert (by_name["exp.5"].status, by_name["exp.5"].speed) == ("same", "slower")
    assert (by_name["out"].status, by_name["out"].speed) == ("changed", "faster")
    assert (by_name["log"].after_seconds, by_name["log"].speed) == (None, "")
    assert {name for name, row in by_name.items() if row.status == "outside"} == {"stray", "while"}


_WEIGHTS = jax.ShapeDtypeStruct((4, 64, 64), jnp.bfloat16)
_ACTIVATIONS = jax.ShapeDtypeStruct((32, 64), jnp.bfloat16)


def _layers(dtype: Any, times: int = 1) -> Session:
    """A scan of products that are asked for in this dtype, on arrays that are bfloat16 either way."""

    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        for _ in range(times):
            x = (x.astype(dtype) @ w.astype(dtype)).astype(jnp.bfloat16)
        return x, None

    return _compiled(lambda w, x: jax.lax.scan(layer, x, w)[0], _WEIGHTS, _ACTIVATIONS)


def test_an_upcast_of_products_shows_where_the_compiled_program_hides_it():
    narrow, wide, more = _layers(jnp.bfloat16), _layers(jnp.float32), _layers(jnp.bfloat16, times=2)
    found = _difference(narrow, wide)
    operands = 4 * (32 * 64 + 64 * 64)
    flops = 4 * 2 * 32 * 64 * 64
    fact = found.fact("product_bytes")
    assert (fact.before, fact.after, fact.growth) == (2 * operands, 4 * operands, 1.0)
    assert [(each.code, each.before, each.after) for each in found.products or ()] == [
        ("f32", 0, flops),
        ("bf16", flops, 0),
    ]
    assert "f32" in wider_products(found, limited=False)
    assert "--fail-on" not in wider_products(found, limited=True)
    assert not wider_products(_difference(wide, narrow), limited=False)
    assert not wider_products(_difference(narrow, more), limited=False), "more products of the same dtype"
    assert _difference(narrow, narrow).fact("product_bytes").growth == 0  # type: ignore[union-attr]


def _launched(*compile_seconds: float, announced: int = 0) -> Session:
    events: list[e.Event] = []
    for number, took in enumerate(compile_seconds, 1):
        events.append(e.WorkerStarted(run="r1", pid=number, python="p", launch=number))
        events.append(e.PhaseEnded(run="r1", phase="compile", seconds=took))
    events += [e.CompileObserved(run="r1", function="f", stage="compile", seconds=1.0)] * announced
    return _session(None, *events)


def test_compiles_are_those_of_one_launch_and_unknown_where_that_cannot_be_told():
    fact = _difference(_launched(1.0), _launched(1.0, announced=3)).fact("compiles")
    assert (fact.before, fact.after, fact.growth) == (1, 3, 2.0)
    several = _difference(_launched(1.0), _launched(1.0, 1.0, announced=6)).fact("compiles")
    assert (several.after, several.differs) == (None, None)


@pytest.mark.parametrize("path", real_files("*after_optimizations.txt")[:1], ids=lambda path: path.name[:30])
def test_a_real_module_does_not_differ_from_itself_renumbered(path):
    text = path.read_text()
    other = re.sub(r"(%[a-z_]*fusion)\.(\d+)", r"\1.9\2", text)
    assert other != text
    found = _of_modules(text, other)
    assert {row.status for row in found.kernels.rows} == {"same"}
    assert not any(fact.differs for fact in found.facts)
