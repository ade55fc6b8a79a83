"""What was recorded inside a program is folded in its order, beside what every run has."""

from __future__ import annotations

from typing import Any, Final

import pytest

import program_events
from folding import fold
from jaxprof import events as e
from jaxprof.session import RecordedProgram

RUN = program_events.RUN


PASSES: Final[dict[str, Any]] = {
    "run": RUN,
    "where": e.SourceLocation("train.py", 8),
    "found_by": "monitoring",
    "first": 0,
    "began_seconds": 1.0,
}


def running(function: str, thread: str = "") -> e.StageRunning:
    return e.StageRunning(run=RUN, function=function, stage="compile", began_seconds=1.0, thread=thread)


def program(*inside: e.Event, **more: None) -> RecordedProgram:
    found = program_events.session(*inside, **more).runs[RUN].program
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kept", "events"),
    [
        ("compiled", program_events.shaped(3)),
        ("sampled", program_events.steady(3, {"device_busy": 1.0})),
        ("steps", [program_events.steps(count, 0.1) for count in (3, 4)]),
        ("passes", [e.StepsTaken(**PASSES, seconds=[0.5]), e.StepsTaken(**PASSES, seconds=[0.25])]),
        ("arrays", program_events.arrays([40, 61])),
        ("transfers", [program_events.copies(direction, 2) for direction in ("host_to_device", "device_to_host")]),
        ("windows", [e.CaptureWindow(run=RUN, state=state) for state in ("began", "ended")]),
        ("stops", [e.ProgramStopped(run=RUN, began_seconds=at, seconds=1.0, found_by="state") for at in (3.0, 5.0)]),
    ],
)
def test_what_comes_again_and_again_is_kept_in_its_order(kept: str, events: list[e.Event]) -> None:
    found = program(*events)
    assert getattr(found, kept) == events
    others = {"compiled", "sampled", "steps", "passes", "arrays", "transfers", "windows", "stops"} - {kept}
    assert not any(getattr(found, other) for other in others)


def test_what_comes_once_is_known_from_then_on() -> None:
    assert (program(wall=None).jax, program(wall=None).ended) == (None, None)
    jax = e.JaxImported(run=RUN, seconds=0.6, version="0.10.2")
    found = program(jax)
    assert found.started is not None
    assert found.ended is not None
    assert (found.started.argv, found.jax, found.ended.exit_code) == (["train.py", "--epochs", "3"], jax, 0)


def test_a_stage_runs_until_its_thread_has_compiled_or_the_program_is_over() -> None:
    both = (running("step"), running("load", "feeder"))
    assert program(*both, wall=None).running == {"": both[0], "feeder": both[1]}
    after = program(*both, program_events.compiled(thread="feeder"), wall=None)
    assert after.running == {"": both[0]}
    assert program(*both, program_events.compiled(), wall=None).running == {"feeder": both[1]}
    assert program(*both).running == {}


def test_an_event_of_no_program_makes_none_of_a_run() -> None:
    events = program_events.program(wall=None)
    session = fold(program_events.HEADER, events)
    session.apply(e.LogLine(run=RUN, stream="stdout", text="epoch 1"))
    run = session.runs[RUN]
    assert [line.text for line in run.log] == ["epoch 1"]
    assert run.program is not None
    before = fold(program_events.HEADER, [events[0], e.LogLine(run=RUN, stream="stdout", text="x")])
    assert before.runs[RUN].program is None


def test_passes_are_kept_with_their_counts() -> None:
    one = e.StepsTaken(**PASSES, seconds=[0.5, 0.25])
    four = e.StepsTaken(**PASSES | {"first": 2}, seconds=[0.5, 2.0], counts=[1, 3])
    found = program(one, four)
    assert found.passes == [one, four]
    assert [(event.count, event.ended_seconds) for event in found.passes] == [(2, 1.75), (4, 3.5)]


@pytest.mark.parametrize(
    "damage",
    [
        {"seconds": []},
        {"seconds": [0.5, -0.5]},
        {"seconds": [0.5, 0.5], "counts": [1]},
        {"seconds": [0.5], "counts": [0]},
        {"seconds": [0.5] * 100_001},
        {"seconds": [0.5], "counts": [1 << 62]},
        {"seconds": [0.5], "first": -(1 << 60)},
        {"seconds": [0.5], "began_seconds": -1.0},
    ],
    ids=["none", "negative", "fewer counts", "no pass", "too many", "too high", "too low", "before the clock"],
)
def test_passes_that_cannot_be_are_left_out_with_a_notice(damage: dict[str, Any]) -> None:
    kept = e.StepsTaken(**PASSES, seconds=[0.5])
    session = program_events.session(kept, e.StepsTaken(**PASSES | {"seconds": [0.5]} | damage))
    found = session.runs[RUN].program
    assert found is not None
    assert found.passes == [kept]
    assert [notice for notice in session.notices if "passes" in notice] == [
        "passes of a loop were left out: their times and counts do not fit"
    ]
