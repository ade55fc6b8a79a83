"""The figures, warnings and verdict of a measured run; what the sizes of a sweep come to; and the FLOPs and bytes of
a call, each program beside a count made by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from analysis.made_runs import STEADY, program_text, run, session
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.runs import run_result
from jaxprof.analysis.runs.run_result import COUNTED, cost_of_call, result, results
from jaxprof.analysis.runs.speedup import _turn_blocks
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.stages import modules
from jaxprof.report.runs import break_even_text, sweep_groups
from jaxprof.session.run import RunLaunch, Turn
from tables import rows


def pair(*events, baseline=1.0, other=1.0):
    """A baseline and a run in turns: how much longer than a second their calls take."""
    return session(
        run("r1", variant="numpy", samples=times(baseline), turn=0),
        run("r2", samples=times(other), turn=1, baseline="r1"),
        events,
    )


def alone(*events, samples=STEADY):
    return session(run(samples=samples, turn=0), events)


def times(factor):
    return [factor * value for value in STEADY]


def test_blocks_in_turns():
    other = RunLaunch(1, turns=[Turn(3, (1.0,))])
    for numbers, in_turns in (((2,), True), ((1, 2), False), ((2, 4), True)):
        turns = _turn_blocks(RunLaunch(1, turns=[Turn(number, (1.0,)) for number in numbers]), other)
        assert turns.in_turns == in_turns, numbers


def phase(name, seconds, run="r2", **more):
    return e.PhaseEnded(run=run, phase=name, seconds=seconds, **more)


def cost(run="r1"):
    return e.CostReported(run=run, flops=2e9, bytes_accessed=1e6, source=e.ESTIMATED_BY)


def hot(run):
    return e.DeviceReading(run=run, device="cpu:0", throttle_reasons=["thermal"])


def test_speedup_and_break_even():
    stages = {"trace": 1.0, "lower": 2.0, "compile": 4.0, "first_run": 0.3}
    base, other = results(pair(*(phase(*each) for each in stages.items()), other=0.1))
    assert base.versus is None
    assert base.once_seconds == 0.0
    assert other.once_seconds == 7.0
    speedup = other.versus.speedup
    assert speedup.ratio == pytest.approx(10)
    assert speedup.launches == 1
    assert speedup.between_share is None
    assert speedup.basis == "1 launch: holds for these processes"
    calls = other.versus.break_even_calls
    assert 7.0 + 0.3 + (calls - 1) * 0.1 <= calls * 1.0 < 7.0 + 0.3 + (calls - 1) * 0.1 + 1.0


def test_the_break_even_does_not_contradict_the_speedup(monkeypatch):
    found = run_result.compare_times
    # The pairs of blocks say so, and the medians do not.
    monkeypatch.setattr(run_result, "compare_times", lambda *sides: replace(found(*sides), ratio=0.83))
    other = result(pair(phase("compile", 4.0), phase("first_run", 0.3), other=0.1), "r2")
    assert other.versus.break_even_calls is None
    assert break_even_text(other) == "never"


@pytest.mark.parametrize(
    ("ours", "theirs", "a_call", "words"),
    rows("""
        37e-3  66e-3  0.5  1 call
        66e-3  37e-3  0.5  60 calls
        37e-3  66e-3  1.5  until call 58
        66e-3  37e-3  1.5  never
        66e-3  66e-3  1.5  never
        66e-3  numpy  0.5  133 calls
        66e-3  ?      0.5  -
    """),
)
def test_what_the_baseline_does_once_counts_too(ours, theirs, a_call, words):
    """Op by op JAX compiles, at its first call; NumPy does not. A call of the baseline takes 1 ms."""
    compiled = [phase("compile", float(ours)), phase("first_run", 1e-3)]
    if theirs != "numpy":
        compiled += [
            phase("compile", None if theirs == "?" else float(theirs), run="r1"),
            phase("first_run", 1e-3, "r1"),
        ]
    found = result(pair(*compiled, baseline=1e-3, other=float(a_call) * 1e-3), "r2")
    assert break_even_text(found) == (words or "-")


def test_an_unmeasured_phase_makes_the_sum_unknown():
    found = result(pair(phase("lower", None)), "r2")
    assert (found.once_seconds, found.versus.break_even_calls) == (None, None)
    copied = result(alone(phase("transfer_in", 0.1, run="r1")), "r1")
    assert copied.phase_seconds["transfer_in"] is None, "without samples"


def test_figures_follow_what_is_added():
    growing = alone()
    before = result(growing, "r1")
    assert (before.summary.median, before.flops_per_second) == (1.0, None), "rates are unknown without costs"
    growing.apply(e.SamplesTaken(run="r1", series="run", seconds=[4.0] * 20))
    growing.apply(cost())
    assert result(growing, "r1").summary.median == 4.0
    assert result(growing, "r1").flops_per_second == pytest.approx(5e8)


WRONG = {
    "by more than the tolerance": {"max_relative_error": 0.5, "tolerance": 1e-5},
    "of another type": {"note": "the result is bool, float64 is expected", "elements": 3, "wrong_elements": 3},
    "some numbers": {"tolerance": 1e-4, "elements": 1_000_000, "wrong_elements": 410_000, "worst_at": "[3, 5]",
                     "worst_got": "0.81", "worst_expected": "0.80"},
    "one number": {"tolerance": 1e-4, "elements": 1, "wrong_elements": 1, "worst_got": "2", "worst_expected": "1"},
    "not the same": {"elements": 4, "wrong_elements": 1, "worst_at": "[2]"},
    "of a lower precision": {"max_relative_error": 0.5, "tolerance": 1e-5, "precision": "tf32"},
}  # fmt: skip


def test_a_wrong_result_says_what_is_wrong_of_it():
    """One of a lower precision is to be compared with the full one."""
    checks = {case: e.CheckReported(run="r1", passed=False, against="numpy twin", **of) for case, of in WRONG.items()}
    told = {case: figures_text(*result(alone(check), "r1").warnings) for case, check in checks.items()}
    held_cases("wrong_results.txt", told)


@pytest.mark.parametrize(
    ("status", "timed", "doubted"), [("ok", True, True), ("cancelled", True, True), ("cancelled", False, False)]
)
def test_a_disturbance_is_reported_where_there_are_times(status, timed, doubted):
    busy = e.EnvironmentRead(run="r1", python="3", numpy="2", settings={"other_busy_cores": 1.7, "cores": 2})
    end = e.RunFinished(run="r1", status=status, error=status)
    codes = [
        warning.code for warning in result(alone(busy, hot("r1"), end, samples=STEADY if timed else []), "r1").warnings
    ]
    assert ("busy_machine" in codes, "throttled" in codes) == (doubted, doubted)


def test_two_modes_are_told():
    random = np.random.default_rng(0)
    taking_turns = (np.where(np.arange(100) % 3 == 0, 6e-3, 2e-3) * random.lognormal(0, 0.02, 100)).tolist()
    runs = {"in turns": taking_turns, "once": sorted(taking_turns)}
    told = {case: figures_text(*result(alone(samples=of), "r1").warnings) for case, of in runs.items()}
    held_cases("two_modes.txt", told)


@pytest.mark.parametrize("zero_copy", [False, True])
def test_what_moved_nothing_has_no_bandwidth_and_no_speed_up(zero_copy):
    found = result(pair(cost("r2"), phase("run", 1.0, zero_copy=zero_copy), other=1e-3), "r2")
    unknown = (found.versus is None, found.bytes_per_second is None, found.flops_per_second is None)
    assert (found.moved_nothing, *unknown) == (zero_copy,) * 4
    assert zero_copy or found.bytes_per_second == pytest.approx(1e6 / 1e-3)
    view = result(pair(phase("run", 1.0, run="r1", zero_copy=zero_copy)), "r2")
    assert (view.versus is None) == zero_copy, "as a baseline neither"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], ""),
        ([e.CheckReported(run="r2", passed=False)], "its result is wrong"),
        ([hot("r2")], "throttled"),
        ([hot("r1"), hot("r2")], ""),  # both sides alike
    ],
)
def test_what_is_not_called_faster(events, reason):
    speedup = result(pair(*events, other=0.1), "r2").versus.speedup
    assert speedup.verdict == ("inconclusive" if reason else "faster")
    assert reason in speedup.reason
    assert bool(reason) == bool(speedup.reason)


def test_what_was_not_measured_together_gets_no_verdict():
    """As in an older session: samples without turns."""
    apart = session(run("r1", samples=[10.0] * 40), run("r2", samples=[1.0] * 40, baseline="r1"))
    speedup = result(apart, "r2").versus.speedup
    assert speedup.ratio == pytest.approx(10)
    assert speedup.low is None
    assert speedup.high is None
    assert (speedup.verdict, speedup.reason) == ("inconclusive", "not measured together")


def sweep(baseline, other):
    """A sweep over `n`: the samples of both at each size."""
    made = []
    for index, n in enumerate(baseline):
        size = {"workload": "selu", "parameters": {"n": n, "mode": "x"}}
        base = f"r{2 * index + 1}"
        made += run(base, variant="numpy", samples=baseline[n], turn=0, **size)
        if other:
            made += run(f"r{2 * index + 2}", samples=other[n], turn=1, baseline=base, **size)
    return sweep_groups(session(made))


NOISY = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0]
CLOSE = [0.99 * value for value in reversed(NOISY)]
SIZES = (10, 100, 1000)
SWEEPS = {
    "too noisy": ({10: NOISY, 100: NOISY}, {10: CLOSE, 100: CLOSE}),
    "the same": ({10: STEADY, 1000: STEADY}, {10: STEADY, 1000: STEADY}),
    "slower": ({1: STEADY, 2: STEADY}, {1: times(50), 2: times(50)}),
    "slower at some sizes": (dict.fromkeys((1, 2, 3), STEADY), {1: times(50), 2: STEADY, 3: times(50)}),
    "faster": ({10: STEADY, 100: STEADY}, {10: times(0.5), 100: times(0.5)}),
    "faster from a size on": ({n: [n * 1e-3] * 10 for n in SIZES}, dict.fromkeys(SIZES, [0.05] * 10)),
}


def test_what_a_sweep_comes_to():
    crossovers = {case: sweep(*sides)[0].crossovers() for case, sides in SWEEPS.items()}
    held_cases("sweeps.txt", {case: figures_text(*found) for case, found in crossovers.items()})
    assert sweep({10: STEADY}, {}) == [], "one size is no sweep"


N = 16
PRODUCT = 2 * N**3
X = jax.ShapeDtypeStruct((N, N), np.float32)


def cost_of(hlo):
    of = session(run(hlo=hlo))
    return cost_of_call(of, of.runs["r1"])


def compiled(function):
    return str(jax.jit(function).lower(X).compile().as_text())


def scan(x):
    return lax.scan(lambda c, _: (c @ x, None), x, None, length=1000)[0]


def nested(x):
    return lax.fori_loop(0, 3, lambda _, c: lax.fori_loop(0, 5, lambda _, d: d @ x, c), x)


def bounded_while(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] @ x), (0, x))[1]


@pytest.mark.parametrize(("function", "products"), [(scan, 1000), (nested, 15), (bounded_while, 7)])
def test_a_loop_is_counted_as_often_as_it_runs(function, products):
    hlo = compiled(function)
    cost = cost_of(hlo)
    counters = 8 * products + 8 * N * N  # a few scalars each turn, and what is made before the loop
    assert products * PRODUCT <= cost.flops <= products * PRODUCT + counters
    assert cost.bytes_accessed >= (3 * products - 1) * 4 * N * N  # the first one may read x twice
    assert (cost.source, cost.note) == (COUNTED, "")
    listed = kernels(modules(hlo)[0])
    assert cost.flops == sum(kernel.total_flops or 0 for kernel in listed)
    assert cost.bytes_accessed == sum(kernel.total_bytes or 0 for kernel in listed)


def test_a_loop_whose_length_depends_on_the_data_is_unknown():
    cost = cost_of(compiled(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 1e6, lambda c: c @ x, x) @ x))
    assert cost.flops is None
    assert cost.bytes_accessed is None
    assert cost.transcendentals is None
    assert "while" in cost.note


def test_conditional_costs_its_most_expensive_branch():
    cost = cost_of(compiled(lambda x: lax.cond(x[0, 0] > 0, lambda y: y @ y @ y, lambda y: y @ y, x)))
    assert cost.flops == pytest.approx(2 * PRODUCT, abs=8)
    assert cost.note.startswith("upper bound")


GEMM = ', backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'


@pytest.mark.parametrize(
    ("target", "result", "rest", "flops"),
    [
        ("__cublas$lt$matmul", "(f32[64,16]{1,0}, s8[33554432]{0})", GEMM, 2 * 64 * 32 * 16),
        ("__gpu$xla.gpu.triton", "f32[64,16]{1,0}", "", None),
        ("xla_ffi_python_gpu_callback", "()", ", custom_call_has_side_effect=true", 0),
    ],
    ids=["cublas-lt", "triton", "debug-callback"],
)
def test_a_library_call_is_counted_from_its_shapes_or_unknown(target, result, rest, flops):
    call = f'ROOT c = {result} custom-call(a, b), custom_call_target="{target}"{rest}'
    cost = cost_of(program_text("a = f32[64,32] parameter(0)", "b = f32[32,16] parameter(1)", call))
    assert cost.flops == flops
    assert (target in cost.note) is (flops is None)
    assert cost.bytes_accessed >= 4 * (64 * 32 + 32 * 16)
