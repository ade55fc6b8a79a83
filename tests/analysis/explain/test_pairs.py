"""Every code of the catalogue has a minimal pair: a case in which it is said, and the same mended, in which it is not.

A new code without a pair fails here, or in the test of its source that `OF_SOURCES` names. Warnings that an engine
raises in its own process, or the scheduler beside it, have their pairs in the tests of these, which are named.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_explanation import MENDED, codes, compared, on_gpu, run_of, steps, unknown

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.catalogue import SOURCES, entries
from jaxprof.analysis.explain.derive import explanation
from jaxprof.analysis.run_result import result
from jaxprof.session import Session
from report import sessions

TESTS = Path(__file__).parents[2]
OF_SOURCES = {
    "program": "analysis/programs/test_findings.py::test_every_finding_has_its_pair",
    "job": "analysis/jobs/test_codes.py::test_every_code_of_a_job_has_a_case_and_a_clean_job_has_none",
    "hlo": "hlo/analysis/test_findings.py::test_every_finding_has_a_pair_and_advice",
    "capture": "analysis/explain/test_pairs.py::test_every_code_has_a_pair",
    "run": "analysis/explain/test_pairs.py::test_every_code_has_a_pair",
    "comparison": "analysis/explain/test_pairs.py::test_every_code_has_a_pair",
    "trust": "trace/test_trace_trust.py::test_a_doubt_is_raised_of_one_capture_and_not_of_the_other",
}
"""The test that takes the codes of a source from the catalogue, and has a pair for each."""
HERE = ("capture", "run", "comparison")
STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 1.0] * 4


@dataclass(frozen=True)
class Pair:
    """What is said of a case that has it, and of the same mended."""

    case: Callable[[], Iterable[str]]
    mended: Callable[[], Iterable[str]]


@dataclass(frozen=True)
class Elsewhere:
    """The tests, from the folder of tests, that have the case and the mended one."""

    case: str
    mended: str


def profile(**parts: float) -> Session:
    """A profile of ten steps of 1 ms on a GPU."""
    plan = e.RunPlanned(run="r2", spec=e.RunSpec(workload="p", variant="profile", how="imported", device="gpu:0"))
    return fold(sessions.HEADER, [plan, *steps("gpu", **parts), e.SessionClosed()])


def captured(**parts: float) -> Callable[[], list[str]]:
    return lambda: codes(explanation(profile(**parts), "p"))


def of_samples(samples: list[float], *more: e.Event) -> Callable[[], list[str]]:
    """The warnings of a run with these samples."""
    events: list[e.Event] = [
        e.RunPlanned(run="r1", spec=e.RunSpec(workload="f", variant="jit", how="jit", device="cpu:0")),
        e.SamplesTaken(run="r1", series="run", seconds=samples),
        *more,
        e.RunFinished(run="r1", status="ok"),
    ]
    return lambda: [warning.code for warning in result(fold(sessions.HEADER, events), "r1").warnings]


def in_turns(turn: list[float], alone: float = 1.0) -> Callable[[], list[str]]:
    """The warnings of a run of three launches: its calls in each turn, and the median of those alone."""
    events: list[e.Event] = [
        e.RunPlanned(run="r1", spec=e.RunSpec(workload="f", variant="jit", how="jit", device="cpu:0"))
    ]
    for launch in (1, 2, 3):
        off = 1 + launch / 1000
        events.append(e.WorkerStarted(run="r1", pid=launch, python="python", launch=launch))
        events.append(e.SamplesTaken(run="r1", series="alone", seconds=[alone * off * value for value in STEADY]))
        for block in range(1, 21):
            seconds = [value * off * (1 + block % 5 / 500) for value in turn]
            events.append(e.SamplesTaken(run="r1", series="run", seconds=seconds, block=20 * launch + block))
    events.append(e.RunFinished(run="r1", status="ok"))
    return lambda: [warning.code for warning in result(fold(sessions.HEADER, events), "r1").warnings]


def said(session: Callable[[], Session]) -> Callable[[], list[str]]:
    """The findings and the abstentions of a session."""

    def of() -> list[str]:
        explained = explanation(session(), "s")
        return codes(explained) + unknown(explained)

    return of


def machine(**settings: Any) -> e.EnvironmentRead:
    return e.EnvironmentRead(run="r1", python="3", numpy="2", settings=settings)


def compile_with(stage: str, took: float, name: str = "part") -> Callable[[], Session]:
    part = e.PassTimes(name=name, stage=stage, seconds=took, self_seconds=took)
    tree = e.PassTimes(
        name="compile", stage="compile", seconds=5.0, self_seconds=max(0.0, 5.0 - took), children=(part,)
    )
    return lambda: run_of(MENDED, e.CompilePasses(run="r2", tree=tree))


def failed(error: str) -> Callable[[], Session]:
    run = [
        e.RunFinished(run="r1", status="failed", error=error)
        if error
        else e.RunFinished(run="r1", status="ok")
    ]  # fmt: skip
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="f", variant="jit", how="jit", device="cpu:0"))
    return lambda: fold(sessions.HEADER, [plan, *run, e.SessionClosed()])


def out_of_memory(refused: bool) -> Callable[[], Session]:
    return sessions.whole if refused else lambda: run_of(MENDED)


GOOD, PITFALLS, FAULTS = of_samples(STEADY), "engine/measure/test_pitfalls.py", "engine/test_faults.py"
FOLDED = f"{FAULTS}::test_folded_constants_and_dead_code_are_named"
CLEAN = "engine/test_run.py::test_a_compiled_variant_goes_through_every_phase"
TOO_LONG = "engine/measure/test_capture.py::test_a_compile_is_repeated_from_cold_unless_it_is_too_long"
PAIRS: dict[str, Pair | Elsewhere] = {
    "device-idle": Pair(captured(idle=2e-4), captured(idle=5e-5)),
    "launch-gaps": Pair(captured(launch_gaps=2e-4), captured(launch_gaps=5e-5)),
    "exposed-collectives": Pair(captured(collectives_exposed=2e-4), captured(collectives_exposed=5e-5)),
    "copies-in-steps": Pair(captured(transfers=2e-4), captured(transfers=5e-5)),
    "run-failed": Pair(said(failed("ValueError: no")), said(failed(""))),
    "out-of-memory": Pair(said(out_of_memory(True)), said(out_of_memory(False))),
    "wrong_result": Pair(
        of_samples(STEADY, e.CheckReported(run="r1", passed=False, tolerance=1e-5)),
        of_samples(STEADY, e.CheckReported(run="r1", passed=True, tolerance=1e-5)),
    ),
    "noise": Pair(of_samples([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 9.0]), GOOD),
    "no_interval": Pair(of_samples([1.0 + 0.01 * index for index in range(12)]), GOOD),
    "few_samples": Pair(of_samples(STEADY[:2]), GOOD),
    "drift": Pair(of_samples(STEADY[:18] + [2 * value for value in STEADY[:18]]), GOOD),
    "two_modes": Pair(of_samples([6.0 + n % 7 / 50 if n % 3 == 0 else 2.0 + n % 5 / 50 for n in range(100)]), GOOD),
    "outliers": Pair(of_samples(STEADY + [9.0] * 6), GOOD),
    "busy_machine": Pair(
        of_samples(STEADY, machine(other_busy_cores=0.8, cores=2)),
        of_samples(STEADY, machine(other_busy_cores=0.1, cores=2)),
    ),
    "disturbed": Pair(in_turns([1.6, 1.62, 1.58, 1.6]), in_turns([1.01, 1.0, 1.02, 1.01])),
    "unsettled": Pair(in_turns([1.1, 1.1, 0.9, 0.9]), in_turns([1.0, 1.01, 1.0, 1.01])),
    "not_idle": Elsewhere(
        *["runner/test_turns.py::test_a_process_that_holds_an_accelerator_is_not_frozen_and_is_checked"] * 2
    ),
    "throttled": Pair(
        of_samples(STEADY, e.DeviceReading(run="r1", device="cpu:0", throttle_reasons=["power cap"])),
        of_samples(STEADY, e.DeviceReading(run="r1", device="cpu:0")),
    ),
    "folded_constants": Elsewhere(
        FOLDED, f"{PITFALLS}::test_of_windows_xla_counts_more_than_it_computes"
    ),
    "dead_code": Elsewhere(
        FOLDED, f"{PITFALLS}::test_what_has_an_effect_or_is_used_later_is_not_dead"
    ),
    "dtype_narrowed": Elsewhere(
        f"{FAULTS}::test_a_narrowed_dtype_is_named", CLEAN
    ),
    "compiled_again": Elsewhere(
        "engine/measure/test_inprocess.py::test_a_shape_that_changes_while_running_is_named",
        f"{PITFALLS}::test_compilations_that_nobody_expected_are_counted_and_named",
    ),
    "zero_copy": Elsewhere(*[f"{PITFALLS}::test_a_transfer_that_copied_nothing_is_no_copy"] * 2),
    "not_captured": Elsewhere(TOO_LONG, TOO_LONG),
    "unlike_results": Elsewhere(*["runner/test_sides.py::test_results_of_another_dtype_are_refused_a_verdict"] * 2),
    "results_differ": Elsewhere(
        "runner/test_sides.py::test_other_results_are_said_and_leave_the_verdict_alone",
        "runner/test_sides.py::test_results_of_another_dtype_are_refused_a_verdict",
    ),
    "compile_cached": Elsewhere(
        "engine/measure/test_stages.py::test_a_program_that_was_compiled_before_is_told",
        "engine/measure/test_inprocess.py::test_a_compile_is_cold_the_second_time_too",
    ),
    "over_budget": Elsewhere(*["engine/measure/test_preflight.py::test_a_call_longer_than_the_budget_is_told"] * 2),
    "max_seconds_reached": Elsewhere(
        "engine/measure/test_run.py::test_a_run_that_reaches_its_cap_has_a_result_if_it_has_samples",
        CLEAN,
    ),
    "worker_silent": Elsewhere(
        "runner/test_scheduler.py::test_a_silent_engine_is_told",
        CLEAN,
    ),
    "dispatch-bound-call": Pair(said(lambda: on_gpu(630e-6, 400e-6, 1e-4)), said(lambda: on_gpu(630e-6, 2e-5, 1e-4))),
    "copies-outweigh-work": Pair(said(lambda: on_gpu(630e-6, 2e-5, 9e-4)), said(lambda: on_gpu(630e-6, 2e-5, 1e-4))),
    "slow-autotuning": Pair(said(compile_with("autotuning", 3.0)), said(compile_with("autotuning", 0.5))),
    "slow-llvm": Pair(said(compile_with("LLVM", 9.0)), said(compile_with("LLVM", 3.0))),
    "slow-constant-folding": Pair(
        said(compile_with("HLO passes", 3.0, "constant_folding")), said(compile_with("HLO passes", 3.0, "algsimp"))
    ),
    "slow-ptx": Pair(said(compile_with("PTX", 3.0)), said(compile_with("PTX", 0.5))),
    "slower": Pair(said(lambda: compared(1.5)), said(lambda: compared(1.0))),
    "inconclusive": Pair(said(lambda: compared(1.5, together=False)), said(lambda: compared(1.5))),
}  # fmt: skip


def function_of(named: str) -> ast.FunctionDef:
    """The test function of that name. Raises StopIteration if there is none."""
    file, _, name = named.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    return next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)


def test_every_source_has_a_test_that_reads_its_codes() -> None:
    assert set(OF_SOURCES) == set(SOURCES)
    for named in OF_SOURCES.values():
        assert function_of(named)
        assert "entries()" in (TESTS / named.partition("::")[0]).read_text()


def test_every_code_has_a_pair() -> None:
    assert set(PAIRS) == {entry.code for entry in entries().values() if entry.source in HERE}


@pytest.mark.parametrize("code", [code for code, pair in PAIRS.items() if isinstance(pair, Pair)])
def test_it_is_said_of_the_case_and_not_of_the_mended_one(code: str) -> None:
    pair = PAIRS[code]
    assert isinstance(pair, Pair)
    assert code in pair.case()
    assert code not in pair.mended()


@pytest.mark.parametrize("code", [code for code, pair in PAIRS.items() if isinstance(pair, Elsewhere)])
def test_its_pair_is_in_the_tests_of_what_raises_it(code: str) -> None:
    pair = PAIRS[code]
    assert isinstance(pair, Elsewhere)
    assert code in ast.unparse(function_of(pair.case))
    assert function_of(pair.mended)
