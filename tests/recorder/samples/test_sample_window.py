"""The states of a window add up to it, whatever the samples say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.events import PROGRAM_STATES, LoopSite
from jaxprof.recorder.samples.loops import loops_of
from jaxprof.recorder.samples.monitored_loop import JUMP, LEFT, LineTimes
from jaxprof.recorder.samples.sample_window import MOST_LINES, SampleWindow, TimedLoop
from jaxprof.recorder.samples.states import (
    CALL,
    CALLBACK,
    COMPILED,
    DATA,
    DISPATCH,
    HOST,
    READ,
    STATES,
    SYNC,
    TRANSFER,
    UNSEEN,
    Seen,
    Site,
    UserLine,
)

NO_STAGES = {"trace": 0.0, "lower": 0.0, "compile": 0.0}


def _line(number):
    return UserLine("train.py", number, "main", "")


def _window(*samples, delay=0.0, **more):
    """A second of samples: kind, seconds, whether it ran, processor seconds; each at a line of its own."""
    window = SampleWindow(0.0)
    for number, (kind, seconds, running, busy) in enumerate(samples, 1):
        window.add(
            Seen(kind, _line(number)), seconds, running=running, busy_seconds=busy, **{"stages": NO_STAGES, **more}
        )
    window.note_delay(delay, 1.0)
    return window


def test_window_of_the_documents():
    """`docs/attribution.md` works it out."""
    window = SampleWindow(0.0)
    window.add(None, 0.2, running=True, stages={**NO_STAGES, "compile": 0.2}, busy_seconds=0.2)
    for number, (kind, seconds, busy) in enumerate([(HOST, 0.2, 0.2), (COMPILED, 0.5, 0.1), (SYNC, 0.1, 0.0)]):
        seen = Seen(kind, _line(number))
        window.add(seen, seconds, running=kind == HOST, stages=NO_STAGES, busy_seconds=busy)
    window.delay = 0.05
    event = window.event(1.0, None)
    assert _rounded(event.states) == {"compile": 0.2, "host_busy": 0.2, "device_busy": 0.55, "waiting": 0.05}
    assert round(event.device_wait_seconds, 9) == 0.45


def _rounded(seconds):
    return {name: round(value, 9) for name, value in seconds.items()}


@pytest.mark.parametrize(
    ("samples", "delay", "states"),
    [
        # never seen blocked is not called waiting
        ([(COMPILED, 1.0, True, 0.7)], 0.0, {"device_busy": 1.0}),
        # processor time that no sample explains is the host's
        ([(SYNC, 1.0, False, 0.25)], 0.0, {"device_busy": 0.75, "host_busy": 0.25}),
        # the scheduler is not waiting
        ([(HOST, 0.5, True, 0.25), (HOST, 0.5, False, 0.0)], 0.25, {"host_busy": 0.5, "waiting": 0.5}),
        # a thread that was only seen preempted stays where it was
        ([(COMPILED, 1.0, False, 0.4)], 0.6, {"device_busy": 1.0}),
    ],
)
def test_states_by_clock_and_samples(samples, delay, states):
    assert _rounded(_window(*samples, delay=delay).event(1.0, None).states) == states


def test_lines_share_running_and_blocked_time():
    window = _window((HOST, 0.25, True, 0.1), (COMPILED, 0.25, True, 0.1), (HOST, 0.5, False, 0.2))
    event = window.event(1.0, own_seconds=0.001)
    assert event.samples == 3
    assert _rounded(event.states) == {"host_busy": 0.2, "device_busy": 0.2, "waiting": 0.6}
    assert [(line.line, round(line.seconds, 9)) for line in event.lines] == [(3, 0.6), (1, 0.2), (2, 0.2)]


@pytest.mark.parametrize(("own", "lost"), [(0.04, 0.0), (0.45, 0.4)])
def test_lock_of_our_own_thread_is_no_device_time(own, lost):
    event = _window((COMPILED, 0.5, False, 0.2), (HOST, 0.5, True, 0.2)).event(1.0, own_seconds=own)
    kinds = {line.kind: line.seconds for line in event.lines}
    assert kinds.get("contended", 0.0) == pytest.approx(lost)
    assert kinds["compiled"] == pytest.approx(0.6 - lost)


def test_running_time_at_waits_needs_timed_lines():
    """Samples come where the lock is free; 0.6 s of the processor's time were somewhere in the iteration."""

    def kinds(*waits, timed=None):
        lines = _window(waits, RAN).event(1.0, None, timed=timed).lines
        return {line.kind: round(line.seconds, 9) for line in lines}

    assert kinds(SYNC, 0.9, False, 0.6) == {"sync": 0.3, "unseen": 0.6, "host": 0.1}
    assert kinds(SYNC, 0.9, False, 0.0)["sync"] == kinds(SYNC, 0.9, True, 0.9)["sync"] == 0.9, "asleep, or spinning"
    timed = TimedLoop(LOOP, {}, lambda code, line: (HOST, _line(line)))
    assert kinds(SYNC, 0.9, False, 0.6, timed=timed)["sync"] == 0.9


RAN = (HOST, 0.1, True, 0.1)
"""A tenth of a second in which samples and clock agree."""


def test_stages_are_exact_and_have_lines():
    stages = {"trace": 0.3, "lower": 0.0, "compile": 0.1}
    event = _window((HOST, 0.5, True, 0.5), stages=stages, stage="trace").event(1.0, own_seconds=None)
    assert (event.states["trace"], event.states["compile"]) == (0.3, 0.1)
    assert (event.lines[0].state, event.lines[0].seconds) == ("trace", 0.3)


def test_without_samples_the_time_has_the_state_that_is_given():
    assert SampleWindow(2.0).event(3.0, None, least="import").states == {"import": 1.0}


def test_paused_time_belongs_to_no_line():
    """Without it, the second of the stop would be the waiting line's, and the other blocked line's."""
    window = _window((COMPILED, 0.5, False, 0.0), (HOST, 0.5, False, 0.0))
    window.paused += 1.0
    event = window.event(2.0, None)
    assert event.states == {"device_busy": 0.5, "waiting": 0.5, "paused": 1.0}
    assert [line.seconds for line in event.lines] == [0.5, 0.5]


def _waited(*samples, busy, delay=0.0):
    """What a window of a second with these samples says of waiting for the device."""
    each = 1.0 / len(samples)
    ran = None if busy is None else busy * each
    window = _window(*((kind, each, running, ran) for kind, running in samples), delay=delay)
    seconds = window.event(1.0, None).device_wait_seconds
    return None if seconds is None else round(seconds, 9)


def test_device_wait_seconds():
    blocked, elsewhere = (SYNC, False), (DATA, False)
    assert _waited(blocked, blocked, busy=0.25) == 0.75, "no sample saw it running: the clock did"
    assert _waited(blocked, (HOST, True), busy=0.25, delay=0.25) == 0.5, "it was kept from running: that is no wait"
    assert _waited(blocked, elsewhere, busy=0.2) == 0.4
    assert _waited((COMPILED, False), (READ, False), (HOST, True), busy=0.4) == 0.6
    assert _waited((SYNC, True), (HOST, True), busy=1.0) == 0.5, "it waits with its processor"
    assert _waited((COMPILED, True), (HOST, True), busy=1.0) == 0.0
    assert _waited(blocked, busy=None) is None


@pytest.mark.parametrize(("kind", "bytes_"), [(TRANSFER, 400), (COMPILED, None)])
def test_largest_put_is_that_of_the_copies_at_a_line(kind, bytes_):
    window = SampleWindow(0.0)
    for size in (100, 400, None):
        window.add(Seen(kind, _line(1)), 0.3, running=True, stages=NO_STAGES, put_bytes=size)
    (line,) = window.event(0.9, None).lines
    assert (line.put_bytes, line.bytes) == (bytes_, None)


def test_lines_are_bounded():
    assert len(_window(*[(HOST, 0.01, True, None)] * 100).event(1.0, None).lines) == MOST_LINES


_samples = st.tuples(
    st.sampled_from(sorted(STATES)),
    st.floats(0.0, 2.0),
    st.booleans(),
    st.fixed_dictionaries({name: st.floats(0.0, 1.0) for name in NO_STAGES}),
    st.one_of(st.none(), st.floats(0.0, 3.0)),
    st.sampled_from(["", "trace", "compile"]),
)


@given(st.lists(_samples, max_size=12), st.floats(0.0, 30.0), st.one_of(st.none(), st.floats(0.0, 30.0)))
def test_states_always_add_up(samples, length, own):
    """Also where our own thread had the lock."""
    window = SampleWindow(5.0)
    for kind, seconds, running, stages, busy, stage in samples:
        window.add(Seen(kind, _line(1)), seconds, running=running, stages=stages, stage=stage, busy_seconds=busy)
    event = window.event(5.0 + length, own)
    assert abs(sum(event.states.values()) - length) < 1e-6
    assert set(event.states) <= set(PROGRAM_STATES)
    assert all(value >= 0 for value in event.states.values())
    assert sum(line.seconds for line in event.lines) <= length + 1e-6


def _train(step):
    for _ in range(3):
        step()


def _step():
    abs(-1)
    abs(-2)


LOOP = loops_of(_train.__code__)[0]
CALLS, BOOKS, WORKS = LOOP.line + 1, _step.__code__.co_firstlineno + 1, _step.__code__.co_firstlineno + 2
SITE = Site(LoopSite(file=__file__, function="_train", loop_line=LOOP.line, last_line=LOOP.last_line, line=CALLS), LOOP)


def _calls(seconds):
    """Times of ten calls of the function."""
    return LineTimes(BOOKS - 1, [0.01] * 10, seconds)


def _kinds(held, free, *, calls=None, busy=1.0, deep=1):
    """Seconds by kind and line: of so many samples that found the interpreter's lock held, and others that found the
    thread inside a compiled function without it. `deep`: how often the function stands on the stack."""
    place = UserLine(__file__, WORKS if calls else CALLS, "f", "", "flax.nnx")
    path = (*((_step.__code__, WORKS),) * (deep if calls else 0), (_train.__code__, CALLS))
    window = SampleWindow(0.0)
    for number in range(held + free):
        seen = Seen(UNSEEN if number < held else COMPILED, place, (SITE,), path=path)
        each = 1.0 / (held + free)
        window.add(seen, each, running=True, stages=NO_STAGES, busy_seconds=busy * each, held=number < held)

    def at_line(code, line):
        return CALL if line in (CALLS, WORKS) else HOST, UserLine(__file__, line, code.co_name, "")

    timed = TimedLoop(
        LOOP, {LOOP.line: 0.0, CALLS: 1.0}, at_line, {CALLS: 100}, {_step.__code__: calls} if calls else {}
    )
    return {(row.kind, row.line or 0): round(row.seconds, 6) for row in window.event(1.0, None, timed=timed).lines}


def test_held_lock_is_python_at_a_timed_line():
    assert _kinds(90, 10) == {("call", CALLS): 0.9, ("inline", CALLS): 0.1}
    assert _kinds(5, 95) == {("call", CALLS): 0.05, ("inline", CALLS): 0.95}


@pytest.mark.parametrize(("shared", "unseen"), [(False, 0.0), (True, 0.6)])
def test_python_beside_other_work_is_unknown(shared, unseen):
    """Samples get the lock where it is given away: a sum before an operation on the same line is seen at that one."""
    place, path, window = UserLine(__file__, CALLS, "_train", "w[0]"), ((_train.__code__, CALLS),), SampleWindow(0.0)
    for number in range(100):
        kind = UNSEEN if number < 30 else DISPATCH if number < 50 else SYNC
        seen = Seen(kind, place, (SITE,), path=path)
        held = number < 50
        window.add(seen, 0.01, running=held, stages=NO_STAGES, busy_seconds=0.01 * held, held=held)
    at_line = lambda code, line: (HOST, UserLine(__file__, line, code.co_name, ""))  # noqa: E731
    timed = TimedLoop(LOOP, {CALLS: 1.0}, at_line, {CALLS: 100}, {}, lambda code, line: shared)
    rows = window.event(1.0, None, timed=timed).lines
    python = sum(row.seconds for row in rows if row.kind != SYNC)
    assert sum(row.seconds for row in rows if row.kind == UNSEEN) == pytest.approx(unseen * python)


def test_lines_of_a_called_function_have_their_times():
    """Samples see the call of a compiled function, which gives the lock away, and never the Python before it."""
    calls = LineTimes(BOOKS - 1)
    call = ((LEFT, 0.0), (JUMP, 0.0), (BOOKS, 0.0), (WORKS, 0.008), (JUMP, 0.01))
    calls.take([(mark, at + moment) for at in range(10) for mark, moment in call])
    assert len(calls.intervals) == 10
    assert _kinds(90, 10, calls=calls) == {("host", BOOKS): 0.8, ("call", WORKS): 0.1, ("inline", WORKS): 0.1}
    assert _kinds(90, 10, calls=_calls({BOOKS: 0.0002, WORKS: 0.0998}))["call", WORKS] > 0.89


def test_recursive_function_is_split_once():
    calls = _calls({BOOKS: 0.08, WORKS: 0.02})
    assert _kinds(90, 10, calls=calls, deep=3)["host", BOOKS] == 0.8


@pytest.mark.parametrize("held", [True, False])
def test_callback_has_its_time_despite_late_samples(held):
    """It holds the lock, which samples get where it is given away: in the call of the compiled function."""
    place, path, window = UserLine(__file__, CALLS, "_train", "step"), ((_train.__code__, CALLS),), SampleWindow(0.0)
    for number in range(100):
        back = number < 40
        seen = Seen(CALLBACK if back else COMPILED, place, (SITE,), path=(*((_step.__code__, WORKS),) * back, *path))
        window.add(seen, 0.01, running=True, stages=NO_STAGES, busy_seconds=0.01, held=held and back)
    timed = TimedLoop(
        LOOP,
        {LOOP.line: 0.0, CALLS: 1.0},
        lambda code, line: (HOST, UserLine(__file__, line, code.co_name, "")),
        {CALLS: 100},
        {_step.__code__: _calls({WORKS: 0.095})},
    )
    lines = window.event(1.0, None, timed=timed).lines
    assert {(row.kind, row.line): round(row.seconds, 6) for row in lines} == {
        ("callback", CALLS): 0.95,
        ("inline", CALLS): 0.05,
    }


@pytest.mark.parametrize(
    ("free", "busy", "found"),
    [
        (10, 0.2, {"sync": 0.1, "contended": 0.7, "unseen": 0.2}),
        (0, 0.2, {"contended": 0.8, "unseen": 0.2}),
        (0, 0.97, {"unseen": 1.0}),
    ],
    ids=["seldom free", "never free", "within the error of so many samples"],
)
def test_lock_of_other_threads_is_unknown(free, busy, found):
    """By its clock the thread was blocked, and by the samples hardly ever without the lock held."""
    with_others = SampleWindow(0.0)
    for number in range(100):
        held = number >= free
        seen = Seen(UNSEEN if held else SYNC, _line(1))
        with_others.add(seen, 0.01, running=held, stages=NO_STAGES, busy_seconds=0.01 * busy, held=held)
    event = with_others.event(1.0, None)
    assert {row.kind: round(row.seconds, 6) for row in event.lines} == found
    assert event.states.get("waiting", 0.0) == pytest.approx(found.get("contended", 0.0))


@pytest.mark.parametrize(
    ("busy", "delay", "more"), [(0.05, 0.3, {"preempted": 0.3}), (0.07, 0.1, {"preempted": 0.1}), (0.08, 0.0, {})]
)
def test_preempted_call_neither_computes_nor_waits(busy, delay, more):
    """The little that held the lock, which is never taken for blocked, is not the rest of it either. A thread that ran
    for longer than samples saw it run did so where they saw it blocked."""
    window = SampleWindow(0.0)
    for kind, running in ((COMPILED, True),) * 4 + ((COMPILED, False),) * 5 + ((UNSEEN, True),):
        window.add(Seen(kind, _line(1)), 0.1, running=running, stages=NO_STAGES, busy_seconds=busy, held=kind == UNSEEN)
    window.note_delay(delay, 1.0)
    found = {row.kind: round(row.seconds, 6) for row in window.event(1.0, None).lines}
    inline = round(0.7 - sum(more.values()), 6)
    assert found == {"inline": inline, "compiled": 0.2, "unseen": 0.1, **more}


@pytest.mark.parametrize(("holds_waits", "inline", "host"), [(True, 0.4, 0.1), (False, 0.45, 0.05)])
def test_processor_waits_in_the_times_of_lines(holds_waits, inline, host):
    """The line that was waited in has nine tenths of the time, the waits among them, or left out."""
    window = SampleWindow(0.0)
    place, path = UserLine(__file__, CALLS, "f", ""), ((_train.__code__, CALLS),)
    for number in range(10):
        seen = Seen(COMPILED, place, (SITE,), path=path)
        window.add(seen, 0.1, running=number < 5, stages=NO_STAGES, busy_seconds=0.05)
    window.note_delay(0.5, 1.0)
    timed = TimedLoop(
        LOOP,
        {LOOP.line: 0.1, CALLS: 0.9},
        lambda code, line: (HOST, UserLine(__file__, line, code.co_name, "")),
        holds_waits=holds_waits,
    )
    event = window.event(1.0, None, timed=timed)
    found = {(row.kind, row.line): round(row.seconds, 6) for row in event.lines}
    assert found == {("preempted", CALLS): 0.5, ("inline", CALLS): inline, ("host", LOOP.line): host}
    assert event.delay_seconds == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("busy", "found"),
    [
        (0.01, {("sync", LOOP.line): 0.5, ("call", CALLS): 0.1, ("contended", CALLS): 0.4}),
        (0.05, {("sync", LOOP.line): 0.5, ("call", CALLS): 0.5}),
    ],
    ids=["it did not run", "it ran"],
)
def test_python_of_a_line_is_bounded_by_the_cpu_clock(busy, found):
    """The call of a function for several devices waits until each has begun, where no sample sees it wait."""
    window, waits = SampleWindow(0.0), replace(SITE, at=replace(SITE.at, line=LOOP.line))
    for number in range(10):
        kind, line, site = (UNSEEN, CALLS, SITE) if number < 2 else (SYNC, LOOP.line, waits)
        seen = Seen(kind, UserLine(__file__, line, "_train", ""), (site,), path=((_train.__code__, line),))
        window.add(seen, 0.1, running=number < 2, stages=NO_STAGES, busy_seconds=busy, held=number < 2)
    timed = TimedLoop(
        LOOP,
        {LOOP.line: 0.5, CALLS: 0.5},
        lambda code, line: (CALL, UserLine(__file__, line, code.co_name, "")),
    )
    lines = window.event(1.0, None, timed=timed).lines
    assert {(row.kind, row.line): round(row.seconds, 6) for row in lines} == found
