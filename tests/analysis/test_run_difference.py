"""Pairs of programs whose truth is known: the same twice, one fusion broken, one dtype, one donation, one size."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from folding import fold
from hlo.corpus import real_files
from jaxprof import events as e
from jaxprof.analysis.gate import wider_products
from jaxprof.analysis.kernel_difference import kernel_differences
from jaxprof.analysis.measured import MeasuredKernel, measured
from jaxprof.analysis.run_difference import RunDifference, module_difference, run_difference
from jaxprof.hlo.model import Module
from jaxprof.hlo.read import parse
from jaxprof.session import Session

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)


def _row(name: str, seconds: float, **more: Any) -> e.KernelTimes:
    keys = ("total_seconds", "self_seconds", "wall_seconds", "median_seconds", "minimum_seconds", "maximum_seconds")
    return e.KernelTimes(name=name, device="cpu:0", **{"count": 4, **dict.fromkeys(keys, seconds), **more})


def _session(hlo: str | None, *events: e.Event, device: str = "cpu:0", **plan: Any) -> Session:
    spec = e.RunSpec(workload="step", variant="jit", how="jit", device=device, **plan)
    text = [e.TextRecorded(run="r1", name="hlo", text=hlo, bytes=len(hlo))] if hlo is not None else []
    return fold(e.Header(), [e.RunPlanned(run="r1", spec=spec), *text, *events])


def _compiled(function: Callable[..., Any], *shapes: Any, **options: Any) -> Session:
    """A run of `function` with what the engine reports of a compiled program."""
    lowered = jax.jit(function, **options).lower(*(shapes or (X,)))
    program, asked = lowered.compile(), lowered.as_text(dialect="hlo")
    memory, text = program.memory_analysis(), program.as_text()
    assert text is not None
    return _session(
        text,
        e.TextRecorded(run="r1", name="hlo_before", text=asked, bytes=len(asked)),
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


def test_the_same_program_twice_does_not_differ() -> None:
    def again(x: jax.Array) -> jax.Array:
        return _fused(x)

    found = _difference(_compiled(_fused), _compiled(again))
    assert (found.kernels.differ, _changed(found), found.unlike) == (False, set(), ())
    assert {row.status for row in found.kernels.rows} == {"same"}
    assert found.differs is False
    assert {one.status for one in found.buffers or ()} == {"same"}


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


def test_a_broken_fusion_is_a_kernel_more_and_twice_the_bytes() -> None:
    found = _difference(_session(FUSED), _session(BROKEN))
    assert found.differs is True
    kernels, traffic = found.fact("kernels"), found.fact("bytes")
    assert (kernels.before, kernels.after, traffic.growth) == (1, 2, 1.0)
    assert _changed(found) == {"kernels", "launches", "bytes"}
    by_status = {row.status: row for row in found.kernels.rows}
    assert {status: row.name for status, row in by_status.items()} == {"new": "e", "changed": "t"}
    changes = {one.what: (one.before, one.after) for one in by_status["changed"].changes}
    assert changes["operations"] == ("exponential", "")
    back = _difference(_session(BROKEN), _session(FUSED))
    assert {row.status: row.name for row in back.kernels.rows} == {"gone": "e", "changed": "exp_tanh_fusion"}


def _moved(before: str, after: str) -> set[tuple[str, str, tuple[str, ...]]]:
    found = module_difference(parse.modules(before)[0], parse.modules(after)[0]).kernels
    return {(row.status, row.name, row.moved) for row in found.rows if row.status != "same"}


def test_a_kernel_that_was_split_or_merged_says_from_or_into_what() -> None:
    fused = FUSED.replace("exponential(%a)", 'exponential(%a), metadata={op_name="jit(f)/exp"}')
    fused = fused.replace("tanh(%e)", 'tanh(%e), metadata={op_name="jit(f)/tanh"}')
    assert _moved(fused, BROKEN) == {("changed", "t", ()), ("new", "e", ("exp_tanh_fusion",))}
    assert _moved(BROKEN, fused) == {("changed", "exp_tanh_fusion", ()), ("gone", "e", ("exp_tanh_fusion",))}
    # the same operation in another place of the program is no part of it
    apart = BROKEN.replace("exponential(%x)", "exponential(%y)").replace("tanh(%e)", "tanh(%x)")
    apart = apart.replace("parameter(0)", "parameter(0)\n  %y = f32[1000]{0} parameter(1)")
    assert _moved(fused, apart) == {("changed", "t", ()), ("new", "e", ())}


def test_of_equal_kernels_that_is_the_changed_one_which_stands_there() -> None:
    """Steps of a loop that Python unrolled have one name and one line."""
    step = '%{0} = f32[1000]{{0}} {1}(%{2}), metadata={{op_name="jit(f)/{1}"}}'
    names = ["x", "m1", "r1", "m2", "r2", "m3", "r3"]
    lines = [step.format(name, "negate" if name[0] == "m" else "cosine", before) for before, name in pairwise(names)]
    chain = "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[1000]) -> f32[1000] {\n"
    chain += "\n".join(["  %x = f32[1000]{0} parameter(0)", *(f"  {line}" for line in lines[:-1])])
    chain += f"\n  ROOT {lines[-1]}\n}}\n"
    other = chain.replace(lines[3], lines[3].replace("cosine", "tanh"))
    found = module_difference(parse.modules(chain)[0], parse.modules(other)[0]).kernels
    assert [(row.before_name, row.after_name) for row in found.of("new", "gone", "changed")] == [("r2", "r2")]


def test_a_fusion_whose_last_operation_is_new_has_changed() -> None:
    """XLA gives a fusion the origin of its last operation."""
    other = FUSED.replace(
        "ROOT %t = f32[1000]{0} tanh(%e)", "%t = f32[1000]{0} tanh(%e)\n  ROOT %n = f32[1000]{0} negate(%t)"
    )
    found = _difference(_session(FUSED), _session(other.replace("jit(f)/tanh", "jit(f)/neg")))
    (row,) = found.kernels.rows
    assert row.status == "changed"
    assert ("operations", "", "negate") in {(one.what, one.before, one.after) for one in row.changes}


def test_an_upcast_says_which_kernel_computes_in_another_dtype() -> None:
    narrow = jax.ShapeDtypeStruct((256, 512), jnp.bfloat16)

    def upcast(x: jax.Array) -> jax.Array:
        return jnp.cumsum(x.astype(jnp.float32), axis=1).astype(jnp.bfloat16)

    found = _difference(_compiled(lambda x: jnp.cumsum(x, axis=1), narrow), _compiled(upcast, narrow))
    changes = [change for row in found.kernels.of("changed") for change in row.changes]
    said = " ".join(f"{change.before} {change.after}" for change in changes)
    names = " ".join(str(row.kernel.shape) for row in found.kernels.of("new", "gone", "changed") if row.kernel)
    assert found.kernels.differ
    assert "f32" in said + names


def test_a_lost_donation_costs_memory_and_no_kernel() -> None:
    kept, donated = _compiled(_fused), _compiled(_fused, donate_argnums=0)
    found = _difference(donated, kept)
    assert not found.kernels.differ
    fact = found.fact("donated")
    assert (fact.before, fact.after, fact.differs) == (256 * 512 * 4, 0, True)
    assert found.differs is True


def test_another_size_is_not_the_same_measurement() -> None:
    small = _session(None, parameters={"n": 4})
    found = _difference(small, _session(None, parameters={"n": 8}))
    assert found.unlike == ("another n (4, 8)",)
    other = _difference(small, _session(None, parameters={"n": 4}, device="cuda:0", precision="highest"))
    assert [text.partition(" (")[0] for text in other.unlike] == ["another kind of device", "another precision"]


def test_what_is_unknown_differs_from_nothing() -> None:
    found = _difference(_session(None), _compiled(_fused))
    assert (found.kernels, found.collectives, found.findings) == (None, None, None)
    flops = found.fact("flops")
    assert (flops.before, flops.differs, flops.growth) == (None, None, None)
    assert found.differs is None
    assert found.fact("compiles") is None
    nothing = _difference(_session(None), _session("HloModule broken"))
    assert nothing.kernels is None or not nothing.kernels.rows


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


def test_collectives_by_kind_groups_and_bytes() -> None:
    halves = COLLECTIVE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")
    found = _difference(_session(COLLECTIVE), _session(halves))
    rows = [(one.opcode, one.group_size, one.before_count, one.after_count) for one in found.collectives or ()]
    assert rows == [("all-reduce", 4, 1, 0), ("all-reduce", 2, 0, 1)]
    assert [one.before_bytes for one in found.collectives or ()] == [4000, 0]
    (row,) = found.kernels.rows
    assert [(one.what, one.before, one.after) for one in row.changes] == [
        ("settings", "replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}")
    ]
    same = _difference(_session(COLLECTIVE), _session(COLLECTIVE.replace("all-reduce =", "all-reduce.7 =")))
    assert (same.kernels.differ, [one.differs for one in same.collectives or ()]) == (False, [False])


CHAIN = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  %exp = f32[1000]{0} exponential(%x), metadata={op_name="jit(f)/exp"}
  %log = f32[1000]{0} log(%exp), metadata={op_name="jit(f)/log"}
  ROOT %out = f32[1000]{0} sine(%log), metadata={op_name="jit(f)/sin"}
}
"""


def _times(hlo: str, **seconds: float) -> Session:
    rows = [_row(name.replace("_", "-"), took) for name, took in seconds.items()]
    return _session(hlo, e.KernelsMeasured(run="r1", kind="run", calls=2, rows=rows))


def test_the_parts_of_the_kernels_add_up_to_the_difference_of_the_totals() -> None:
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


def test_overlapping_executions_are_neither_slower_nor_faster() -> None:
    rows = [_row("exp", 4e-6, minimum_seconds=1e-6, maximum_seconds=9e-6)]
    one = _session(CHAIN, e.KernelsMeasured(run="r1", kind="run", calls=2, rows=rows))
    found = _difference(one, _times(CHAIN, exp=8e-6)).kernels
    assert {row.speed for row in found.rows} == {""}


def test_times_of_one_side_alone_are_left_out() -> None:
    found = _difference(_session(CHAIN), _times(CHAIN, exp=8e-6)).kernels
    assert (found.before_seconds, found.after_seconds, found.difference_seconds) == (None, None, None)
    assert {row.part_seconds for row in found.rows} == {None}


def test_captures_without_hlo_are_compared_by_name() -> None:
    def captured(*names: str) -> list[MeasuredKernel]:
        event = e.KernelsMeasured(run="r1", kind="run", calls=1, rows=[_row(name, 1e-6) for name in names])
        known = measured(_session(None, event), "r1")
        return list(known.kernels)

    found = kernel_differences(None, None, captured("a", "fusion.1"), captured("fusion.2", "c"))
    assert {(row.status, row.before_name, row.after_name) for row in found.rows} == {
        ("outside", "fusion.1", "fusion.2"),
        ("outside", "a", ""),
        ("outside", "", "c"),
    }
    assert not found.differ


def test_other_connections_of_the_same_operations_are_a_change() -> None:
    fusion = """HloModule m, is_scheduled=true

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
    found = module_difference(parse.modules(fusion)[0], parse.modules(fusion.replace("(%a, %b)", "(%b, %a)"))[0])
    assert [[change.what for change in row.changes] for row in found.kernels.rows] == [["inside"]]


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


_WEIGHTS = jax.ShapeDtypeStruct((4, 64, 64), jnp.bfloat16)
_ACTIVATIONS = jax.ShapeDtypeStruct((32, 64), jnp.bfloat16)


def _layers(dtype: Any, times: int = 1) -> Session:
    """A scan of products that are asked for in this dtype, on arrays that are bfloat16 either way."""

    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        for _ in range(times):
            x = (x.astype(dtype) @ w.astype(dtype)).astype(jnp.bfloat16)
        return x, None

    return _compiled(lambda w, x: jax.lax.scan(layer, x, w)[0], _WEIGHTS, _ACTIVATIONS)


def test_an_upcast_of_products_shows_where_the_compiled_program_hides_it() -> None:
    narrow, wide, more = _layers(jnp.bfloat16), _layers(jnp.float32), _layers(jnp.bfloat16, times=2)
    found = _difference(narrow, wide)
    operands = 4 * (32 * 64 + 64 * 64)
    flops = 4 * 2 * 32 * 64 * 64
    fact = found.fact("product_bytes")
    assert (fact.before, fact.after, fact.growth) == (2 * operands, 4 * operands, 1.0)
    assert [(each.dtype, each.before_flops, each.after_flops) for each in found.products or ()] == [
        ("f32", 0, flops),
        ("bf16", flops, 0),
    ]
    assert "f32" in wider_products(found, limited=False)
    assert "--fail-on" not in wider_products(found, limited=True)
    assert not wider_products(_difference(wide, narrow), limited=False)
    assert not wider_products(_difference(narrow, more), limited=False), "more products of the same dtype"
    assert _difference(narrow, narrow).fact("product_bytes").growth == 0  # type: ignore[union-attr]


def test_products_in_a_loop_of_unknown_length_are_unknown() -> None:
    def until(x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda x: x.sum() < 1e6, lambda x: x @ x, x)

    unknown = _compiled(until, jax.ShapeDtypeStruct((8, 8), jnp.float32))
    assert _difference(unknown, unknown).fact("product_bytes") is None
    assert _difference(unknown, unknown).products is None


def test_a_longer_loop_runs_its_kernels_more_often() -> None:
    found = module_difference(parse.modules(LOOP)[0], parse.modules(LOOP.replace("constant(10)", "constant(12)"))[0])
    changes = {(one.what, one.before, one.after) for row in found.kernels.of("changed") for one in row.changes}
    assert ("count", 10, 12) in changes
    assert found.kernels.count("new") == found.kernels.count("gone") == 0


def test_a_collective_in_a_loop_exchanges_its_bytes_each_time() -> None:
    inside = LOOP.replace("exponential(%v)", "all-reduce(%v), replica_groups={{0,1}}, to_apply=%sum")
    text = inside.replace("HloModule m", "HloModule m, num_partitions=2").replace(
        "%body (", COLLECTIVE[COLLECTIVE.index("%sum") : COLLECTIVE.index("ENTRY")] + "%body (", 1
    )
    found = module_difference(parse.modules(text)[0], parse.modules(text.replace("constant(10)", "constant(12)"))[0])
    (one,) = found.collectives or ()
    assert (one.before_count, one.after_count, one.before_bytes, one.after_bytes) == (10, 12, 320, 384)
    facts = {fact.code: (fact.before, fact.after) for fact in found.facts}
    assert facts["collective_bytes"] == (320, 384)
    assert facts["collectives"] == (10, 12)


def test_a_loop_whose_trip_count_is_unknown_leaves_its_sums_unknown() -> None:
    text = LOOP.replace("%n = s32[] constant(10)", '%n = s32[] custom-call(), custom_call_target="n"')
    facts = {fact.code: (fact.before, fact.after) for fact in module_difference(*parse_both(LOOP, text)).facts}
    assert facts["launches"][1] is None
    assert facts["bytes"][1] is None
    assert facts["kernels"][0] is not None


def parse_both(one: str, other: str) -> tuple[Module, Module]:
    return parse.modules(one)[0], parse.modules(other)[0]


def _launched(*compile_seconds: float, announced: int = 0) -> Session:
    events: list[e.Event] = []
    for number, took in enumerate(compile_seconds, 1):
        events.append(e.WorkerStarted(run="r1", pid=number, python="p", launch=number))
        events.append(e.PhaseEnded(run="r1", phase="compile", seconds=took))
    events += [e.CompileObserved(run="r1", function="f", stage="compile", seconds=1.0)] * announced
    return _session(None, *events)


def test_compiles_are_those_of_one_launch_and_unknown_where_that_cannot_be_told() -> None:
    fact = _difference(_launched(1.0), _launched(1.0, announced=3)).fact("compiles")
    assert (fact.before, fact.after, fact.growth) == (1, 3, 2.0)
    several = _difference(_launched(1.0), _launched(1.0, 1.0, announced=6)).fact("compiles")
    assert (several.after, several.differs) == (None, None)


def test_several_operations_of_one_kind_are_counted() -> None:
    other = FUSED.replace(
        "ROOT %t = f32[1000]{0} tanh(%e)",
        "%n = f32[1000]{0} negate(%e)\n  %m = f32[1000]{0} negate(%n)\n  ROOT %t = f32[1000]{0} tanh(%m)",
    )
    found = _difference(_session(FUSED), _session(other))
    assert ("operations", "", "2 negate") in {
        (one.what, one.before, one.after) for row in found.kernels.rows for one in row.changes
    }


@pytest.mark.parametrize("path", real_files("*after_optimizations.txt"), ids=lambda path: path.name[:30])
def test_a_real_module_does_not_differ_from_itself_renumbered(path: Path) -> None:
    import re

    text = path.read_text()
    other = re.sub(r"(%[a-z_]*fusion)\.(\d+)", r"\1.9\2", text)
    assert other != text
    found = module_difference(parse.modules(text)[0], parse.modules(other)[0])
    assert found.kernels.rows
    assert {row.status for row in found.kernels.rows} == {"same"}
    assert not any(fact.differs for fact in found.facts)
