"""Iterations of a loop and the time of its lines, by Python's events. Iterations of a loop that runs, as the recorder's
thread follows it beside the program."""

import ast
import asyncio
import itertools
import os
import re
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, SimpleNamespace

import pytest

from jaxprof import recorder
from jaxprof.events import LoopSite
from jaxprof.events.programs import SPELL_EVENTS, hot_loop
from jaxprof.recorder.samples import monitored_loop, steps
from jaxprof.recorder.samples.flow import LOOPS, is_unchanging, span_of, under_a_condition
from jaxprof.recorder.samples.loops import loops_at, loops_of
from jaxprof.recorder.samples.monitored_loop import EVENT_SECONDS_AT_MOST, JUMP, LEFT, LineTimes
from jaxprof.recorder.samples.states import COMPILED, HOST, Seen, Site
from jaxprof.recorder.samples.steps import StepCounter

monitored = pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")


def _train(count, work=int):
    done = 0
    for _epoch in range(1):
        for step in range(count):
            if step % 2:
                continue
            done += 1
            work()
    return done


def _train_until(count, work=int):
    done = 0
    while done < count:
        done += 1
        work()
    return done


def _inner(code):
    return loops_of(code)[0]


def _seen(*loops, kind=COMPILED):
    def site(loop):
        return Site(LoopSite(file="f.py", function="f", loop_line=loop.line, last_line=loop.last_line, line=1), loop)

    return Seen(kind, None, tuple(map(site, loops)))


def test_loops_are_found_inner_ones_first():
    inner, outer = loops_of(_train.__code__)
    first = _train.__code__.co_firstlineno
    assert (inner.line, inner.last_line) == (first + 3, first + 7)
    assert outer.line == first + 2
    assert outer.begins < inner.begins <= inner.ends < outer.ends
    assert loops_at(_train.__code__, inner.begins) == (inner, outer)
    assert loops_at(_train.__code__, outer.ends) == (outer,)
    assert loops_at(_train.__code__, 0) == ()


def _continuing(count):
    while count > 0:
        count -= 1
        if count % 2:
            continue
        for _ in range(count):
            abs(count)


def test_a_while_with_a_continue_is_one_loop():
    """Its iterations begin at two instructions; the loop inside it remains another one."""
    inner, outer = loops_of(_continuing.__code__)
    first = _continuing.__code__.co_firstlineno
    assert [(loop.line - first, loop.last_line - first) for loop in (inner, outer)] == [(5, 6), (1, 6)]
    assert (len(inner.targets), len(outer.targets)) == (1, 2)
    assert min(outer.targets) == outer.begins


def test_code_that_is_made_again_has_loops_of_its_own():
    """Two code objects are equal that the same cell made, and Python's events are those of one."""
    source = "for number in range(3):\n    print(number)\n"
    first, again = (compile(source, name, "exec") for name in ("first.py", "again.py"))
    assert first == again
    assert [(loop.code is code, loop.location.file) for code in (first, again) for loop in loops_of(code)] == [
        (True, "first.py"),
        (True, "again.py"),
    ]


def _collecting(rows):
    for row in rows:
        rows = [*rows, row]
        squares = [number * number for number in rows if number]
    return squares


def test_the_lines_of_other_loops():
    """Python puts the condition of a `while` behind the body, so its first instruction is not in its first line. The
    loop of a comprehension is none of the function's."""
    for function, lines in ((_train_until, (2, 4)), (_collecting, (1, 3))):
        (loop,), first = loops_of(function.__code__), function.__code__.co_firstlineno
        assert (loop.line - first, loop.last_line - first) == lines


async def _handling(source, lock):
    try:
        rows = source()
    except OSError:
        rows = await lock.rows()
    for row in rows:
        try:
            row = row()
        except ValueError:
            continue
        except TypeError as error:
            row = error
        async with lock:
            await row
    while rows:
        with lock:
            rows = rows()
    return rows


def test_what_an_exception_leads_to_is_no_loop():
    """Python 3.12 and later jump back from a handler, which they put last: `except` lines began loops, in which the
    loops of the function were."""
    first = _handling.__code__.co_firstlineno
    loops = sorted((loop.line - first, loop.last_line - first) for loop in loops_of(_handling.__code__))
    assert [line for line, _ in loops] == [5, 14]
    assert loops[0][1] < 14
    assert loops[1][1] == 16


def test_a_line_under_a_condition_is_not_of_every_pass():
    first = _train.__code__.co_firstlineno
    of = [under_a_condition(__file__, first + 3, first + line) for line in (4, 5, 6)]
    assert of == [False, True, False]


@pytest.mark.parametrize(
    ("seen", "hot"),
    [
        ([(("rows", "batches"), 8.0, False), (("batches",), 1.0, True)], "batches"),  # JAX has no part in the rows
        ([(("batches", "epochs"), 9.0, True), (("epochs",), 1.0, False)], "batches"),
        ([(("batches", "epochs"), 4.0, True), (("epochs",), 6.0, False)], "epochs"),
        ([(("inner", "outer"), 1.0, True)], "inner"),
    ],
)
def test_the_hot_loop_is_the_innermost_that_holds_most(seen, hot):
    assert hot_loop(seen) == hot


class TestLineTimes:
    def test_time_between_iterations_is_shared_by_the_lines(self):
        times = LineTimes(_inner(_train.__code__).line)
        moments = [(9, 0.5), (JUMP, 1.0), (4, 1.0), (5, 1.1), (JUMP, 2.0), (4, 2.0), (5, 2.5), (JUMP, 3.0), (4, 3.0)]
        assert times.take(moments) == 7
        assert times.intervals == pytest.approx([1.0, 1.0])
        assert times.seconds == pytest.approx({4: 0.6, 5: 1.4})
        assert times.hits[4] == times.hits[5] == 2

    @pytest.mark.parametrize(("head", "work"), [(0.7e-6, 9.3e-6), (50e-6, 100e-6)])
    def test_recording_a_line_is_not_the_lines_time(self, head, work):
        """The head of a `for` takes next to nothing: what it seems to take is the recording of lines, now more and now
        less, and between the jump and the head is only that of the jump. A line that takes longer than that loses next
        to nothing."""
        times = LineTimes(_inner(_train.__code__).line)
        at = 0.0
        moments = []
        for share in (0.2, 1.8, 1.0):
            began = at + 3e-6
            moments += [(JUMP, at), (3, began), (4, began + share * head)]
            at = began + share * head + work
        times.take(moments)
        own = {3: 0.0 if head < 1e-6 else 2 * (head - 2e-6), 4: 2 * (work - min(head, 2e-6))}
        assert times.own_seconds() == pytest.approx(own, abs=1e-9)

    def test_the_only_line_of_a_loop_keeps_its_time(self):
        times = LineTimes(3)
        times.take([(JUMP, 0.0), (3, 0.0), (JUMP, 1e-6), (3, 1e-6), (JUMP, 2e-6)])
        assert times.own_seconds() == pytest.approx({3: 2e-6})

    def test_time_outside_the_loop_is_excluded(self):
        times = LineTimes(_inner(_train.__code__).line)
        again = [(4, 9.0), (5, 9.5), (JUMP, 10.0), (4, 10.0), (5, 10.25), (JUMP, 11.0)]
        moments = [(JUMP, 1.0), (4, 1.0), (5, 1.1), (JUMP, 2.0), (4, 2.0), (LEFT, 2.1), *again]
        assert times.take(moments) == len(moments) - 1
        assert times.intervals == pytest.approx([1.0, 1.0])
        assert times.seconds == pytest.approx({4: 0.35, 5: 1.65})
        assert times.hits == {4: 2, 5: 2}


def _counted(count, work=int, train=_train, looped=None):
    """What is counted of so many iterations of the loop of `looped`."""
    counter = _counter(loops_of(looped.__code__)[-1] if looped else _inner(train.__code__))
    counter.look()
    train(count, work)
    return counter, counter.collect(2.0)


@monitored
@pytest.mark.parametrize(("train", "every", "worked"), [(_train, 2, 7), (_train_until, 1, 4)], ids=["for", "while"])
def test_iterations_and_their_lines_are_counted(train, every, worked):
    counter, event = _counted(400, lambda: time.sleep(0.0002), train)
    timed, hanging = counter.take_timed(event, None, None), counter.take_timed(None, None, None)
    counter.close()
    assert event.where.function == train.__name__
    assert event.count >= 2
    recorded = (sum(line.hits for line in event.lines) + event.count) * EVENT_SECONDS_AT_MOST
    waited = 0.05 * event.seconds  # for a processor, in the recording of an iteration's end
    assert event.seconds - recorded - waited <= sum(line.seconds for line in event.lines) <= event.seconds
    (work,) = [line for line in event.lines if line.line == train.__code__.co_firstlineno + worked]
    assert work.seconds > 0.9 * work.hits * 0.0002
    assert abs(work.hits - event.count / every) <= 1
    assert work.line in timed.seconds
    assert hanging is None  # it may hang: iterations of before do not say where


async def _served(count, work):
    for _ in range(count):
        await asyncio.sleep(0.001)
        work()


@monitored
def test_lines_that_others_interrupt_are_not_timed():
    """The event loop runs, or sleeps, between the beginning of such a line and the next one."""
    counter, event = _counted(50, train=lambda count, work: asyncio.run(_served(count, work)), looped=_served)
    timed = counter.take_timed(event, None, None)
    counter.close()
    assert event.count >= 45
    assert event.lines == []
    assert timed is None
    assert event.seconds > 0.045


def test_afterwards_nothing_is_left():
    counter, _ = _counted(50)
    counter.close()
    _train(5)
    assert counter.collect(2.0) is None
    assert sys.gettrace() is None or "jaxprof" not in repr(sys.gettrace())
    if sys.version_info >= (3, 12):
        assert all(sys.monitoring.get_tool(number) != "jaxprof" for number in (3, 4))


@monitored
def test_the_loop_of_a_loader_is_not_counted():
    counter = StepCounter(threading.get_ident())
    inner, outer = loops_of(_train.__code__)
    counter.saw(_seen(inner, outer, kind=HOST), 9.0)
    counter.saw(_seen(outer), 1.0)
    counter.look()
    assert counter._loop == outer
    counter.close()


@monitored
@pytest.mark.parametrize("compiled", [True, False])
def test_loop_whose_calls_no_sample_sees(compiled):
    """Samples come where the lock is given away, which may never be in a brief step. Without a compilation it is any
    loop."""
    counter = StepCounter(threading.get_ident())
    inner, outer = loops_of(_train.__code__)
    counter.saw(_seen(inner, outer, kind=HOST), 1.0)
    if compiled:
        counter.saw_compiling(_seen(inner, outer))
    counter.look()
    assert counter._loop == (inner if compiled else None)
    counter.saw(_seen(outer), 1.0)
    counter.look()
    assert counter._loop == outer, "seen at work"
    counter.close()


def test_the_recorder_has_no_trace_function_and_no_pending_call():
    """A pending call that enters Python while one is set can repeat an instruction for ever, on Python 3.11."""
    words = re.compile(r"settrace|setprofile|AddPendingCall|f_trace\b")
    sources = list(Path(recorder.__file__).parent.rglob("*.py"))
    assert [path.name for path in sources if words.search(path.read_text("utf-8"))] == []
    assert len(sources) > 20


@monitored
class TestMonitoring:
    def test_every_iteration_is_counted(self):
        counter, event = _counted(51)
        counter.close()
        assert event.count == 50
        assert len(event.intervals_seconds) == 50
        assert event.seconds == pytest.approx(sum(event.intervals_seconds))

    def test_a_fast_loop_is_watched_only_for_a_while(self):
        counter, event = _counted(3 * SPELL_EVENTS)
        counter.look()
        _train(10)
        again = counter.collect(3.0)
        counter.close()
        assert event.count < SPELL_EVENTS
        assert len(event.intervals_seconds) <= steps.MOST_INTERVALS
        assert again.count == 9

    def test_an_iteration_that_is_longer_than_a_look_is_counted(self):
        counter = _counter(_inner(_train.__code__))
        counter.look()
        _train(6, counter.look)
        event = counter.collect(2.0)
        counter.close()
        assert event.count == 5

    def test_tools_of_others_are_left_alone(self):
        for number in (3, 4):
            sys.monitoring.use_tool_id(number, "other")
        try:
            counter, event = _counted(5)
            assert event is None
            assert counter.unavailable == "no_slot"
            counter.close()
        finally:
            for number in (3, 4):
                assert sys.monitoring.get_tool(number) == "other"
                sys.monitoring.free_tool_id(number)


def _iterations(*lengths):
    """The moments of iterations of one line, of these lengths in µs; negative where the processor was lost."""
    moments, at = [(JUMP, 0.0)], 0.0
    for length in lengths:
        moments.append((4, at))
        at += abs(length) * 1e-6
        moments += [(monitored_loop.PREEMPTED, at)] * (length < 0) + [(JUMP, at)]
    return moments


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ((20, 25, -4000, 20), [20, 25, 20]),
        ((20, 2000, -2400, 20), [20, 2000, 2400, 20]),  # as long as another one without a wait
        ((20_000, -90_000, 20_000), [20_000, 90_000, 20_000]),  # long ones lose it nearly always
        ((-4000, -30), [4000, 30]),
    ],
)
def test_brief_iterations_that_lost_the_processor(lengths, kept):
    times = LineTimes(3)
    times.take(_iterations(*lengths))
    assert [round(1e6 * seconds) for seconds in times.intervals] == kept
    assert times.seconds == pytest.approx({4: 1e-6 * sum(kept)})
    assert len(times.lost) == len(lengths) - len(kept)


def test_calls_in_iterations_that_are_left_out_are_too():
    times = LineTimes(3)
    times.take(_iterations(20, 30, 40), [(25e-6, 45e-6)])
    assert [round(1e6 * seconds) for seconds in times.intervals] == [20, 40]


@monitored
def test_losing_the_processor_is_a_moment_of_its_own(monkeypatch):
    monkeypatch.setattr(monitored_loop, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(monitored_loop, "own_preemptions", itertools.chain([7, 7, 8], itertools.repeat(8)).__next__)
    clock = monitored_loop.MonitoredLines(threading.get_ident())
    moments, _ = clock.begin(_inner(_train.__code__))
    _train(8)
    clock.close()
    marks = [mark for mark, _ in moments if mark in (JUMP, monitored_loop.PREEMPTED)]
    assert marks[:5] == [monitored_loop.PREEMPTED, JUMP, JUMP, monitored_loop.PREEMPTED, JUMP]
    assert set(marks[5:]) == {JUMP}


@monitored
def test_lines_of_a_called_function_are_timed(monkeypatch):
    monkeypatch.setattr(monitored_loop, "maker_of", lambda value: "user" if value is abs else "")
    loop = _inner(_train.__code__)
    clock = monitored_loop.MonitoredLines(threading.get_ident())
    begun = clock.begin(loop, [_books.__code__])
    _train(20, _books)
    clock.close()
    first = _books.__code__.co_firstlineno
    times = LineTimes(first)
    times.take(list(begun[1][_books.__code__]))
    assert (len(times.intervals), set(times.seconds)) == (10, {first + 1, first + 2})
    assert [code for code, _ in clock.compiled] == [_books.__code__], "told once"


@monitored
def test_what_an_instruction_calls_is_asked_in_one_spell(monkeypatch):
    asked = []
    monkeypatch.setattr(
        monitored_loop, "maker_of", lambda value: asked.append(value) or ("user" if value is abs else "")
    )
    clock = monitored_loop.MonitoredLines(threading.get_ident())
    for _ in range(2):
        clock.begin(_inner(_train.__code__), [_books.__code__])
        _train(20, _books)
        clock.end()
    clock.close()
    assert asked.count(abs) == 1
    assert asked.count(sum) == 2


def _descend(depth=1):
    if depth:
        _descend(depth - 1)
    abs(-1)


@monitored
def test_a_call_around_a_call_of_the_same_function_has_no_time():
    """Only its rest is seen."""
    clock = monitored_loop.MonitoredLines(threading.get_ident())
    begun = clock.begin(_inner(_train.__code__), [_descend.__code__])
    _train(20, _descend)
    clock.close()
    times = LineTimes(0)
    times.take(list(begun[1][_descend.__code__]))
    assert len(times.intervals) == 10


def _books():
    sum(range(10))
    abs(-1)


def _counter(loop):
    """A counter that has seen the work of this thread in the loop."""
    counter = StepCounter(threading.get_ident())
    counter.saw(_seen(loop), 10.0)
    return counter


@contextmanager
def _followed(loop):
    """Another thread follows the loop's iterations, as the sampler's does: the list has all of them in the end."""
    main, over, counter = threading.get_ident(), threading.Event(), _counter(loop)
    events = []

    def follow():
        turn = 0
        while not over.wait(0.002):
            counter.iterations.sample(sys._current_frames().get(main))
            turn += 1
            if turn % 5 == 0:
                counter.look()
            if turn % 50 == 0:
                events.extend(counter.iterations.collect(time.monotonic()))

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield events
    finally:
        over.set()
        thread.join()
        events.extend(counter.iterations.collect(time.monotonic(), final=True))
        counter.close()


def _timed(count, times):
    for step in range(100, 100 + count):
        began = time.monotonic()
        time.sleep(0.002)
        times[step] = began, time.monotonic()


def _called(count, times):
    for call in range(4):
        for step in range(count):
            began = time.monotonic()
            time.sleep(0.001)
            times[call * count + step] = began, time.monotonic()


def _counted_beside(count, times):
    done = 0
    while True:
        began = time.monotonic()
        time.sleep(0.001)
        for other in range(3):
            abs(other)
        done += 1
        times[done] = began, time.monotonic()
        if done >= count:
            break


def _without(count, times):
    left = list(range(count))
    while left:
        began = time.monotonic()
        time.sleep(0.001)
        number = len(times)
        times[number] = began, time.monotonic()
        left = left[1:]
        number = -1


def _generated(count, times):
    def iterations():
        for step in range(count):
            began = time.monotonic()
            time.sleep(0.002)
            yield step
            times[step] = began, time.monotonic()

    sum(iterations())


def _agree(events, times, shift=0):
    """Each entry begins and ends between two bodies: after the end of the last iteration, before that of the next."""
    for event in events:
        at, number = event.began_seconds, event.first + shift
        for index, seconds in enumerate([0.0, *event.seconds]):
            at += seconds
            if index:
                number += event.counts[index - 1] if event.counts else 1
            slack = 2e-6 * (index + 1)
            assert times.get(number - 1, (0.0, 0.0))[1] - slack <= at
            latest = times.get(number, (1e12, 1e12))[0]
            assert at <= latest + slack


@pytest.mark.parametrize(
    ("train", "count", "name", "whole"),
    [
        (_timed, 150, "step", True),
        (_counted_beside, 250, "done", False),
        (_called, 80, "step", True),
        (_without, 200, "", False),
        (_generated, 80, "step", False),
    ],
)
@monitored
def test_iterations_have_the_numbers_of_the_program(train, count, name, whole):
    times = {}
    codes = [train.__code__, *(each for each in train.__code__.co_consts if isinstance(each, CodeType))]
    loop = next(loop for code in codes for loop in loops_of(code) if loop.last_line - loop.line > 2)
    with _followed(loop) as events:
        train(count, times)
    names = [event.numbered_by for event in events]
    # a counter that begins again is counted on, and has no name from then on
    assert names == sorted(names, reverse=True)
    assert {*names} == ({name, ""} if train is _called else {name})
    assert {event.found_by for event in events} == {"monitoring"}
    last = events[-1].first + events[-1].count - 1
    unseen = max(times) - last - 1 if train is _without else 0  # it has no number of its own
    _agree(events, times, unseen)
    if train is _without:
        assert events[0].first == 1, "the iteration in which it began to look has no beginning"
    if whole:
        assert last == max(times)


def _short(steps, events=()):
    for step in steps:  # noqa: B007 - the name of the counter
        if len(events) > 3:
            break


@monitored
def test_short_iterations_are_counted_by_their_number():
    """One event an iteration would cost more than half a percent of such a loop."""
    with _followed(loops_of(_short.__code__)[0]) as events:
        _short(itertools.count(), events)  # in one call: a counter that begins again has no name
    numbered = [event for event in events if event.found_by == "number"]
    assert numbered[0].numbered_by == "step"
    assert max(max(event.counts) for event in numbered) > 5000


@monitored
def test_few_short_iterations_are_recorded_before_the_next_look(monkeypatch):
    """By a clock that is read once an iteration: a microsecond each, on a machine that may be busy with other work."""
    counter = _counter(loops_of(_short.__code__)[0])
    passed = itertools.count(step=1e-6).__next__
    monkeypatch.setattr(monitored_loop, "time", SimpleNamespace(monotonic=passed, perf_counter=passed))
    counter.look()
    counter.iterations._watched.since = 0.0
    _short(range(monitored_loop.MOST_MOMENTS))
    recorded = len(counter.iterations._watched.moments)
    counter.close()
    assert recorded < monitored_loop.MOST_MOMENTS / 10


@monitored
def test_another_thread_in_the_same_loop_adds_nothing():
    times = {}
    with _followed(loops_of(_timed.__code__)[0]) as events:
        beside = threading.Thread(target=_timed, args=(120, {}))
        beside.start()
        _timed(100, times)
        beside.join()
    assert {event.numbered_by for event in events} == {"step"}
    _agree(events, times)


@monitored
class TestPasses:
    def test_a_spell_that_ends_leaves_the_iterations_on(self):
        times = {}
        counter = _counter(loops_of(_timed.__code__)[0])
        counter.look()
        _timed(20, times)
        counter._clock.end()
        _timed(20, times)
        events = counter.iterations.collect(time.monotonic(), final=True)
        counter.close()
        assert sum(event.count for event in events) >= 38
        assert all(sys.monitoring.get_tool(number) != "jaxprof" for number in range(6))

    def test_an_exception_in_the_loop_is_the_programs(self):
        def failing():
            for step in range(50):
                time.sleep(0.0005)
                if step == 40:
                    raise ValueError(step)

        counter = _counter(loops_of(failing.__code__)[0])
        counter.look()
        for _ in range(2):
            with pytest.raises(ValueError, match="40"):
                failing()
        events = counter.iterations.collect(time.monotonic(), final=True)
        counter.close()
        assert [(event.numbered_by, event.first, event.count) for event in events] == [("step", 1, 39), ("", 41, 39)]


PLACED = """
import jax
import jax.numpy as jnp
class Trainer:
    def book(self, x):
        self.rows.append(x)
    def fit(self):
        for i in range(9):
            self.state = step(self.state, {})
            self.book(self.state)
def fit(table, w):
    for x in batches():
        y = make()
        print(len(table), jnp.sum(table))
        w = step(w, {}, x)
        rng.shuffle(y)
        kept[3] = note(held)
"""


@pytest.mark.parametrize(
    ("call", "unchanging"),
    [
        ("jax.device_put(self.table)", True),
        ("jax.device_put(self.rows)", False),
        ("jax.device_put(table)", True),
        ("jnp.asarray(table, dtype=jnp.float32)", True),
        ("jnp.array([1.0, other.scale])", True),
        ("jax.device_put(x)", False),
        ("jax.device_put(table[x])", False),
        ("jax.device_put(y)", False),
        ("jax.device_put(kept)", False),
        ("jax.device_put(held)", False),
        ("jax.device_put(load())", False),
    ],
)
def test_arguments_that_no_statement_changes(tmp_path, call, unchanging):
    file = tmp_path / (re.sub(r"\W", "_", call) + ".py")  # trees are kept by path
    file.write_text(PLACED.format(*(call if ("self" in call) is own else "w" for own in (True, False))))
    os.utime(file, (1, 1))
    tree = ast.parse(file.read_text())
    loops = [node for node in ast.walk(tree) if isinstance(node, LOOPS)]
    ((loop, at),) = [
        (loop.lineno, span_of(node)) for loop in loops for node in ast.walk(loop)
        if isinstance(node, ast.Call) and ast.unparse(node) == call
    ]  # fmt: skip
    assert is_unchanging(str(file), loop, at) is unchanging
