"""Stacks of real calls, and the states that they stand for."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxprof.program.places import JAX, USER
from jaxprof.program.samples.stack import Stack, read_stack
from jaxprof.program.samples.states import COMPILED, DATA, DISPATCH, HOST, IMPORT, SYNC, TRANSFER, Classifier, Seen


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


class TestHost:
    def test_plain_python(self) -> None:
        seen = Classifier().classify(_stack())
        assert seen.kind == HOST
        assert seen.state(True) == "host_busy"
        assert seen.state(False) == "waiting"
        assert seen.line is not None
        assert seen.line.file == __file__
        assert seen.line.function == "test_plain_python"

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


class TestData:
    def test_a_generator_below_a_for_loop(self) -> None:
        def rows() -> Iterator[Stack]:
            yield _stack()

        for stack in rows():
            assert Classifier().classify(stack).kind == DATA

    def test_next_of_an_iterator(self) -> None:
        class Source:
            def __next__(self) -> Stack:
                return _stack()

        assert Classifier().classify(next(Source())).kind == DATA  # type: ignore[call-overload]

    @pytest.mark.parametrize("name", ["load", "load_data", "get_batch", "data_loader", "make_dataset", "next_batch"])
    def test_names_of_loaders(self, name: str) -> None:
        namespace: dict[str, Any] = {"_stack": _stack}
        exec(compile(f"def {name}():\n    return _stack()\n", __file__, "exec"), namespace)
        assert Classifier().classify(namespace[name]()).kind == DATA

    @pytest.mark.parametrize("name", ["load_checkpoint", "train", "download", "update", "metadata_of"])
    def test_names_of_others(self, name: str) -> None:
        namespace: dict[str, Any] = {"_stack": _stack}
        exec(compile(f"def {name}():\n    return _stack()\n", __file__, "exec"), namespace)
        assert Classifier().classify(namespace[name]()).kind == HOST

    def test_a_generator_that_runs_the_program_is_no_loader(self) -> None:
        classifier = Classifier()

        def steps() -> Iterator[tuple[Stack, Stack]]:
            inside: list[Stack] = []
            jax.jit(lambda x: inside.append(_stack()) or x)(1.0)  # type: ignore[func-returns-value]
            yield inside[0], _stack()

        for inside, outside in steps():
            assert classifier.classify(outside).kind == DATA
            at = next(index for index, code in enumerate(inside.codes) if code.co_name == "steps")
            called = Stack(inside.codes[at:], inside.offsets[at:], inside.kinds[at:], inside.globals[at:])
            classifier.compiling_at(called)
            assert classifier.classify(called).kind == COMPILED
            assert classifier.classify(outside).kind == HOST


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


_stacks: list[Stack] = []


@jax.jit
def _identity(x: Any) -> Any:
    _stacks.append(_stack())
    return x


def _jitted() -> Stack:
    _identity(1.0)
    stack = _stacks.pop()
    at = next(index for index, code in enumerate(stack.codes) if code.co_name == "_jitted")
    return Stack(stack.codes[at:], stack.offsets[at:], stack.kinds[at:], stack.globals[at:])


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


def test_before_a_call_is_python_on_the_same_line() -> None:
    seen = Classifier().classify(_stack())
    earlier = Seen(COMPILED, seen.line, seen.loop, "").before()
    assert earlier.kind == HOST
    assert earlier.line is not None
    assert earlier.line.call == ""
    assert Seen(TRANSFER).before().kind == TRANSFER


def test_a_copy_over_the_host_that_device_put_makes_was_asked_for() -> None:
    """From one sharding to another on a CPU, the shards are read and put together again."""

    def of(outermost: str) -> Seen:
        codes = [compile("", "j.py", "exec").replace(co_name=name) for name in ("_value", outermost)]
        user = compile("x", "u.py", "exec")
        return Classifier().classify(Stack([*codes, user], [0, 0, 0], [JAX, JAX, USER], [{}, {}, {}]))

    assert of("__array__").implicit == "device_to_host"
    assert of("device_put").implicit == ""
