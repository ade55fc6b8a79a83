"""Stacks of real calls, and the states that they stand for."""

from __future__ import annotations

import dis
import functools
import os
import queue
import selectors
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.recorder.places import JAX, USER
from jaxprof.recorder.samples.classifier import Classifier
from jaxprof.recorder.samples.loops import loops_at
from jaxprof.recorder.samples.stack import Stack, read_stack
from jaxprof.recorder.samples.states import (
    CALLBACK,
    COMPILED,
    DATA,
    DISPATCH,
    FED,
    HOST,
    IDLE,
    IMPORT,
    SYNC,
    TRANSFER,
    UNSEEN,
    Seen,
)


def _stack() -> Stack:
    """The caller's."""
    return read_stack(sys._getframe(1))


def _blocked_in(work: Callable[[], Any], release: Callable[[], Any], function: str) -> Stack:
    """The stack of a thread that is inside `function`, which waits until `release`."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            stack = read_stack(sys._current_frames().get(thread.ident or 0))
            if any(code.co_name == function for code in stack.codes):
                return stack
    finally:
        release()
        thread.join(10)


@jax.jit
def _module_step(row: Any) -> Any:
    return row


class TestHost:
    def test_plain_python(self) -> None:
        seen = Classifier().classify(_stack())
        assert seen.kind == HOST
        assert seen.state(True) == "host_busy"
        assert seen.state(False) == "waiting"
        assert seen.line is not None
        assert seen.line.file == __file__
        assert seen.line.function == "test_plain_python"

    def test_an_event_loop_that_waits_is_idle_and_a_sleep_is_not(self) -> None:
        reading, writing = os.pipe()
        selector = selectors.DefaultSelector()
        selector.register(reading, selectors.EVENT_READ)
        stack = _blocked_in(selector.select, lambda: os.write(writing, b"x"), "select")
        assert Classifier().classify(stack).kind == IDLE
        over = threading.Event()
        assert Classifier().classify(_blocked_in(over.wait, over.set, "wait")).kind == HOST
        selector.close()
        os.close(reading)
        os.close(writing)

    def test_a_call_in_c_that_waits_for_a_message_is_idle_and_one_of_that_name_on_a_table_is_not(self) -> None:
        poll = select = _step

        def kind(stack: Stack) -> str:
            return Classifier().classify(Stack(*(each[1:] for each in _parts(stack)))).kind

        connection = SimpleNamespace(recv=_step, poll=_step, select=_step)
        assert [kind(connection.recv(1)), kind(connection.poll()), kind(poll())] == [IDLE, IDLE, IDLE]
        assert [kind(connection.select()), kind(select())] == [HOST, HOST]

    def test_a_queue_waits_at_the_users_line(self) -> None:
        channel: queue.Queue[int] = queue.Queue()

        def consume() -> None:
            channel.get()

        seen = Classifier().classify(_blocked_in(consume, lambda: channel.put(1), "wait"))
        assert seen.state(False) == "waiting"
        assert seen.line is not None
        assert (seen.line.function, seen.line.call) == ("consume", "channel.get()")

    def test_no_frame_at_all(self) -> None:
        assert Classifier().classify(Stack()) == Seen(HOST)


def _users(stack: Stack) -> Stack:
    """The part of a stack that begins at this file."""
    at = next(index for index, code in enumerate(stack.codes) if code.co_filename == __file__)
    return Stack(stack.codes[at:], stack.offsets[at:], stack.kinds[at:], stack.globals[at:])


def _step(*_: Any) -> Stack:
    return _stack()


def _parts(stack: Stack) -> tuple[list[Any], ...]:
    return stack.codes, stack.offsets, stack.kinds, stack.globals


class TestData:
    """What is passed to the work of the loop is its data, whatever makes it and whatever that is called."""

    def test_what_a_function_makes_for_the_step(self) -> None:
        classifier, seen = Classifier(), []

        def prepare() -> Stack:
            return _stack()

        def report() -> Stack:
            return _stack()

        for _ in range(2):
            batch = prepare()
            inputs = [batch]
            classifier.working_at(_users(_above(_step(inputs))))
            other = report()
            seen = [batch, other]
        assert [classifier.classify(stack).kind for stack in seen] == [DATA, HOST]

    def test_an_argument_of_the_call_itself(self) -> None:
        classifier, kept = Classifier(), []

        def prepare() -> Stack:
            kept.append(_stack())
            return kept[-1]

        for _ in range(2):
            classifier.working_at(_users(_above(_step(prepare()))))
        assert classifier.classify(kept[-1]).kind == DATA

    def test_an_iterator_that_feeds_the_loop(self) -> None:
        classifier = Classifier()

        def rows() -> Iterator[Stack]:
            yield _stack()
            yield _stack()

        for stack in rows():
            classifier.working_at(_users(_above(_step(stack))))
        assert classifier.classify(stack).kind == DATA

    def test_an_iterator_of_which_nothing_is_used(self) -> None:
        classifier, kept = Classifier(), []

        def numbers() -> Iterator[int]:
            for number in range(2):
                kept.append(_stack())
                yield number

        for _ in numbers():
            classifier.working_at(_users(_above(_step())))
        assert classifier.classify(kept[-1]).kind == HOST

    def test_the_next_number_is_no_data(self) -> None:
        classifier = Classifier()
        for number in range(2):
            classifier.working_at(_users(_above(_step(number))))
            stack = _users(_stack())
        at = next(
            instruction.offset
            for instruction in dis.get_instructions(stack.codes[0])
            if instruction.opname == "FOR_ITER" and instruction.offset < stack.offsets[0]
        )
        stack.offsets[0] = at
        assert classifier.classify(stack).kind == HOST

    def test_of_lines_that_no_sample_saw_the_next_item_is_no_data_and_what_is_made_for_the_step_is(self) -> None:
        classifier, rows = Classifier(), [[1.0], [2.0]]
        for number, row in enumerate(rows):
            inputs = [number, *map(abs, row)]
            classifier.working_at(_users(_above(_step(inputs))))
            stack = _users(_stack())
        (loop,) = loops_at(stack.codes[0], stack.offsets[0])
        kind, head = classifier.at_line(loop.code, loop.line, loop.line)
        assert (kind, head.call) == (HOST, "enumerate()")
        kind, made = classifier.at_line(loop.code, loop.line + 1, loop.line)
        assert (kind, made.call) == (DATA, "map()")

    def test_before_the_work_of_the_loop_is_known_nothing_is_data(self) -> None:
        def load_data() -> Stack:
            return _stack()

        assert Classifier().classify(load_data()).kind == HOST

    @pytest.mark.parametrize("called", [_module_step, len])
    def test_a_step_too_short_to_be_seen_is_known_by_its_name(
        self, called: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(globals(), "_module_step", called)

        def rows() -> Iterator[list[float]]:
            kept.append(_stack())
            yield [1.0]

        kept: list[Stack] = []
        for row in rows():
            _module_step(row)
        assert Classifier().classify(kept[-1]).kind == (HOST if called is len else DATA)

    def test_a_generator_that_runs_the_program_is_no_loader(self) -> None:
        classifier = Classifier()

        def steps() -> Iterator[tuple[Stack, Stack]]:
            for _ in range(2):
                inside = _step()
                classifier.working_at(_users(inside))
                yield inside, _stack()

        for _inside, outside in steps():
            assert classifier.classify(outside).kind == HOST


def test_the_loop_that_a_generator_feeds_is_the_programs() -> None:
    def numbers() -> Iterator[Stack]:
        for _ in range(1):
            yield _stack()

    for stack in numbers():
        seen = Classifier().classify(stack)
    functions = [site.function for site in seen.sites if site.file == __file__]
    assert functions[0] == "test_the_loop_that_a_generator_feeds_is_the_programs"
    assert "numbers" not in functions


def test_loops_of_a_function_that_is_being_traced_are_unrolled_and_not_told() -> None:
    kept: list[Stack] = []

    def traced(x: Any) -> Any:
        for _ in range(2):
            kept[:] = [_stack()]
        return x

    for _ in range(1):
        jax.jit(traced)(1.0)
    sites = Classifier().classify(kept[-1]).sites
    assert sites
    assert {site.function for site in sites if site.file == __file__} == {
        "test_loops_of_a_function_that_is_being_traced_are_unrolled_and_not_told"
    }


def _above(stack: Stack) -> Stack:
    """Without its innermost frame."""
    return Stack(stack.codes[1:], stack.offsets[1:], stack.kinds[1:], stack.globals[1:])


class TestLoops:
    def test_every_loop_around_a_place_is_told_innermost_first(self) -> None:
        def inner() -> Stack:
            for _ in range(1):
                stack = _stack()
            return stack

        first = sys._getframe().f_lineno + 1
        for _epoch in range(1):
            for _batch in range(1):
                stack = inner()
        sites = [site for site in Classifier().classify(stack).sites if site.file == __file__]
        outer = [site for site in sites if site.function == "test_every_loop_around_a_place_is_told_innermost_first"]
        assert sites[0].function == "inner"
        assert [(site.loop_line - first, site.line - first, site.call) for site in outer[:2]] == [
            (1, 2, "inner"),
            (0, 2, "inner"),
        ]


class TestJax:
    def _of(self, read: Callable[[Any], Any]) -> tuple[Seen, Stack]:
        """What a thread is at that reads an array which is still being computed."""

        @jax.jit
        def slow(x: Any) -> Any:
            return jax.lax.fori_loop(0, 60, lambda _, y: y @ y / 500, x).sum()

        x = jnp.ones((500, 500), jnp.float32)
        slow(x).block_until_ready()
        for _ in range(20):
            thread = threading.Thread(target=lambda: read(slow(x)), daemon=True)
            thread.start()
            while thread.is_alive():
                stack = read_stack(sys._current_frames().get(thread.ident or 0))
                seen = Classifier().classify(stack)
                if seen.kind == SYNC and stack.ready is not True:
                    thread.join(30)
                    return seen, stack
        raise AssertionError("no thread was ever seen waiting for its array")

    def test_float_waits_for_the_device(self) -> None:
        def read(array: Any) -> float:
            return float(array)

        seen, stack = self._of(read)
        assert seen.kind == SYNC
        assert seen.state(False) == "device_busy"
        assert stack.ready is False
        assert stack.array_bytes == 4
        assert seen.implicit == "device_to_host"
        assert seen.line is not None
        assert (seen.line.function, seen.line.call) == ("read", "float()")

    def test_item(self) -> None:
        def read(array: Any) -> Any:
            return array.item()

        seen, _ = self._of(read)
        assert seen.kind == SYNC
        assert seen.line is not None
        assert seen.line.call == ".item()"

    def test_block_until_ready_was_asked_for(self) -> None:
        def read(array: Any) -> Any:
            return jax.block_until_ready(array)

        seen, _ = self._of(read)
        assert seen.kind == SYNC
        assert seen.implicit == ""
        assert seen.line is not None
        assert seen.line.call == "jax.block_until_ready()"

    def test_an_array_that_is_there_is_copied(self) -> None:
        stack = Stack()
        seen = Classifier()
        key = Seen(SYNC)
        seen._seen[stack.key] = ([], key)
        stack.ready, stack.array_bytes = True, 4
        assert seen.classify(stack).kind == SYNC
        stack.array_bytes = 1_000_000
        assert seen.classify(stack).kind == TRANSFER
        stack.ready = False
        assert seen.classify(stack).kind == SYNC


def test_a_jitted_function_of_a_module_is_recognised() -> None:
    # The instruction is the call; the frame of a C function does not show, so this is what a sample sees.
    stack = _jitted()
    assert Classifier().classify(stack).kind == COMPILED


class TestNumpyArguments:
    """A jitted function on a line from which it was compiled with NumPy arrays for arguments."""

    def _called(self, *told: int) -> Seen:
        stack, classifier = _jitted(), Classifier()
        line = classifier.classify(stack).line
        assert line is not None
        for numpy_bytes in told:
            classifier.compiled_at(line.file, line.line, numpy_bytes)
        return classifier.classify(stack)

    def test_while_it_runs_it_copies(self) -> None:
        seen = self._called(16_000_000)
        assert (seen.state(True), seen.state(False)) == ("transfer", "device_busy")
        assert (seen.implicit, seen.copied_bytes) == ("host_to_device", 16_000_000)

    def test_the_largest_of_a_line_counts(self) -> None:
        assert self._called(16_000_000, 0).copied_bytes == 16_000_000

    @pytest.mark.parametrize("numpy_bytes", [0, 4_096])
    def test_what_takes_no_time_to_copy_is_no_copy(self, numpy_bytes: int) -> None:
        seen = self._called(numpy_bytes)
        assert (seen.kind, seen.implicit, seen.copied_bytes) == (COMPILED, "", None)

    def test_another_line_is_not_meant(self) -> None:
        stack, classifier = _jitted(), Classifier()
        classifier.compiled_at(__file__, 1, 16_000_000)
        assert classifier.classify(stack).kind == COMPILED

    def test_what_writes_the_result_on_that_line_is_not_the_function(self) -> None:
        def serve(of: SimpleNamespace) -> tuple[Stack, Stack, Stack]:
            return of.write(1), SimpleNamespace(tobytes=_step).tobytes(), of.step(1)

        def kind(stack: Stack) -> str:
            stack, classifier = Stack(*(each[1:] for each in _parts(stack))), Classifier()
            classifier.compiled_at(__file__, stack.codes[0].co_firstlineno + 1, 16_000_000)
            return classifier.classify(stack).kind

        written, copied, stepped = serve(SimpleNamespace(write=_step, step=_step))
        assert (kind(written), kind(copied), kind(stepped)) == (HOST, HOST, FED)


_stacks: list[Stack] = []


@jax.jit
def _identity(x: Any) -> Any:
    _stacks.append(_stack())
    return x


def _jitted() -> Stack:
    _identity.clear_cache()
    _identity(1.0)
    stack = _stacks.pop()
    at = next(index for index, code in enumerate(stack.codes) if code.co_name == "_jitted")
    return Stack(stack.codes[at:], stack.offsets[at:], stack.kinds[at:], stack.globals[at:])


def test_python_that_a_compiled_function_calls_is_a_callback_at_the_line_of_that_call() -> None:
    def note(value: Any) -> None:
        np.asarray(value)
        stacks.append(read_stack(sys._getframe(0)))

    stacks: list[Stack] = []
    stepped = jax.jit(lambda x: jax.debug.callback(note, x.sum()) or x + 1)
    x = jnp.zeros(3)
    for _ in range(2):
        x = stepped(x)
    jax.effects_barrier()
    # JAX may run it in a thread of its own: there is no line of the program below it then
    stack = stacks[-1]
    seen = Classifier().classify(stack)
    assert seen.kind == CALLBACK
    assert seen.state(True) == "host_busy"
    here = sys._getframe(0).f_code
    if here in stack.codes:
        assert seen.line is not None
        assert (seen.line.function, seen.line.call, seen.line.through) == (here.co_name, "stepped", "note")
        assert [site.call for site in seen.sites] == ["stepped"]
    plain = _users(_stack())
    assert Classifier().classify(plain).kind == HOST


def batched_device_put(aval: Any, xs: list[Any]) -> Stack:
    """Called as JAX's own, whose first argument is the type of the arrays."""
    return read_stack(sys._getframe(0))


@pytest.mark.parametrize(
    ("values", "size"),
    [([3], 0), ([np.zeros(5, np.float32), np.float32(1)], 24), ([object()], None), ([np.zeros(5), object()], None)],
)
def test_the_size_of_what_is_put_is_that_of_the_arrays_and_not_of_their_type(
    monkeypatch: pytest.MonkeyPatch, values: list[Any], size: int | None
) -> None:
    monkeypatch.setattr("jaxprof.recorder.samples.stack.frame_kind", lambda frame: JAX)
    assert batched_device_put("f32[5]", values).put_bytes == size


def _batches(stacks: list[Stack]) -> Iterator[int]:
    for number in range(3):
        stacks.append(_stack())
        yield number


def _noting(stacks: list[Stack]) -> Callable[[Any, int], Any]:
    def note(state: Any, _batch: int) -> Any:
        stacks.append(_stack())
        return state

    return note


def test_a_generator_under_the_call_that_also_hands_to_jax_is_data() -> None:
    """`functools.reduce(step, batches(), state)` has one instruction for both."""
    made: list[Stack] = []
    used: list[Stack] = []
    functools.reduce(_noting(used), _batches(made), jnp.zeros(3))
    classifier = Classifier()
    classifier.working_at(_users(Stack(*(part[1:] for part in _parts(used[0])))))
    assert classifier.classify(made[-1]).kind == DATA
    assert classifier.classify(used[-1]).kind == HOST


def _parts(stack: Stack) -> tuple[list[Any], ...]:
    return stack.codes, stack.offsets, stack.kinds, stack.globals


class _Operand:
    """Becomes an array where JAX asks for one, and notes the stack of that moment."""

    def __jax_array__(self) -> jax.Array:
        _stacks.append(_stack())
        return jnp.float32(1)


class _Holder:
    add = staticmethod(_identity)


def test_a_method_of_an_array_is_dispatched_and_no_compiled_function() -> None:
    """Also where a compilation was seen under it: `x.at[i].add(y)` compiles what it needs."""
    array = jnp.zeros(3)
    array.at[0].add(_Operand())
    stack = _stacks.pop()
    inside = next(index for index, kind in enumerate(stack.kinds) if kind == JAX)
    called = Stack(stack.codes[inside:], stack.offsets[inside:], stack.kinds[inside:], stack.globals[inside:])
    classifier = Classifier()
    classifier.compiling_at(called)
    assert classifier.classify(called).kind == DISPATCH


def test_a_compiled_function_that_is_called_like_a_method_of_an_array_is_one() -> None:
    _identity.clear_cache()
    holder = _Holder()
    holder.add(1.0)
    stack = _stacks.pop()
    inside = next(index for index, kind in enumerate(stack.kinds) if kind == JAX)
    called = Stack(stack.codes[inside:], stack.offsets[inside:], stack.kinds[inside:], stack.globals[inside:])
    classifier = Classifier()
    classifier.compiling_at(called)
    assert classifier.classify(called).kind == COMPILED


def test_jax_numpy_is_dispatch() -> None:
    seen = Seen(DISPATCH)
    assert (seen.state(True), seen.state(False)) == ("host_busy", "device_busy")


def test_importing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks: list[Stack] = []

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == "jaxprof_no_such_module":
                stack = _stack()
                del stack.codes[0], stack.offsets[0], stack.kinds[0], stack.globals[0]  # this finder's own
                stacks.append(stack)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(ImportError):
        __import__("jaxprof_no_such_module")
    assert Classifier().classify(stacks[0]).kind == IMPORT


@pytest.mark.parametrize(
    ("kind", "forced", "becomes"),
    [
        (COMPILED, False, UNSEEN),
        (COMPILED, True, UNSEEN),  # it looked at its arguments
        (HOST, False, UNSEEN),
        (HOST, True, HOST),  # Python that had to hand the lock over was here
        (TRANSFER, False, TRANSFER),
    ],
)
def test_a_sample_that_waited_for_the_lock_saw_where_it_was_given_away(kind: str, forced: bool, becomes: str) -> None:
    seen = Classifier().classify(_stack())
    earlier = Seen(kind, seen.line, seen.sites).held(forced=forced)
    assert earlier.kind == becomes
    assert earlier.line is not None
    assert (earlier.line.call == "") == (becomes == UNSEEN)


def test_a_copy_over_the_host_that_device_put_makes_was_asked_for() -> None:
    """From one sharding to another on a CPU, the shards are read and put together again."""

    def of(outermost: str) -> Seen:
        codes = [compile("", "j.py", "exec").replace(co_name=name) for name in ("_value", outermost)]
        user = compile("x", "u.py", "exec")
        return Classifier().classify(Stack([*codes, user], [0, 0, 0], [JAX, JAX, USER], [{}, {}, {}]))

    assert of("__array__").implicit == "device_to_host"
    assert of("device_put").implicit == ""
