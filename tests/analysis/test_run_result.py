from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis import SweepGroup, result, results, sweep_groups
from jaxprof.session import Session


def run_events(
    run: str,
    variant: str,
    seconds: list[float],
    baseline: str = "",
    n: int = 10,
    phases: dict[str, float] | None = None,
    status: str = "ok",
) -> list[e.Event]:
    made: list[e.Event] = [
        e.RunPlanned(
            run=run,
            spec=e.RunSpec(
                workload="selu",
                variant=variant,
                how="jit",
                device="cpu:0",
                baseline=baseline,
                parameters={"n": n, "mode": "x"},
            ),
        )
    ]
    made += [e.PhaseEnded(run=run, phase=name, seconds=value) for name, value in (phases or {}).items()]
    made.append(e.WorkerStarted(run=run, pid=1, python="python"))
    for index, sample in enumerate(seconds):
        block = 2 * index + bool(baseline)
        made.append(e.SamplesTaken(run=run, series="run", seconds=[sample], block=block))
    made.append(e.RunFinished(run=run, status=status))
    return made


STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0, 1.01, 0.99]


def session_of(*groups: list[e.Event]) -> Session:
    return fold(e.Header(), [event for group in groups for event in group])


def test_speedup_and_break_even() -> None:
    fast = [value / 10 for value in STEADY]
    session = session_of(
        run_events("r1", "numpy", STEADY),
        run_events("r2", "jit", fast, "r1", phases={"trace": 1.0, "lower": 2.0, "compile": 4.0, "first_run": 0.3}),
    )
    base, other = results(session)
    assert base.versus is None
    assert base.once_seconds == 0.0
    assert other.once_seconds == 7.0
    assert other.versus.baseline == "r1"
    assert other.versus.speedup.ratio == pytest.approx(10)
    calls = other.versus.break_even_calls
    assert 7.0 + 0.3 + (calls - 1) * 0.1 <= calls * 1.0 < 7.0 + 0.3 + (calls - 1) * 0.1 + 1.0
    assert list(other.phase_seconds) == ["trace", "lower", "compile", "first_run", "run"]


def test_an_unmeasured_phase_makes_the_sum_unknown() -> None:
    session = session_of(run_events("r1", "numpy", STEADY), run_events("r2", "jit", STEADY, "r1"))
    session.apply(e.PhaseEnded(run="r2", phase="lower", seconds=None))
    found = result(session, "r2")
    assert found.once_seconds is None
    assert found.versus.break_even_calls is None


def test_figures_follow_growing_samples() -> None:
    session = session_of(run_events("r1", "numpy", [1.0] * 5))
    assert result(session, "r1").summary.median == 1.0  # type: ignore[union-attr]
    session.apply(e.SamplesTaken(run="r1", series="run", seconds=[3.0] * 20))
    assert result(session, "r1").summary.median == 3.0  # type: ignore[union-attr]


def test_rates_are_unknown_without_costs() -> None:
    session = session_of(run_events("r1", "jit", STEADY))
    assert result(session, "r1").flops_per_second is None
    session.apply(e.CostReported(run="r1", flops=2e9, bytes_accessed=None, source=e.ESTIMATED_BY))
    assert result(session, "r1").flops_per_second == pytest.approx(2e9)
    assert result(session, "r1").bytes_per_second is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_relative_error": 0.5, "tolerance": 1e-5}, "relative error 0.5 against a tolerance of 1e-05"),
        ({"note": "the result is bool, float64 is expected", "elements": 3, "wrong_elements": 3}, "the result is bool"),
        (
            {"tolerance": 1e-4, "elements": 1_000_000, "wrong_elements": 410_000, "worst_at": "[3, 5]",
             "worst_got": "0.81", "worst_expected": "0.80"},
            "410\u202f000 of 1\u202f000\u202f000 numbers are off by more than the tolerance of 0.0001; "
            "the furthest off at [3, 5]: 0.81 for 0.80",
        ),
        (
            {"tolerance": 1e-4, "elements": 1, "wrong_elements": 1, "worst_got": "2.0", "worst_expected": "1.0"},
            "it is off by more than the tolerance of 0.0001: 2.0 for 1.0",
        ),
        (
            {"tolerance": 0.0, "elements": 4, "wrong_elements": 1, "worst_at": "[2]", "worst_got": "2",
             "worst_expected": "1"},
            "1 of 4 numbers are not the same; the furthest off at [2]: 2 for 1",
        ),
    ],
)  # fmt: skip
def test_a_wrong_result_says_what_is_wrong_of_it(fields: dict[str, Any], words: str) -> None:
    session = session_of(run_events("r1", "jit", STEADY))
    session.apply(e.CheckReported(run="r1", passed=False, against="numpy twin", **fields))
    (warning,) = result(session, "r1").warnings
    assert warning.message.startswith("the result differs from the expected one (numpy twin): ")
    assert words in warning.message
    assert "highest" not in warning.advice


def test_a_wrong_result_of_a_lower_precision_is_to_be_compared_with_the_full_one() -> None:
    session = session_of(run_events("r1", "jit", STEADY))
    session.apply(e.CheckReported(run="r1", passed=False, precision="tf32", elements=9, wrong_elements=9))
    assert "`highest`" in result(session, "r1").warnings[0].advice


def test_a_throttled_device_is_told_of_its_own_run_only() -> None:
    session = session_of(run_events("r1", "jit", STEADY), run_events("r2", "jit", STEADY))
    session.apply(e.DeviceReading(run="r2", device="cpu:0", throttle_reasons=["power cap"]))
    assert [warning.code for warning in result(session, "r1").warnings] == []
    assert [warning.code for warning in result(session, "r2").warnings] == ["throttled"]


def test_two_modes_are_told() -> None:
    random = np.random.default_rng(0)
    taking_turns = (np.where(np.arange(100) % 3 == 0, 6e-3, 2e-3) * random.lognormal(0, 0.02, 100)).tolist()
    found = result(session_of(run_events("r1", "jit", taking_turns)), "r1")
    assert found.modes is not None
    (warning,) = [warning for warning in found.warnings if warning.code == "two_modes"]
    assert warning.message.startswith("two modes: 2.0")
    assert " ms (66 %), " in warning.message
    assert "once" not in warning.message
    assert "outliers" not in [one.code for one in found.warnings], "the slow mode is no crowd of outliers"
    once = result(session_of(run_events("r1", "jit", sorted(taking_turns))), "r1")
    assert "It changed once" in next(one.message for one in once.warnings if one.code == "two_modes")
    assert result(session_of(run_events("r1", "jit", STEADY * 10)), "r1").modes is None


def test_what_moved_nothing_has_no_bandwidth_and_no_speed_up() -> None:
    def measured(zero_copy: bool) -> Any:
        session = session_of(run_events("r1", "numpy", [1e-3] * 8), run_events("r2", "put", [5e-6] * 8, "r1"))
        session.apply(e.CostReported(run="r2", flops=1e6, bytes_accessed=1e6, source=e.ESTIMATED_BY))
        session.apply(e.PhaseEnded(run="r2", phase="run", seconds=1.0, zero_copy=zero_copy))
        return result(session, "r2")

    copied, shared = measured(False), measured(True)
    assert copied.versus is not None
    assert copied.bytes_per_second == pytest.approx(1e6 / 5e-6)
    assert shared.moved_nothing
    assert (shared.versus, shared.bytes_per_second, shared.flops_per_second) == (None, None, None)
    assert shared.summary.median == pytest.approx(5e-6), "its time is that of a call"


def test_a_baseline_that_moved_nothing_is_none() -> None:
    session = session_of(run_events("r1", "view", [1e-6] * 8), run_events("r2", "jit", [1e-3] * 8, "r1"))
    session.apply(e.PhaseEnded(run="r1", phase="run", seconds=1.0, zero_copy=True))
    assert result(session, "r2").versus is None


def test_stages_that_happen_several_times_show_their_spread() -> None:
    session = session_of(run_events("r1", "jax", STEADY))
    for stage, seconds in (("trace", 1e-3), ("compile", 2e-3), ("compile", 8e-3), ("compile", 5e-3)):
        session.apply(e.CompileObserved(run="r1", function="f", stage=stage, seconds=seconds))
    spreads = result(session, "r1").stage_spreads
    assert list(spreads) == ["compile"], "one trace has no spread"
    assert (spreads["compile"].count, spreads["compile"].minimum, spreads["compile"].maximum) == (3, 2e-3, 8e-3)


def one_after_the_other(*seconds: float) -> Session:
    """A baseline and a run of an older session: samples without turns."""
    groups = [run_events("r1", "numpy", []), run_events("r2", "jit", [], "r1")]
    for group, sample in zip(groups, seconds, strict=True):
        group.insert(-1, e.SamplesTaken(run=group[0].run, series="run", seconds=[sample] * 40))
    return session_of(*groups)


def test_what_was_not_measured_together_gets_no_verdict() -> None:
    versus = result(one_after_the_other(10.0, 1.0), "r2").versus
    assert versus.speedup.ratio == pytest.approx(10)
    assert (versus.speedup.verdict, versus.speedup.reason) == ("inconclusive", "not measured together")
    assert (versus.speedup.low, versus.speedup.high) == (None, None)


def test_a_wrong_result_is_not_called_faster() -> None:
    session = session_of(run_events("r1", "numpy", [10.0] * 10), run_events("r2", "jit", STEADY, "r1"))
    before = result(session, "r2").versus
    session.apply(e.CheckReported(run="r2", passed=False))
    after = result(session, "r2").versus
    assert (before.speedup.verdict, after.speedup.verdict) == ("faster", "inconclusive")
    assert after.speedup.reason == "its result is wrong"


def test_a_clock_that_was_throttled_on_one_side_alone_gives_no_verdict() -> None:
    session = session_of(run_events("r1", "numpy", [10.0] * 10), run_events("r2", "jit", STEADY, "r1"))

    def reason() -> str:
        versus = result(session, "r2").versus
        return versus.speedup.reason

    assert reason() == ""
    session.apply(e.DeviceReading(run="r2", device="cpu:0", throttle_reasons=["thermal"]))
    assert "throttled" in reason()
    session.apply(e.DeviceReading(run="r1", device="cpu:0", throttle_reasons=["thermal"]))
    assert reason() == "", "both sides alike"


def test_one_launch_is_said_to_hold_for_its_processes_only() -> None:
    session = session_of(run_events("r1", "numpy", [10.0] * 10), run_events("r2", "jit", STEADY, "r1"))
    versus = result(session, "r2").versus
    assert versus.speedup.basis == "1 launch: holds for these processes"
    assert (versus.speedup.launches, versus.speedup.between_share) == (1, None)


def sweep(baseline: dict[int, list[float]], other: dict[int, list[float]]) -> list[SweepGroup]:
    """A sweep over `n`: the samples of both at each size."""
    groups = []
    for index, n in enumerate(baseline):
        base = f"r{2 * index + 1}"
        groups += [run_events(base, "numpy", baseline[n], n=n)]
        groups += [run_events(f"r{2 * index + 2}", "jit", other[n], base, n=n)] if other else []
    return sweep_groups(session_of(*groups))


def times(factor: float) -> list[float]:
    return [factor * value for value in STEADY]


NOISY = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0]
CLOSE = [0.99 * value for value in reversed(NOISY)]


@pytest.mark.parametrize(
    ("baseline", "other", "verdict", "sentence"),
    [
        ({10: [117.0, 128.7], 1000: [1.0, 1.1]}, {10: [1.0, 1.1], 1000: [1.0, 1.1]}, "inconclusive", "cannot be told"),
        ({10: NOISY, 100: NOISY}, dict.fromkeys((10, 100), CLOSE),
         "inconclusive", "cannot be told apart"),
        (dict.fromkeys((10, 1000), STEADY), dict.fromkeys((10, 1000), STEADY), "same", "as fast as the baseline at"),
        (dict.fromkeys((1, 2, 3), STEADY), dict.fromkeys((1, 2, 3), times(50)), "slower", "slower at every size"),
        (dict.fromkeys((1, 2, 3), STEADY), {1: times(50), 2: STEADY, 3: times(50)}, "slower", "slower at 2 of 3 sizes"),
        (dict.fromkeys((10, 100), times(1)), dict.fromkeys((10, 100), times(0.5)), "faster", "faster at every size"),
    ],
)  # fmt: skip
def test_what_a_sweep_comes_to(
    baseline: dict[int, list[float]], other: dict[int, list[float]], verdict: str, sentence: str
) -> None:
    (crossover,) = sweep(baseline, other)[0].crossovers()
    assert (crossover.verdict, sentence in crossover.sentence("n")) == (verdict, True), crossover.sentence("n")


def test_sweeps_name_the_crossover() -> None:
    sizes = (10, 100, 1000)
    found = sweep({n: [n * 1e-3] * 10 for n in sizes}, dict.fromkeys(sizes, [0.05] * 10))
    assert [(group.workload, group.parameter, len(group.lines)) for group in found] == [("selu", "n", 2)]
    (crossover,) = found[0].crossovers()
    assert (crossover.verdict, crossover.size) == ("faster", pytest.approx(50, rel=1e-6))
    assert (crossover.low, crossover.high) == (10, 100)
    assert "from n ≈ 50" in crossover.sentence("n")
    assert sweep({10: STEADY}, {}) == [], "one size is no sweep"
