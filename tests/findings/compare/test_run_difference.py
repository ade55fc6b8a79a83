"""Pairs of programs whose truth is known: the same twice, one fusion broken, one dtype, one donation, one size."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import pytest

from analysis.made_runs import hlo_text, planned, program_text, session
from golden import figures_text, held, held_cases
from hlo.kernels.programs import fused, looped, shapes, written
from jaxprof import events as e
from jaxprof.findings.compare.session_difference import module_difference, run_difference
from report.sessions import kernel_times


def _session(hlo, *events, **plan):
    text = [hlo_text(hlo)] if hlo is not None else []
    return session(planned(**plan), text, events)


def _compiled(function, arguments="f32[256,512]", **options):
    """A run of `function` with what the engine reports of a compiled program."""
    lowered = jax.jit(function, **options).lower(*shapes(arguments))
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


def _difference(one, other):
    return run_difference(one, one.runs["r1"], other, other.runs["r1"])


def _changed(found):
    return {fact.code for fact in found.facts.values() if fact.differs}


def _fused(x):
    return jnp.tanh(x * 2.0 + 1.0)


def test_the_same_program_twice_does_not_differ():
    def again(x):
        return _fused(x)

    found = _difference(_compiled(_fused), _compiled(again))
    assert found.kernels.differ is False
    assert _changed(found) == set()
    assert found.unlike == ()
    assert {row.status for row in found.kernels.rows} == {"same"}
    assert found.differs is False
    assert {one.status for one in found.buffers or ()} == {"same"}


def _of_modules(before, after):
    return module_difference(*(written(text, "is_scheduled=true, num_partitions=4") for text in (before, after)))


FUSED = fused(
    "e = f32[9] exponential(p0)\nROOT t = f32[9] tanh(e)", "f32[9]", more=', metadata={op_name="jit(f)/tanh"}'
)
"""As one kernel `f`, and as two."""
BROKEN = """
x = f32[9] parameter(0)
y = f32[9] parameter(1)
e = f32[9] exponential(x), metadata={op_name="jit(f)/exp"}
ROOT t = f32[9] tanh(e), metadata={op_name="jit(f)/tanh"}
"""
ROOT = "ROOT t = f32[9] tanh(e)"
NEGATED = FUSED.replace(ROOT, "t = f32[9] tanh(e)\nROOT n = f32[9] negate(t)").replace("jit(f)/tanh", "jit(f)/neg")
TWICE = FUSED.replace(ROOT, "n = f32[9] negate(e)\nm = f32[9] negate(n)\nROOT t = f32[9] tanh(m)")
FUSION = fused("ROOT s = f32[8] subtract(p0, p1)", "f32[8]", "f32[8]")
COLLECTIVE = """
x = f32[1000] parameter(0)
ROOT all-reduce = f32[1000] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
"""
HALVES = COLLECTIVE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")
TRITON = fused(
    "ROOT d = f32[8,8]{1,0} dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "f32[8,8]{1,0}",
    "f32[8,8]{1,0}",
    kind="kCustom",
    more=', metadata={op_name="dot"}, backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}',
)
CUBLAS = """
x = f32[8,8]{1,0} parameter(0)
y = f32[8,8]{1,0} parameter(1)
c = (f32[8,8]{1,0}, s8[64]{0}) custom-call(x, y), custom_call_target="__cublas$lt$matmul", \
metadata={op_name="dot"}, backend_config={"gemm_backend_config":{"selected_algorithm":"1"}}
ROOT g = f32[8,8]{1,0} get-tuple-element(c), index=0
"""
TEN, TWELVE = (looped("f32[8]", "e = f32[8] exponential(x)", "e", turns) for turns in (10, 12))


def _chain(third):
    """Steps of a loop that Python unrolled have one name and one line; of the third the second operation differs."""
    names = ["x", "m1", "r1", "m2", "r2", "m3", "r3"]
    lines = ["x = f32[1000] parameter(0)"]
    for before, name in pairwise(names):
        operation = third if name == "r2" else "negate" if name[0] == "m" else "cosine"
        lines.append(f'{name} = f32[1000] {operation}({before}), metadata={{op_name="jit(f)/{operation}"}}')
    return "\n".join([*lines[:-1], f"ROOT {lines[-1]}"])


DIFFERENT = {
    "a kernel was split": (FUSED, BROKEN),
    "kernels were merged": (BROKEN, FUSED),
    "of equal kernels the one that stands there": (_chain("cosine"), _chain("tanh")),
    "XLA gives a fusion the origin of its last operation": (FUSED, NEGATED),
    "more operations": (FUSED, TWICE),
    "other connections": (FUSION, FUSION.replace("(p0, p1)\n}", "(p1, p0)\n}")),
    "another dtype": (FUSED, FUSED.replace("f32", "bf16")),
    "more iterations": (TEN, TWELVE),
    "other groups": (COLLECTIVE, HALVES),
    "the autotuner chose another library": (TRITON, CUBLAS),
    "and another algorithm of it": (CUBLAS, CUBLAS.replace('"1"', '"2"')),
    "another name": (COLLECTIVE, COLLECTIVE.replace("all-reduce =", "all-reduce.7 =")),
}


def test_the_kernels_that_differ_and_in_what():
    told = {}
    for case, (before, after) in DIFFERENT.items():
        found = [row for row in _of_modules(before, after).kernels.rows if row.status != "same"]
        lines = [f"{row.status} {row.name}" for row in found]
        told[case] = figures_text(*lines, *(change for row in found for change in row.changes))
    held_cases("kernels_that_differ.txt", told)


def test_a_lost_donation_costs_memory_and_no_kernel():
    kept, donated = _compiled(_fused), _compiled(_fused, donate_argnums=0)
    found = _difference(donated, kept)
    assert not found.kernels.differ
    fact = found.facts["alias_bytes"]
    assert fact.before == 256 * 512 * 4
    assert fact.after == 0
    assert fact.differs is True
    assert found.differs is True


def test_another_size_is_not_the_same_measurement():
    small = _session(None, parameters={"n": 4})
    found = _difference(small, _session(None, parameters={"n": 8}))
    assert found.unlike == ("another n (4, 8)",)
    other = _difference(small, _session(None, parameters={"n": 4}, device="cuda:0", precision="highest"))
    assert [text.partition(" (")[0] for text in other.unlike] == ["another kind of device", "another precision"]


def test_what_is_unknown_differs_from_nothing():
    found = _difference(_session(None), _compiled(_fused))
    assert found.kernels is None
    assert found.collectives is None
    assert found.findings is None
    flops = found.facts["flops"]
    assert flops.before is None
    assert flops.differs is None
    assert flops.growth is None
    assert found.differs is None
    assert "compiles" not in found.facts
    nothing = _difference(_session(None), _session("HloModule broken"))
    assert nothing.kernels is None or not nothing.kernels.rows


def test_collectives_by_kind_groups_and_bytes():
    pairs = {"other groups": (COLLECTIVE, HALVES), "the same": (COLLECTIVE, COLLECTIVE)}
    told = {
        case: figures_text(*([each, each.differs] for each in _of_modules(*pair).collectives))
        for case, pair in pairs.items()
    }
    held_cases("collectives_that_differ.txt", told)


CHAIN = program_text(
    "x = f32[1000] parameter(0)",
    'exp = f32[1000] exponential(x), metadata={op_name="jit(f)/exp"}',
    'log = f32[1000] log(exp), metadata={op_name="jit(f)/log"}',
    'ROOT out = f32[1000] sine(log), metadata={op_name="jit(f)/sin"}',
)


def _times(hlo, **seconds):
    rows = [kernel_times(name, took, 4, device="cpu:0") for name, took in seconds.items()]
    return _session(hlo, e.KernelsMeasured(run="r1", kind="run", calls=2, rows=rows))


def test_parts_of_kernels_add_up_to_the_difference():
    other = CHAIN.replace("exp = f32", "exp.5 = f32").replace("log(exp)", "log(exp.5)").replace("sine", "cosine")
    one = _times(CHAIN, exp=4e-6, log=2e-6, out=8e-6, stray=2e-6)
    two = _times(other, **{"exp.5": 10e-6, "out": 2e-6, "while": 6e-6})
    found = _difference(one, two).kernels
    assert sum(row.part_seconds or 0.0 for row in found.rows) == pytest.approx(found.difference_seconds)
    assert found.difference_seconds == pytest.approx((18e-6 - 16e-6) / 2)
    figures = ("name", "status", "speed", "before_seconds", "after_seconds", "part_seconds")
    rows = [{name: getattr(row, name) for name in figures} for row in found.rows]
    held("times_that_differ.txt", figures_text(*rows))


def _layers(dtype):
    """A scan of products that are asked for in this dtype, on arrays that are bfloat16 either way."""

    def layer(x, w):
        return (x.astype(dtype) @ w.astype(dtype)).astype(jnp.bfloat16), None

    return _compiled(lambda w, x: jax.lax.scan(layer, x, w)[0], "bf16[4,64,64] bf16[32,64]")


def test_upcast_of_products_shows_where_compiling_hides_it():
    narrow, wide = _layers(jnp.bfloat16), _layers(jnp.float32)
    found = _difference(narrow, wide)
    operands = 4 * (32 * 64 + 64 * 64)
    fact = found.facts["product_bytes"]
    assert fact.before == 2 * operands
    assert fact.after == 4 * operands
    assert fact.growth == 1.0
    assert _difference(narrow, narrow).facts["product_bytes"].growth == 0


def _launched(*compile_seconds, announced=0):
    events = []
    for number, took in enumerate(compile_seconds, 1):
        events.append(e.WorkerStarted(run="r1", pid=number, python="p", launch=number))
        events.append(e.PhaseEnded(run="r1", phase="compile", seconds=took))
    events += [e.CompileObserved(run="r1", function="f", stage="compile", seconds=1.0)] * announced
    return _session(None, *events)


def test_compiles_are_of_one_launch_or_unknown():
    fact = _difference(_launched(1.0), _launched(1.0, announced=3)).facts["compiles"]
    assert fact.before == 1
    assert fact.after == 3
    assert fact.growth == 2.0
    several = _difference(_launched(1.0), _launched(1.0, 1.0, announced=6)).facts["compiles"]
    assert (several.after, several.differs) == (None, None)
