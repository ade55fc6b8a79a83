"""Which process of a job is late, and why; and what cannot be said."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.jobs.job import JobFigures, compare_with_others, job_figures
from jaxprof.report.hosts import nothing_found
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from jaxprof.units import percent
from job_folders import captures, job, late_from, loop, process, stderr, wavering

ELSEWHERE = [
    *program_events.steady(20, {"device_busy": 1.0}, [program_events.line(188, 1.0, "device_busy", "step", loop=185)]),
    program_events.compiled("step"),
]
"""A process whose loop is at another line."""
LONG = bool(os.environ.get("JAXPROF_LONG"))


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
    assert ("which wait for it: the input of this host starves the job" in finding.message) == (part == "data")
    assert finding.where.line == {"data": 86, "host": 91}[part]
    assert finding.seconds == pytest.approx(20 * (0.3 - {"data": 0.02, "host": 0.0}[part]), rel=0.01)


@pytest.mark.parametrize(
    ("host", "clock", "named"), [(0.86, 0.9, True), (0.45, 0.5, True), (0.86, 0.05, False), (0.3, 0.9, False)]
)
def test_what_is_plain_is_said_of_a_short_loop_where_the_clock_agrees(
    tmp_path: Path, host: float, clock: float, named: bool
) -> None:
    """A process of four sleeps in each step of a loop of two seconds."""
    loops = [
        [
            replace(event, device_wait_seconds=1 - (clock if index == 2 else 0.05))
            if isinstance(event, e.ProgramSampled)
            else event
            for event in loop(2, host=host if index == 2 else 0.0)
        ]
        for index in range(4)
    ]
    found = [(finding.code, finding.index, finding.part) for finding in figures(job(tmp_path, *loops)).findings]
    assert found == ([("straggler", 2, "host")] if named else [])


def test_what_all_processes_share_is_said_of_the_job(tmp_path: Path) -> None:
    dear = [[*loop(), program_events.compiled("setup", compile_seconds=14.0 + index / 5)] for index in range(4)]
    assert "All 4 processes: compiling, of the wall time: 71 % to 7" in nothing_found(
        figures(job(tmp_path / "a", *dear))
    )
    assert "All 4" not in nothing_found(figures(job(tmp_path / "b", *dear[:3], loop())))


def test_processes_that_do_not_wait_for_each_other_are_not_said_to(tmp_path: Path) -> None:
    [finding] = figures(job(tmp_path, loop(), loop(30, data=0.3), loop())).findings
    assert finding.message.endswith("2.0 % on the others, whose loops take 20.0 s while its own takes 30.0 s")


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
        ([loop(4), loop(4, data=0.3), loop(4)], "four windows are too few"),
        ([wavering(12, seed=seed, data=0.1 + 0.06 * (seed == 1), noise=0.06) for seed in range(4)], "blocks that vary"),
        ([loop(data=0.02), loop(data=0.3), loop(data=0.15), loop(data=0.45), loop(data=0.6)], "all of them differ"),
    ],
)
def test_nobody_is_named_late_who_is_not(tmp_path: Path, loops: list[list[e.Event]], why: str) -> None:
    late = [finding for finding in figures(job(tmp_path, *loops)).findings if finding.code == "straggler"]
    assert not late, why


@pytest.mark.parametrize("count", [2, 4])
def test_nobody_is_named_where_seconds_are_like_those_before(tmp_path: Path, count: int) -> None:
    """Samples that fall in step with a program see the same for seconds: blocks are not independent either."""
    for seed in range(0, (20 if LONG else 6) * count, count):
        loops = [wavering(40, noise=0.08, seed=seed + index, alike=0.5, clock=0.1) for index in range(count)]
        assert not figures(job(tmp_path / str(seed), *loops)).findings, seed


def test_the_clock_decides_who_is_late_where_samples_are_biased(tmp_path: Path) -> None:
    """A recorder that comes for the interpreter's lock may see a call all the time, or never."""
    biased = [wavering(30, seed=1, clock=0.01), wavering(30, seed=2, clock=0.4), wavering(30, seed=3, clock=0.02)]
    assert not figures(job(tmp_path / "biased", *biased)).findings
    unseen = [wavering(30, seed=seed, clock=0.1, late=(0, 30, 0.3 * (seed == 1))) for seed in range(3)]
    [finding] = figures(job(tmp_path / "unseen", *unseen)).findings
    assert (finding.code, finding.index, finding.part, finding.where) == ("straggler", 1, "own", None)
    assert "work on its main thread takes 40 % of its loop, 9.8 % on the others" in finding.message


@pytest.mark.parametrize("clock", [None, 0.1])
@pytest.mark.parametrize(
    ("late", "words"), [((60, 120), "since 60.0 s into its loop: "), ((30, 80), "from 30.0 s to 80.0 s of its loop: ")]
)
def test_since_when_a_process_is_late(tmp_path: Path, clock: float | None, late: tuple[int, int], words: str) -> None:
    loops = [wavering(120, seed=seed, clock=clock, late=(*late, 0.3 * (seed == 2))) for seed in range(4)]
    [finding] = figures(job(tmp_path, *loops)).findings
    assert (finding.code, finding.index) == ("straggler", 2)
    assert finding.since_seconds == pytest.approx(late[0], abs=2)
    if late[1] == 120:
        assert finding.until_seconds is None
    else:
        assert finding.until_seconds == pytest.approx(late[1], abs=2)
    assert finding.seconds == pytest.approx(0.3 * (late[1] - late[0]), rel=0.15)
    assert words in finding.message
    assert "40 % of that time, 9." in finding.message


def test_late_from_the_start(tmp_path: Path) -> None:
    loops = [wavering(60, seed=seed, late=(0, 60, 0.2 * (seed == 2))) for seed in range(4)]
    [finding] = figures(job(tmp_path, *loops)).findings
    assert (finding.since_seconds, finding.until_seconds, finding.since_step) == (0.0, None, None)
    assert "is late: making" in finding.message


@pytest.mark.parametrize("late", [(3, 10), (2, 9), (4, 12)])
def test_a_short_loop_most_of_which_a_process_is_late_in(tmp_path: Path, late: tuple[int, int]) -> None:
    loops = [wavering(late[1], seed=seed, clock=0.1, late=(*late, 0.5 * (seed == 1))) for seed in range(4)]
    [finding] = figures(job(tmp_path, *loops)).findings
    assert (finding.code, finding.index) == ("straggler", 1)


@pytest.mark.parametrize("seconds", [1, 3, 7])
def test_late_from_soon_after_the_start(tmp_path: Path, seconds: int) -> None:
    """So few seconds before do not say since when; that it is late, the others do."""
    job(tmp_path, *(late_from(at) for at in (99, seconds, 99)))
    [found] = figures(tmp_path).findings
    assert (found.code, found.index, found.part) == ("straggler", 1, "data")
    assert found.since_seconds == 0
    processes = figures(tmp_path).processes
    beside = compare_with_others(processes, 1)
    part = next(each for each in beside.parts or () if each.part == "data")
    assert part.share == processes[1].shares["data"]
    assert f"{percent(part.share)} of its loop, {percent(part.others_share)} on the others" in found.message


def test_since_which_step(tmp_path: Path) -> None:
    def passes(begin: float) -> e.StepsTaken:
        return e.StepsTaken(
            run=program_events.RUN, where=program_events.at(85), found_by="monitoring", first=round(50 * begin) + 7,
            began_seconds=program_events.BEGAN + begin, seconds=[0.02] * 1500,
        )  # fmt: skip

    loops = [
        [*wavering(60, seed=seed, clock=0.1, late=(30, 60, 0.3 * (seed == 0))), passes(0.0), passes(30.0)]
        for seed in range(3)
    ]
    [finding] = figures(job(tmp_path, *loops)).findings
    assert finding.since_step is not None
    assert finding.since_seconds is not None
    assert finding.since_step == pytest.approx(7 + 50 * finding.since_seconds, abs=30)
    assert f"(step {finding.since_step})" in finding.message


def test_a_process_in_another_loop_is_left_out(tmp_path: Path) -> None:
    found = figures(job(tmp_path, loop(), loop(data=0.3), loop(), ELSEWHERE))
    assert found.notices[-1] == "not compared, because their loop is at another line: 3 (work/train.py:188)"
    assert found.compared == 3
    assert [finding.index for finding in found.findings] == [1]


def test_one_that_was_not_seen_in_the_loop(tmp_path: Path) -> None:
    short = figures(job(tmp_path / "short", loop(), loop(2)))
    assert "fewer than two processes were seen in a loop for 3 s or more" in short.notices[-1]
    assert short.compared == 0
    three = figures(job(tmp_path / "three", loop(), loop(data=0.3), loop(2)))
    assert (three.compared, [finding.index for finding in three.findings]) == (2, [1])


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ([*loop(), *program_events.shaped(9, "metric")], ("recompiles-alone", 1, "compile")),
        (loop(data=0.3), ("straggler", 1, "data")),
    ],
)
def test_what_its_host_explains_is_not_blamed_on_its_device(
    tmp_path: Path, inside: list[e.Event], code: tuple[str, int, str]
) -> None:
    first, second, third = captures(3, late=1)
    assert codes(job(tmp_path, [*loop(), *first], [*inside, *second], [*loop(), *third])) == [code]


def test_a_slow_device_whose_host_was_not_seen_says_so(tmp_path: Path) -> None:
    taken = captures(3, late=1)
    loops = [loop(), loop(2), loop()]
    [finding] = figures(
        job(tmp_path, *([*inside, *captured] for inside, captured in zip(loops, taken, strict=True)))
    ).findings
    assert (finding.code, finding.index) == ("slow-device", 1)
    assert "its own work on the host was not seen for long enough to exclude that" in finding.message


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    alone = figures(job(tmp_path / "alone", loop()))
    assert "fewer than two" in alone.notices[-1]
    assert "different lines" in figures(job(tmp_path / "apart", loop(), ELSEWHERE)).notices[-1]


def test_a_process_that_compiles_again_alone(tmp_path: Path) -> None:
    often = [*loop(), *program_events.shaped(9, "metric")]
    [finding] = figures(job(tmp_path / "alone", loop(), often, loop())).findings
    assert (finding.code, finding.index, finding.seconds) == ("recompiles-alone", 1, pytest.approx(0.8))
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
    assert re.search(r"arrives 3\.(4|5)\d ms after the others at all-reduce, last at 100 % of 93 exec", finding.message)
    seen = found.arrivals
    assert finding.seconds == seen.caused_seconds[1] == pytest.approx(93 * 3.5e-3, rel=0.02)
    assert seen.offset_seconds[1] == pytest.approx(0.002, abs=1e-4)
    assert seen.uncertain_seconds < 2e-4
    assert sum(seen.last_count) == seen.instances == 93


def test_nobody_is_slow_where_all_arrive_at_once(tmp_path: Path) -> None:
    for seed in range(20 if LONG else 6):
        folder = tmp_path / str(seed)
        found = figures(job(folder, *([*loop(), *captured] for captured in captures(2 + seed % 3, seed=seed))))
        assert found.arrivals is not None
        assert not found.findings


def test_clocks_of_hosts_that_are_half_a_minute_apart(tmp_path: Path) -> None:
    taken = captures(2, late=0, instances=200, clocks=[0.0, 33.0], skip=[20, 0])
    found = figures(job(tmp_path, *([*loop(), *captured] for captured in taken)))
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


def test_a_killed_process_comes_before_the_exceptions_of_those_that_missed_it(tmp_path: Path) -> None:
    """They notice it before its own end is known."""
    reset = ["Traceback (most recent call last):", "jax.errors.JaxRuntimeError: connection reset by peer"]
    for index in range(3):
        words = [] if index == 0 else stderr(*reset, seconds=19.98 + index / 1000)
        process(tmp_path, index, 3, *loop(), *words, wall=20.0 if index == 0 else 24.0, exit_code=137)
    first, others = figures(tmp_path).findings
    assert (first.code, first.index) == ("process-failed", 0)
    assert others.message == "processes 1, 2 ended after that: jax.errors.JaxRuntimeError: connection reset by peer"


@pytest.mark.parametrize(
    ("clock", "hosts", "certain"), [(0.0, 2, True), (5.0, 2, True), (45.0, 2, False), (45.0, 1, True)]
)
def test_the_order_of_failures_is_not_guessed_where_clocks_are_apart(
    tmp_path: Path, clock: float, hosts: int, certain: bool
) -> None:
    """Process 1 raised three seconds after process 0, by a clock that is behind; one host has one clock."""
    words = ["Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: a damaged shard"]
    for index, behind in enumerate((0.0, clock)):
        header = {"wall_seconds": program_events.HEADER.wall_seconds - behind, "host": f"node{index % hosts}"}
        lines = stderr(*words, seconds=5.0 + 3 * index)
        process(tmp_path, index, 2, *loop(), *lines, exit_code=1, header=header)
    first, other = figures(tmp_path).findings
    assert ("which one failed first is not certain" in first.message) != certain
    assert ("ended after that" in other.message) == certain
    if not certain:
        assert "the clocks of the hosts are 45.0 s apart, and process 0 may have failed before it" in first.message


@pytest.mark.parametrize(("instances", "whose"), [(40, (0, 1)), (100, (0,))])
def test_captures_that_are_too_short_or_alone_say_so(tmp_path: Path, instances: int, whose: tuple[int, ...]) -> None:
    taken = captures(2, instances=instances)
    for index in range(2):
        process(tmp_path, index, 2, *loop(), *(taken[index] if index in whose else []))
    found = figures(tmp_path)
    assert found.arrivals is None
    [notice] = found.notices
    wanted = "takes two processes or more" if len(whose) == 1 else "at most 40 executions of one collective"
    assert wanted in notice
