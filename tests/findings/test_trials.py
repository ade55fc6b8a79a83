"""Which changes findings propose, and what is made of those that were tried."""

from dataclasses import replace

import pytest

from analysis.made_runs import run, session
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.runs.ab import ab_result
from jaxprof.events.finding import Finding
from jaxprof.facts.sides import verdict_line
from jaxprof.findings.catalogue import entries
from jaxprof.findings.derive import explanation
from jaxprof.findings.trials import PROPOSED, TRIALS, propose_trials
from jaxprof.report.conclusion import conclusion
from report.sessions import HEADER, environment, later_launches, turns

LINE, OTHER = e.SourceLocation("/x/f.py", 17), e.SourceLocation("/x/f.py", 31)


def test_each_code_is_a_finding_and_each_change_is_known():
    assert PROPOSED.keys() <= entries().keys()
    assert {name for names in PROPOSED.values() for name in names} <= TRIALS.keys()


def names_and_lines(*findings, code=""):
    return [(trial.name, trial.line.line) for trial in propose_trials(findings, code)]


def test_change_of_calls_has_a_line_and_a_setting_none():
    loops = Finding("", (LINE,), code="small_loop_body"), Finding("", (OTHER,), code="small_loop_body")
    precise = Finding("", (OTHER,), code="precise_product")
    assert names_and_lines(*loops, precise) == [("unroll", 17), ("unroll", 31), ("default_precision", None)]
    assert names_and_lines(loops[0], loops[0], Finding("", code="padding")) == [("unroll", 17)], "each once"
    assert names_and_lines(Finding("", code="padding")) == []


def test_named_finding_is_tried_alone():
    loop = Finding("", (LINE,), code="small_loop_body")
    assert names_and_lines(loop, Finding("", code="precise_product"), code="small_loop_body") == [("unroll", 17)]
    assert names_and_lines(code="small_loop_body") == [("unroll", None)]


def test_a_flag_stands_behind_those_that_the_process_has():
    (trial,) = propose_trials([], "slow_constant_folding")
    flag = "--xla_disable_hlo_passes=constant_folding"
    assert trial.environment({"XLA_FLAGS": "--a"}) == {"XLA_FLAGS": f"--a {flag}"}
    assert propose_trials([], "small_loop_body")[0].environment({"XLA_FLAGS": "--a"}) == {}


EQUAL = e.ResultsCompared(alike=True, agree=True, relative=0.0)
CLOSE = e.ResultsCompared(alike=True, agree=True, relative=1.2e-7)
FAR = e.ResultsCompared(alike=True, agree=False, relative=0.03)
A_SECONDS = 1e-3


def session_of(*sides):
    """A, and beside it a side for each change: its name, its seconds (None: it failed), and how its results compare."""
    spec = e.RunSpec(workload="f.py:step", variant="jit", how="jit", device="cpu:0", launches=3, target="/x/f.py:step")
    specs = [e.SideSpec(label=label, title="") for label, _ in zip("ABCD", (None, *sides), strict=False)]
    events = [
        e.RunPlanned(run="r1", spec=replace(spec, side="A")),
        e.ComparisonPlanned(run="r1", sides=specs, margin=0.02, same_inputs=True),
    ]
    for number, (name, seconds, results) in enumerate((("", A_SECONDS, None), *sides)):
        run_id = f"r{number + 1}"
        if name:
            trial_at = LINE if name in ("map", "unroll") else e.NOWHERE
            side = replace(spec, side="ABCD"[number], baseline="r1", trial=name, trial_at=trial_at)
            events += [e.RunPlanned(run=run_id, spec=side)]
        events += [e.WorkerStarted(run=run_id, pid=1, python="/usr/bin/python3"), environment(run_id)]
        if seconds is None:
            events.append(e.RunFinished(run=run_id, status="failed", error="no call of jax.vmap can be changed"))
            continue
        events += [e.TrialReached(run=run_id, lines=[OTHER] if name in ("map", "unroll") else [])] if name else []
        events += [*turns(run_id, seconds, number), *later_launches(run_id, seconds, number)]
        events += [replace(results, run=run_id)] if results is not None else []
        events.append(e.RunFinished(run=run_id, status="ok"))
    return fold(HEADER, events)


def lines_of(*sides):
    return [verdict_line(versus) for versus in ab_result(session_of(*sides), "r1").versus]


SAID = {
    ("map", 0.25e-3, EQUAL): "B, vmap → lax.map at f.py:31: 4.00 times as fast (3.98-4.02), same bits",
    ("map", 0.25e-3, CLOSE): "B, vmap → lax.map at f.py:31: 4.00 times as fast (3.98-4.02), the same to 1.2e-07",
    ("unroll", 0.25e-3, FAR): "B, unroll=4 at f.py:31: 4.00 times as fast (3.98-4.02), other numbers (by 3.0e-02)",
    ("float32", 0.5e-3, FAR): "B, x64 off: 2.00 times as fast (1.99-2.01), other numbers (by 3.0e-02, as expected)",
    ("rbg", 0.5e-3, None): "B, prng rbg: 2.00 times as fast (1.99-2.01), other numbers, as expected",
    ("map", None, None): "B, vmap → lax.map: failed, no call of jax.vmap can be changed",
    ("donate", 2e-3, EQUAL): "B, donate_argnums: slower, 0.499 times as fast (0.497-0.502), same bits",
    ("donate", 1e-3, EQUAL): "B, donate_argnums: no faster, within ± 2.0 %, same bits",
}


@pytest.mark.parametrize("side", SAID, ids=lambda side: f"{side[0]}-{side[1]}-{getattr(side[2], 'relative', None)}")
def test_trial_is_reported_with_line_gain_and_results(side):
    assert lines_of(side) == [SAID[side]]


ALARM = "E1129 13:31:05.284887   13404 slow_operation_alarm.cc:73] Constant folding an instruction is taking > 1s:"
FOLDED = '  %sin.7 = f32[9]{0} sine(%constant.4), metadata={op_name="jit(step)/sin" stack_frame_id=2}'


def compiled_beside_none(trial, seconds, status="timed out"):
    """A, whose compile was not over after 26 s, and a change whose compile took so long; None: it was not over either.
    `status`: how A ended."""
    spec = e.RunSpec(workload="f.py:step", variant="jit", how="jit", device="cpu:0", side="A", target="/x/f.py:step")
    sides = [e.SideSpec(label=label, title="") for label in "AB"]
    events = [
        e.RunPlanned(run="r1", spec=spec),
        e.ComparisonPlanned(run="r1", sides=sides, margin=0.02, same_inputs=True),
        e.RunPlanned(run="r2", spec=replace(spec, side="B", baseline="r1", trial=trial)),
        e.PhaseStarted(run="r1", phase="compile", monotonic_seconds=10.0),
        e.LogLine(run="r1", stream="stderr", text=ALARM, monotonic_seconds=11.0),
        e.LogLine(run="r1", stream="stderr", text=FOLDED, monotonic_seconds=11.0),
        e.RunFinished(run="r1", status=status, error="its hard cap", monotonic_seconds=36.0),
        e.PhaseStarted(run="r2", phase="compile", monotonic_seconds=40.0),
    ]
    if seconds is not None:
        events += [e.PhaseEnded(run="r2", phase="compile", seconds=seconds, monotonic_seconds=40.0 + seconds)]
    ended = "ok" if seconds is not None else "timed out"
    return fold(HEADER, [*events, e.RunFinished(run="r2", status=ended, error="", monotonic_seconds=65.0)])


@pytest.mark.parametrize(
    ("trial", "seconds", "status", "line"),
    [
        (
            "no_folding",
            0.16,
            "timed out",
            "B, constant folding off, compile: 160 ms; that of A was not over after 26.0 s",
        ),
        ("less_llvm", None, "timed out", "B, LLVM at level 0, compile: not over after 25.0 s (timed out)"),
        ("no_folding", 0.16, "failed", None),
        ("donate", 0.16, "timed out", None),
    ],
    ids=["ends", "does not end either", "A failed", "not tried for its compile"],
)
def test_change_beside_a_compile_without_an_end(trial, seconds, status, line):
    tried = compiled_beside_none(trial, seconds, status)
    (versus,) = ab_result(tried, "r1").versus
    assert (verdict_line(versus) == line) is (line is not None)
    assert ("not over" in verdict_line(versus)) is (line is not None)
    codes = [found.code for found in explanation(tried, "s").findings]
    assert ("tried_and_faster" in codes) is (seconds is not None and line is not None)


@pytest.mark.parametrize(("status", "is_compiling"), [("timed out", True), ("failed", False)])
def test_run_that_timed_out_in_its_compile_names_the_pass(status, is_compiling):
    found = explanation(compiled_beside_none("no_folding", 0.16, status), "s").findings
    (failed,) = [each for each in found if each.code == "run_failed"]
    doing = "compiling for 26.0 s, by its log, XLA is in the pass constant_folding, which computes the sin"
    assert (doing in failed.message) is ("--try slow_constant_folding" in failed.fix) is is_compiling


def best(*sides):
    first, *_ = explanation(session_of(*sides), "s").findings or [None]
    return first and (first.code, first.fix, first.where)


FASTER = "tried_and_faster"


def test_the_best_change_that_is_true_is_what_to_do():
    faster, fastest = ("unroll", 0.5e-3, EQUAL), ("map", 0.25e-3, CLOSE)
    assert best(faster, fastest) == (FASTER, TRIALS["map"].fix, OTHER)
    assert best(faster, ("map", 0.25e-3, FAR)) == (FASTER, TRIALS["unroll"].fix, OTHER), "of other numbers is none"
    assert best(("float32", 0.25e-3, FAR))[1] == TRIALS["float32"].fix, "unless the change means them"


def test_a_change_that_is_slower_or_failed_is_no_finding():
    found = explanation(session_of(("map", 2e-3, EQUAL), ("unroll", None, None)), "s")
    assert found.findings == ()
    assert not any(gap.code == "inconclusive" for gap in found.abstentions)


def test_what_cannot_be_told_says_why_and_how_large_it_may_be():
    once = session_of(("map", 0.5e-3, EQUAL))
    for side in once.runs.values():
        del side.launches[1:]
        del side.launches[0].turns[2:]
    (said,) = (verdict_line(versus) for versus in ab_result(once, "r1").versus)
    assert said.startswith("B, vmap → lax.map at f.py:31: inconclusive: 2.0 times as fast")


def test_finding_of_one_function_proposes_a_trial():
    def leads_to(code, *runs):
        found = Finding("", own_fix="Do it.", code=code), *explanation(session(*runs), "s").findings
        explained = replace(explanation(session(*runs), "s"), findings=found)
        return conclusion(explained).command

    step = {"samples": [1e-3] * 9, "target": "/x/f.py:step"}
    assert leads_to("small_loop_body", run("r1", **step)) == "jaxprof compare s --try"
    assert leads_to("padding", run("r1", **step)) == "jaxprof explain s", "nothing can be tried of it"
    assert leads_to("small_loop_body", run("r1", **step), run("r2", **step)) == "jaxprof explain s", "of which?"
    assert leads_to("small_loop_body", run("r1", samples=[1e-3] * 9)) == "jaxprof explain s", "it cannot be found again"
