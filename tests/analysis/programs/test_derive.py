"""Figures of a recording: its time line and functions, the iterations of its loop as one series, and its pauses, which
were seen from outside and from within, told once."""

from dataclasses import asdict
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from folding import fold
from golden import figures_text, held, held_cases
from jaxprof import events as e
from jaxprof.analysis.programs.pauses import merge_pauses, without_pauses
from jaxprof.analysis.programs.result import NOT_SEEN, states_by_column
from jaxprof.analysis.programs.steps import iteration_series
from jaxprof.findings.program_result import program_result
from program_events import BEGAN, iterations

DURATIONS = st.floats(0, 1e4, allow_nan=False)
STRETCHES = st.lists(st.dictionaries(st.sampled_from(e.PROGRAM_STATES), DURATIONS, max_size=9), max_size=12)


@given(STRETCHES, DURATIONS)
def test_the_time_line_adds_up_whatever_was_seen(windows, wall):
    ends = list(accumulate(sum(states.values()) for states in windows))
    began = [0.0, *ends][: len(windows)]
    sampled = [made.sampled(at, sum(states.values()), states) for at, states in zip(began, windows, strict=True)]
    found = made.result(*sampled, wall=wall)
    assert sum(share.seconds for share in found.timeline) == pytest.approx(found.wall_seconds, abs=1e-6)
    assert all(share.seconds >= 0 for share in found.timeline)
    assert found.wall_seconds >= wall


@pytest.mark.parametrize(("share", "line"), [(0.05, None), (0.9, 85)])
def test_brief_loop_of_a_library_is_not_the_programs(share, line):
    inside = made.line(88, share, "device_busy", "step", kind="compiled")
    inside["at"] = [{**inside["at"][0], "library": True}]
    outside = made.line(101, 1 - share, "device_busy", "fit", kind="compiled", loop=None)
    events = [*made.steady(10, {"device_busy": 1.0}, [inside, outside]), made.steps(100, 0.01, lines={88: 1.0})]
    found = made.result(*events)
    assert found.loops[0].where.line == 85
    assert (found.hot.where and found.hot.where.line, found.steps and found.steps.where.line) == (line, line)


def test_unseen_time_comes_last():
    found = made.result(made.sampled(2, 3.0, {"compile": 1.0, "device_busy": 2.0}), wall=10.0)
    assert (found.timeline[-1].state, found.timeline[-1].seconds) == (NOT_SEEN, pytest.approx(7.0))
    assert {share.state for share in found.timeline if share.exact} == {*e.STAGES}, "what JAX reports"


def test_columns_hold_what_was_done_in_their_time():
    """In which order it was done within a window is not known, and not shown."""
    windows = ((0.0, 1.0, {"compile": 1.0}), (1.0, 2.0, {"device_busy": 1.5, "host_busy": 0.5}))
    found = states_by_column([made.sampled(*window) for window in windows], BEGAN, BEGAN + 4.0, 8)
    assert found[0] == found[1] == {"compile": 1.0}
    for column in found[2:6]:
        assert column == pytest.approx({"device_busy": 0.75, "host_busy": 0.25})
    assert found[6] == found[7] == {}


def test_a_program_that_runs_lasts_until_its_last_event():
    session = made.session(*made.steady(4, {"device_busy": 1.0}), wall=None)
    found = program_result(session, made.RUN)
    assert found.wall_seconds == 4.0
    assert found.ended is False
    assert found.exit_code is None
    session.apply(made.sampled(4, 1.0, {"waiting": 1.0}))
    again = program_result(session, made.RUN)
    assert again.wall_seconds == 5.0
    assert again.states["waiting"] == 1.0
    assert again.states["device_busy"] == 4.0


def test_events_of_other_runs_extend_a_running_program():
    """Every half second; within one its figures are those that are kept."""
    session = made.session(*made.steady(4, {"device_busy": 1.0}), wall=None)
    kept = program_result(session, made.RUN)
    for later, wall in ((0.4, 4.0), (0.6, 4.6)):
        session.apply(e.DeviceReading(device="cpu:0", monotonic_seconds=BEGAN + 4 + later))
        found = program_result(session, made.RUN)
        assert (found.wall_seconds, found is kept) == (pytest.approx(wall), wall == 4.0)


def test_the_stages_of_several_compilations_have_a_spread():
    rows = [made.compiled(compile_seconds=took, lower_seconds=None) for took in (0.2, 0.1, 0.9)]
    (step,) = made.result(*rows, made.compiled(count=40, compile_seconds=4.0)).functions
    assert list(step.spreads()) == ["trace", "compile"], "nothing is known of lowering"
    held("spread.txt", figures_text(step.spreads()["compile"]))
    assert made.result(made.compiled()).functions[0].spreads() == {}


def test_functions_are_grouped_by_definition():
    rows = [made.compiled("<lambda>", defined_at=made.at(line, "")) for line in (4, 9, 4)]
    more = made.compiled("<lambda>", "shape", defined_at=made.at(9, ""), count=99)
    found = {one.defined_at.line: one for one in made.result(*rows, more).functions}
    assert found[4].count == 2
    assert found[9].count == 100
    assert found[9].reason("shape").count == 99


def test_a_loop_has_its_rate_and_its_jitter():
    """The one that took most; too few steps have no jitter."""
    steps = made.result(made.steps(500, 0.01), made.steps(500, 0.01), made.steps(10_000, 1e-5, 12)).steps
    assert steps.where.line == 85
    assert steps.count == 1000
    assert steps.per_second == pytest.approx(100.0)
    assert (steps.median_seconds, steps.jitter) == pytest.approx((0.01, 0.02))
    assert made.result(made.steps(3, 0.01)).steps.jitter is None


def test_rates_are_compared_of_the_same_loop_alone():
    """Its lines may have moved. An inner loop that has the number which the outer one had is another loop."""

    def hottest(head, around=(), function="main"):
        lines = [made.line(head + 1, 0.5, "host_busy", loop=each) for each in (head, *around)]
        return made.result(*made.steady(3, {"host_busy": 0.5}, lines), made.steps(500, 0.01, head, function))

    outer, inner = hottest(80), hottest(85, around=(80,))
    assert inner.steps_per_second_of(hottest(87, around=(84,))) == pytest.approx(100.0)
    assert inner.steps_per_second_of(made.result()) == pytest.approx(100.0)
    assert outer.steps_per_second_of(hottest(85)) == pytest.approx(100.0)
    assert outer.steps_per_second_of(inner) is inner.steps_per_second_of(outer) is None
    assert outer.steps_per_second_of(hottest(80, function="evaluate")) is None


def test_copies_are_added_up_by_direction_and_line():
    """In files of 0.1.0 the transfer guard has counted some, without their lines: they are no samples."""
    seen = {"seconds": 0.1, **asdict(made.at(88))}
    found = made.result(
        made.copies("host_to_device", 7, **seen),
        made.copies("host_to_device", 1, **seen),
        made.copies("device_to_host", 9, **seen),
        made.copies("host_to_device", 2400),
    ).transfers
    held("transfers.txt", figures_text(*found))


def test_planned_program_has_no_time_line():
    session = fold(made.HEADER, made.program(wall=None)[:1])
    found = program_result(session, made.RUN)
    assert session.programs == [session.runs[made.RUN]]
    assert found.wall_seconds == 0.0
    assert found.argv == ("train.py",)
    assert found.functions == ()
    assert found.findings == ()


def test_rows_without_anything_in_them_are_taken_for_nothing():
    found = made.result(
        made.compiled(called_from=e.NOWHERE, signature=[e.SignatureLeaf()]),
        made.sampled(0, 1.0, {"nonsense": 1.0, "compile": 0.5}, [{}]),
        e.TransfersSeen(run=made.RUN, rows=[e.CopiesSeen()]),
        made.copies("sideways", 1),
    )
    assert (found.functions[0].called_from, found.lines) == (None, ())
    assert found.states["compile"] == 0.5


def test_iterations_of_the_hot_loop_count_by_their_numbers():
    found = made.result(
        made.steps(2400, 6.2e-3), iterations(7, [0.5] * 4), iterations(20, [0.5] * 2, began_seconds=BEGAN + 9)
    ).iterations
    assert found.numbered_by == "step"
    assert found.first == 7
    assert found.last == 21
    assert found.count == 15
    assert found.timed == 6
    assert found.seconds == 3.0


LATER = {"began_seconds": BEGAN + 30}
SECOND = {
    "numbers that go on": iterations(3, [0.5], **LATER),
    "numbers that begin again are no longer the program's": iterations(0, [0.5] * 3, **LATER),
    "a part without a name takes it from all": iterations(3, [0.5], name="", **LATER),
    "times of samples are said to be so": iterations(3, [0.5], found_by="number", **LATER),
}


def test_parts_of_a_series():
    series = {case: iteration_series([iterations(0, [0.5] * 3), second]) for case, second in SECOND.items()}
    told = {
        case: f"  {each.first} to {each.last} by {each.numbered_by or 'none'}, {each.found_by}\n"
        for case, each in series.items()
    }
    held_cases("series_of_iterations.txt", told)


def test_of_several_loops_it_is_the_given_one_or_the_longest():
    taken = [iterations(0, [0.5] * 3, number=10), iterations(0, [0.5] * 9, number=20)]
    for where, line in ((made.at(10), 10), (made.at(20), 20), (made.at(99), 20), (None, 20)):
        assert iteration_series(taken, where).where.line == line
    assert iteration_series([], made.at(10)) is None


def stop(at, seconds, found_by="state"):
    """A stop that began `at` seconds after the program."""
    return e.ProgramStopped(run=made.RUN, began_seconds=BEGAN + at, seconds=seconds, found_by=found_by)


SEEN = {
    "the same stop twice is one whose cause is known": (stop(4.0, 1.0), stop(4.1, 0.95, "standstill")),
    "by the times that are surer": (stop(4.0, 1.2, "standstill"), stop(4.1, 1.0)),
    "one after the other they are several": (stop(8.0, 0.5, "standstill"), stop(4.0, 1.0)),
    "a machine that slept is a time of its own": (stop(4.0, 3600.0, "clock"), stop(5.0, 1.0)),
    "a moment is not worth a word": (stop(4.0, 0.1),),
    "of a later version": (stop(4.0, 1.0, "hypervisor"),),
    "a processor that was given to others": (stop(4.0, 3.0, "pressure"),),
    "held by the profiler": (stop(4.0, 1.0, "capture"),),
}


def test_what_a_pause_is():
    assert all(merge_pauses(seen, BEGAN) == merge_pauses(seen[::-1], BEGAN) for seen in SEEN.values())
    held_cases("pauses.txt", {case: figures_text(*merge_pauses(seen, BEGAN)) for case, seen in SEEN.items()})


@pytest.mark.parametrize(
    ("at", "found_by", "paused"),
    [
        (4.6, ["standstill"], False),
        (4.05, ["standstill"], True),
        (6.0, ["standstill"], True),
        (4.6, ["state"], True),
        (4.6, ["state", "standstill"], True),
    ],
)
def test_pause_with_samples_needs_a_signal(at, found_by, paused):
    """A GPU's driver that maps memory keeps all threads of a process waiting."""
    reading = e.DeviceReading(run=made.RUN, device="cuda:0", monotonic_seconds=BEGAN + at, utilisation=0.0)
    windows = [*made.steady(4, {"device_busy": 1.0}), made.sampled(4, 4.0, {"device_busy": 2.0, "paused": 2.0})]
    result = made.result(*windows, reading, *(stop(4.0, 2.0, each) for each in found_by), wall=8.0)
    assert [finding.seconds for finding in result.findings if finding.code == "paused"] == [2.0] * paused
    assert (result.states["paused"], result.timeline[-1].seconds) == ((2.0, 0.0) if paused else (0.0, 2.0))


@pytest.mark.parametrize("found_by", ["capture", "state"])
def test_what_the_profiler_held_is_a_note_and_no_finding(found_by):
    windows = [*made.steady(4, {"device_busy": 1.0}), made.sampled(4, 4.0, {"device_busy": 2.0, "paused": 2.0})]
    result = made.result(*windows, stop(4.0, 2.0, found_by), wall=8.0)
    held = [note.message for note in result.notes if note.code == "held"]
    assert held == ["the profiler of the capture held it for 2.00 s, 4.00 s after it began"] * (found_by == "capture")
    assert ("paused" in {finding.code for finding in result.findings}) is (found_by == "state")
    assert result.states["paused"] == 2.0


STOPPED = e.SilenceSeen(
    run=made.RUN, monotonic_seconds=BEGAN + 44.0, silent_seconds=BEGAN + 4.0, wait=e.SystemWait(state="T")
)
PAUSED_FOR_40_SECONDS = {
    "its sampler took it for the time of others": [
        *made.steady(4, {"device_busy": 1.0}),
        made.sampled(4, 41.0, {"device_busy": 1.0}),
        stop(4.5, 40.0, "pressure"),
        stop(4.5, 40.0),
    ],
    "its sampler knew it": [
        *made.steady(4, {"device_busy": 1.0}),
        made.sampled(4, 41.0, {"device_busy": 1.0, "paused": 40.0}),
        stop(4.5, 40.0, "standstill"),
        stop(4.5, 40.0),
    ],
    "before its sampler began": [
        made.replace(made.sampled(0, 41.0, {"import": 41.0}), samples=0),
        made.sampled(41, 4.0, {"device_busy": 4.0}),
        stop(0.5, 40.0),
    ],
    "it was killed in it": [*made.steady(4, {"device_busy": 1.0}), stop(4.0, 40.0)],
    "it is in it": [*made.steady(4, {"device_busy": 1.0}), STOPPED],
}


@pytest.mark.parametrize("case", PAUSED_FOR_40_SECONDS)
def test_pause_is_a_part_of_its_own(case):
    running = case == "it is in it"
    found = made.result(*PAUSED_FOR_40_SECONDS[case], wall=None if running else 45.0)
    assert found.states["paused"] == pytest.approx(40.0)
    assert found.timeline[-1].seconds <= 1.0
    assert sum(share.seconds for share in found.timeline) == pytest.approx(found.wall_seconds)
    middle = states_by_column(found.sample_windows, BEGAN + 20.0, BEGAN + 30.0, 1)
    assert max(middle[0], key=middle[0].get) == "paused"


def test_iterations_have_no_pause_in_their_time():
    """It is in one of them, whose rest is known to 0.2 s."""
    taken = [
        iterations(10, [0.5, 0.5, 40.6, 0.5], began_seconds=BEGAN),
        iterations(14, [0.5, 40.1], began_seconds=BEGAN + 42.1),
    ]
    seen = without_pauses(taken, [(BEGAN + 1.3, BEGAN + 41.3), (BEGAN + 42.7, BEGAN + 82.7)])
    assert [(event.first, event.began_seconds - BEGAN) for event in seen] == [
        (10, 0.0), (12, 1.0), (13, pytest.approx(41.6)), (14, pytest.approx(42.1)),
    ]  # fmt: skip
    assert [event.seconds for event in seen] == [[0.5, 0.5], [pytest.approx(0.6)], [0.5], [0.5]]
    assert without_pauses(taken, [(BEGAN + 90.0, BEGAN + 99.0)]) == taken
    several = iterations(10, [0.2, 9.0, 0.2], counts=[4, 5, 6], began_seconds=BEGAN)
    assert [(each.first, each.counts) for each in without_pauses([several], [(BEGAN + 1.0, BEGAN + 2.0)])] == [
        (10, [4]), (14, [5]), (19, [6]),
    ]  # fmt: skip


def test_rate_of_a_loop_has_no_pause_in_it():
    counted = e.StepsCounted(run=made.RUN, where=made.at(85), count=10, seconds=5.0, intervals_seconds=[0.5] * 10)
    windows = made.loop(made.line(95, 0.4, "host_busy"), count=6)
    paused = made.result(*windows, counted, iterations(0, [0.5, 40.5, 0.5]), stop(5.7, 40.0), wall=50.0)
    assert paused.steps.per_second == pytest.approx(2.0, rel=0.01)


def test_several_are_one_finding_for_each_cause():
    seen = (stop(4.0, 1.0), stop(7.0, 2.0), stop(12.0, 1.0, "standstill"), stop(20.0, 60.0, "clock"))
    ran = made.result(*made.steady(3, {"device_busy": 1.0}))
    stood = made.result(*made.steady(3, {"device_busy": 1.0, "paused": 0.5}), *seen)
    assert stood.active_seconds == pytest.approx(ran.active_seconds), "stopped time is no work"
    by_signal, still, slept = (each for each in stood.findings if each.code == "paused")
    assert by_signal.message == "paused for 3.00 s by a signal, 2 times, first 4.00 s after it began"
    assert (by_signal.seconds, still.seconds) == (3.0, 1.0)
    assert slept.seconds is None, "what the machine slept is in no other time"
