"""Which process of a job is late, and why; and what cannot be said."""

from __future__ import annotations

from pathlib import Path

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.jobs import JobFigures, job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import captures, job, loop, process, stderr


def figures(folder: Path) -> JobFigures:
    return job_figures(read_job(folder, Session))


def codes(folder: Path) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.index, finding.part) for finding in figures(folder).findings]


@pytest.mark.parametrize("count", [2, 4, 16])
@pytest.mark.parametrize("part", ["data", "host"])
def test_the_late_process_is_named_with_what_makes_it_late(tmp_path: Path, count: int, part: str) -> None:
    loops = [loop(**{part: 0.3}) if index == count - 1 else loop() for index in range(count)]
    [finding] = figures(job(tmp_path, *loops)).findings
    assert (finding.code, finding.index, finding.part) == ("straggler", count - 1, part)
    assert f"process {count - 1} on node{count - 1} is late" in finding.message
    assert finding.where is not None
    assert finding.where.line == {"data": 86, "host": 91}[part]
    assert finding.seconds == pytest.approx(20 * (0.3 - {"data": 0.02, "host": 0.0}[part]), rel=0.01)


def test_processes_that_do_not_wait_for_each_other_are_not_said_to(tmp_path: Path) -> None:
    [finding] = figures(job(tmp_path, loop(), loop(30, data=0.3), loop())).findings
    assert finding.message.endswith("2% on the others, whose loop takes 20.0 s where its takes 30.0 s")


def test_two_late_processes_do_not_hide_each_other(tmp_path: Path) -> None:
    assert codes(job(tmp_path, loop(), loop(data=0.3), loop(), loop(host=0.25), loop(), loop())) == [
        ("straggler", 1, "data"),
        ("straggler", 3, "host"),
    ]


@pytest.mark.parametrize(
    ("loops", "why"),
    [
        ([loop(), loop(data=0.03), loop(data=0.04), loop()], "a small difference"),
        ([loop(data=0.3) for _ in range(4)], "all of them fetch for as long"),
        ([loop(2), loop(2, data=0.09), loop(2)], "too few samples for this difference"),
        ([loop(data=0.02), loop(data=0.3), loop(data=0.15), loop(data=0.45), loop(data=0.6)], "all of them differ"),
    ],
)
def test_nobody_is_named_late_who_is_not(tmp_path: Path, loops: list[list[e.Event]], why: str) -> None:
    late = [finding for finding in figures(job(tmp_path, *loops)).findings if finding.code == "straggler"]
    assert not late, why


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    alone = figures(job(tmp_path / "alone", loop()))
    assert "fewer than two" in alone.notices[-1]
    other = [
        *program_events.steady(
            20, {"device_busy": 1.0}, [program_events.line(188, 1.0, "device_busy", "step", loop=185)]
        ),
        program_events.compiled("step"),
    ]
    assert "different lines" in figures(job(tmp_path / "apart", loop(), other)).notices[-1]


def test_a_process_that_compiles_again_alone(tmp_path: Path) -> None:
    often = [*loop(), *program_events.shaped(9, "metric")]
    [finding] = figures(job(tmp_path / "alone", loop(), often, loop())).findings
    assert (finding.code, finding.index, finding.seconds) == ("recompiles-alone", 1, pytest.approx(0.9))
    assert (
        "process 1 compiled metric again 8 times, none of the others: argument x: f32[8,128] → f32[9,128]"
        in finding.message
    )
    assert not codes(job(tmp_path / "all", often, often, often))


def test_the_first_failure_is_the_exception_that_came_first(tmp_path: Path) -> None:
    """JAX's runtime ends all processes minutes later, in any order: here the one that failed is the last to end."""
    traceback = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3',
        "ValueError: a damaged shard",
        "E1123 then",
    ]
    for index, words in enumerate(([], [], traceback)):
        process(tmp_path, index, 3, *loop(), *stderr(*words), wall=20.0 + index, exit_code=134)
    first, others = figures(tmp_path).findings
    assert (first.code, first.index) == ("process-failed", 2)
    assert first.message == "process 2 on node2: ValueError: a damaged shard"
    assert (others.code, others.message) == ("failed-after", "processes 0, 1 ended after that: exit code 134")


def test_without_an_exception_the_first_to_end_is_named(tmp_path: Path) -> None:
    process(tmp_path, 0, 3, *loop(), wall=25.0, exit_code=1)
    process(tmp_path, 1, 3, *loop(), wall=21.0, exit_code=9)
    process(tmp_path, 2, 3, *loop())
    first, other = figures(tmp_path).findings
    assert (first.index, first.message) == (1, "process 1 on node1: exit code 9")
    assert other.message == "process 0 ended after that: exit code 1"


def test_a_process_whose_session_has_no_end_failed(tmp_path: Path) -> None:
    process(tmp_path, 0, 2, *loop())
    process(tmp_path, 1, 2, *loop(), wall=None)
    [finding] = figures(tmp_path).findings
    assert (finding.code, finding.index) == ("process-failed", 1)
    assert "no end" in finding.message


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_slow_device_arrives_last_at_the_collectives(tmp_path: Path, count: int) -> None:
    taken = captures(count, late=1, skip=[0, 7, *[3] * count][:count], clocks=[0.0, 0.002, *[0.001] * count][:count])
    found = figures(job(tmp_path, *([*loop(), *captured] for captured in taken)))
    [finding] = found.findings
    assert (finding.code, finding.index, finding.part) == ("slow-device", 1, "device")
    assert "arrives last at 100% of 93 executions of all-reduce" in finding.message
    seen = found.arrivals
    assert seen is not None
    assert finding.seconds == seen.caused_seconds[1] == pytest.approx(93 * 3.5e-3, rel=0.02)
    assert seen.offset_seconds[1] == pytest.approx(0.002, abs=1e-4)
    assert seen.uncertain_seconds < 2e-4
    assert sum(seen.last_count) == seen.instances == 93


def test_nobody_is_slow_where_all_arrive_at_once(tmp_path: Path) -> None:
    for seed in range(20):
        folder = tmp_path / str(seed)
        found = figures(job(folder, *([*loop(), *captured] for captured in captures(2 + seed % 3, seed=seed))))
        assert found.arrivals is not None
        assert not found.findings


def test_clocks_of_hosts_that_are_half_a_minute_apart(tmp_path: Path) -> None:
    taken = captures(2, late=0, instances=200, clocks=[0.0, 33.0], skip=[20, 0])
    found = figures(job(tmp_path, *([*loop(), *captured] for captured in taken)))
    assert found.arrivals is not None
    assert found.arrivals.offset_seconds[1] == pytest.approx(33.0, abs=1e-3)
    assert [finding.index for finding in found.findings] == [0]


def test_captures_that_cannot_be_laid_on_each_other_say_nothing(tmp_path: Path) -> None:
    apart = [captures(2, late=0, seed=1)[0], captures(2, late=0, seed=2)[1]]
    found = figures(job(tmp_path / "apart", *([*loop(), *captured] for captured in apart)))
    assert found.arrivals is None
    assert "do not show the same executions of all-reduce" in found.notices[-1]
    few = captures(2, late=0, instances=30)
    assert figures(job(tmp_path / "few", *([*loop(), *captured] for captured in few))).arrivals is None
    alone = [[*loop(), *captures(2, late=0)[0]], loop()]
    assert figures(job(tmp_path / "alone", *alone)).arrivals is None


def test_what_its_host_explains_is_not_blamed_on_its_device(tmp_path: Path) -> None:
    taken = captures(3, late=1)
    loops = [loop(), loop(data=0.3), loop()]
    assert codes(job(tmp_path, *([*inside, *captured] for inside, captured in zip(loops, taken, strict=True)))) == [
        ("straggler", 1, "data")
    ]


def test_a_killed_process_comes_before_the_exceptions_of_those_that_missed_it(tmp_path: Path) -> None:
    """They notice it before its own end is known."""
    reset = ["Traceback (most recent call last):", "jax.errors.JaxRuntimeError: connection reset by peer"]
    for index in range(3):
        words = [] if index == 0 else stderr(*reset, seconds=19.98 + index / 1000)
        process(tmp_path, index, 3, *loop(), *words, wall=20.0 if index == 0 else 24.0, exit_code=137)
    first, others = figures(tmp_path).findings
    assert (first.code, first.index) == ("process-failed", 0)
    assert others.message == "processes 1, 2 ended after that: jax.errors.JaxRuntimeError: connection reset by peer"
