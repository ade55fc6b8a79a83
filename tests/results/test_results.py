from __future__ import annotations

import pytest

from jaxprof import events as e
from jaxprof.results import result, results, sweep_groups
from jaxprof.session import Session, fold


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
            workload="selu",
            variant=variant,
            how="jit",
            device="cpu:0",
            baseline=baseline,
            parameters={"n": n, "mode": "x"},
        )
    ]
    made += [e.PhaseEnded(run=run, phase=name, seconds=value) for name, value in (phases or {}).items()]
    made.append(e.SamplesTaken(run=run, series="run", seconds=seconds))
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
    assert other.versus is not None
    assert other.versus.baseline == "r1"
    assert other.versus.speedup.ratio == pytest.approx(10)
    calls = other.versus.break_even_calls
    assert calls is not None
    assert 7.0 + 0.3 + (calls - 1) * 0.1 <= calls * 1.0 < 7.0 + 0.3 + (calls - 1) * 0.1 + 1.0
    assert list(other.phase_seconds) == ["trace", "lower", "compile", "first_run", "run"]


def test_an_unmeasured_phase_makes_the_sum_unknown() -> None:
    session = session_of(run_events("r1", "numpy", STEADY), run_events("r2", "jit", STEADY, "r1"))
    session.apply(e.PhaseEnded(run="r2", phase="lower", seconds=None))
    found = result(session, "r2")
    assert found.once_seconds is None
    assert found.versus is not None
    assert found.versus.break_even_calls is None


def test_figures_follow_growing_samples() -> None:
    session = session_of(run_events("r1", "numpy", [1.0] * 5))
    assert result(session, "r1").summary.median == 1.0  # type: ignore[union-attr]
    session.apply(e.SamplesTaken(run="r1", series="run", seconds=[3.0] * 20))
    assert result(session, "r1").summary.median == 3.0  # type: ignore[union-attr]


def test_rates_are_unknown_without_costs() -> None:
    session = session_of(run_events("r1", "jit", STEADY))
    assert result(session, "r1").flops_per_second is None
    session.apply(e.CostReported(run="r1", flops=2e9, bytes_accessed=None))
    assert result(session, "r1").flops_per_second == pytest.approx(2e9)
    assert result(session, "r1").bytes_per_second is None


@pytest.mark.parametrize(
    ("samples", "code"),
    [
        ([1.0, 2.0], "few_samples"),
        ([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 9.0], "noise"),
        ([1.0, 1.01, 0.99, 1.0, 1.02, 1.0] * 3 + [2.0, 2.01, 1.99, 2.0, 2.02, 2.0] * 3, "drift"),
        (STEADY * 3 + [9.0] * 6, "outliers"),
    ],
)
def test_warnings_of_samples(samples: list[float], code: str) -> None:
    found = result(session_of(run_events("r1", "jit", samples)), "r1").warnings
    assert code in [warning.code for warning in found]
    quiet = result(session_of(run_events("r1", "jit", STEADY * 4)), "r1").warnings
    assert code not in [warning.code for warning in quiet]


def test_a_busy_machine_and_a_wrong_result_are_told() -> None:
    session = session_of(run_events("r1", "jit", STEADY))
    session.apply(e.EnvironmentRead(run="r1", python="3", numpy="2", settings={"other_busy_cores": 0.8, "cores": 2}))
    session.apply(e.CheckReported(run="r1", passed=False, max_relative_error=0.5, tolerance=1e-5))
    codes = [warning.code for warning in result(session, "r1").warnings]
    assert codes == ["busy_machine", "wrong_result"]


def test_a_throttled_device_is_told_of_its_own_run_only() -> None:
    session = session_of(run_events("r1", "jit", STEADY), run_events("r2", "jit", STEADY))
    session.apply(e.DeviceReading(run="r2", device="cpu:0", throttle_reasons=["power cap"]))
    assert [warning.code for warning in result(session, "r1").warnings] == []
    assert [warning.code for warning in result(session, "r2").warnings] == ["throttled"]


def test_sweeps_name_the_crossover() -> None:
    groups = []
    for index, n in enumerate((10, 100, 1000)):
        base, other = f"r{2 * index + 1}", f"r{2 * index + 2}"
        groups.append(run_events(base, "numpy", [n * 1e-3] * 6, n=n))
        groups.append(run_events(other, "jit", [0.05] * 6, base, n=n))
    found = sweep_groups(session_of(*groups))
    assert [(group.workload, group.parameter, len(group.lines)) for group in found] == [("selu", "n", 2)]
    (crossover,) = found[0].crossovers()
    assert crossover.always_faster
    assert crossover.size == pytest.approx(50, rel=1e-6)
    assert (crossover.low, crossover.high) == (10, 100)
    assert "from n ≈ 50" in crossover.sentence("n")


def test_a_sweep_that_never_crosses_says_so() -> None:
    groups = []
    for index, n in enumerate((10, 100)):
        base = f"r{2 * index + 1}"
        groups += [
            run_events(base, "numpy", [1.0] * 6, n=n),
            run_events(f"r{2 * index + 2}", "jit", [0.5] * 6, base, n=n),
        ]
    (crossover,) = sweep_groups(session_of(*groups))[0].crossovers()
    assert crossover.sentence("n") == "jit cpu:0 is faster at every size measured"


def test_sizes_at_which_the_two_cannot_be_told_apart_do_not_count() -> None:
    same = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0]
    groups = []
    for index, n in enumerate((10, 100)):
        base = f"r{2 * index + 1}"
        groups += [
            run_events(base, "numpy", same, n=n),
            run_events(f"r{2 * index + 2}", "jit", [value * 0.99 for value in same], base, n=n),
        ]
    (crossover,) = sweep_groups(session_of(*groups))[0].crossovers()
    assert "cannot be told apart" in crossover.sentence("n")


def test_one_size_is_no_sweep() -> None:
    assert sweep_groups(session_of(run_events("r1", "numpy", STEADY))) == []
