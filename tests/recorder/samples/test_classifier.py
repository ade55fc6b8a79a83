"""Stacks of real calls, and the states that they stand for."""

import ast
import dis
import functools
import os
import queue
import selectors
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.recorder.frame_owner import JAX, USER
from jaxprof.recorder.samples.classifier import Classifier
from jaxprof.recorder.samples.loops import loops_at
from jaxprof.recorder.samples.stack import Stack, read_stack
from jaxprof.recorder.samples.states import (
    CALL,
    CALLBACK,
    COMPILED,
    DATA,
    DISPATCH,
    FED,
    HOST,
    IDLE,
    IMPORT,
    STATES,
    SYNC,
    TRANSFER,
    UNSEEN,
    Seen,
)


def _stack():
    """The caller's."""
    return read_stack(sys._getframe(1))


def _step(*_):
    return _stack()


def _from(stack, at):
    """Without its innermost `at` frames."""
    return Stack(stack.read[at:])


def _made(codes, kinds):
    return Stack([(code, 0, kind, {}) for code, kind in zip(codes, kinds, strict=True)])


def _users(stack):
    """The part of a stack that begins at this file."""
    return _from(stack, next(at for at, frame in enumerate(stack.frames) if frame.code.co_filename == __file__))


def _called(stack):
    """The part that begins at JAX's function, which a user's line has called."""
    return _from(stack, [frame.kind for frame in stack.frames].index(JAX))


def _kind(stack):
    return Classifier().classify(stack).kind


def _works(classifier, stack):
    """JAX is at work under the caller of the function whose stack this is."""
    classifier.working_at(_users(_from(stack, 1)))


def _blocked_in(work, release, function):
    """The stack of a thread that is inside `function`, which waits until `release`."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            stack = read_stack(sys._current_frames().get(thread.ident or 0))
            if any(frame.code.co_name == function for frame in stack.frames):
                return stack
    finally:
        release()
        thread.join(10)


_stacks = []


@jax.jit
def _identity(x):
    _stacks.append(_stack())
    return x


class _Operand:
    """Becomes an array where JAX asks for one, and notes the stack of that moment."""

    def __jax_array__(self):
        _stacks.append(_stack())
        return jnp.float32(1)


class TestHost:
    def test_plain_python(self):
        seen = Classifier().classify(_stack())
        assert seen.kind == HOST
        assert STATES[seen.kind][0] == "host_busy"
        assert STATES[seen.kind][1] == "waiting"
        assert (seen.line.file, seen.line.function) == (__file__, "test_plain_python")

    def test_an_event_loop_that_waits_is_idle_and_a_sleep_is_not(self):
        reading, writing = os.pipe()
        with selectors.DefaultSelector() as selector:
            selector.register(reading, selectors.EVENT_READ)
            assert _kind(_blocked_in(selector.select, lambda: os.write(writing, b"x"), "select")) == IDLE
        over = threading.Event()
        assert _kind(_blocked_in(over.wait, over.set, "wait")) == HOST
        os.close(reading)
        os.close(writing)

    def test_call_in_c_that_waits_for_a_message_is_idle(self):
        poll = select = _step
        connection = SimpleNamespace(recv=_step, poll=_step, select=_step)
        idle, host = [connection.recv(1), connection.poll(), poll()], [connection.select(), select()]
        assert [[_kind(_from(stack, 1)) for stack in stacks] for stacks in (idle, host)] == [[IDLE] * 3, [HOST] * 2]

    def test_a_queue_waits_at_the_users_line(self):
        channel = queue.Queue()

        def consume():
            channel.get()

        seen = Classifier().classify(_blocked_in(consume, lambda: channel.put(1), "wait"))
        assert STATES[seen.kind][1] == "waiting"
        assert (seen.line.function, seen.line.call) == ("consume", "channel.get()")


@jax.jit
def _module_step(row):
    return row


class TestData:
    """What is passed to the work of the loop is its data, whatever makes it and whatever that is called."""

    def test_what_a_function_makes_for_the_step(self):
        classifier, kept = Classifier(), []

        def prepare():
            kept.append(_stack())
            return kept[-1]

        def report():
            return _stack()

        for _ in range(2):
            batch = prepare()
            inputs = [batch]
            _works(classifier, _step(inputs))
            other = report()
        assert [classifier.classify(stack).kind for stack in (batch, other)] == [DATA, HOST]
        for _ in range(2):
            _works(classifier, _step(prepare()))
        assert classifier.classify(kept[-1]).kind == DATA, "an argument of the call itself"

    def test_iterator_is_data_only_if_its_items_are_used(self):
        classifier, kept = Classifier(), []

        def rows():
            for _ in range(2):
                kept.append(_stack())
                yield kept[-1]

        for stack in rows():
            _works(classifier, _step(stack))
        assert classifier.classify(kept[-1]).kind == DATA
        for _ in rows():
            _works(classifier, _step())
        assert classifier.classify(kept[-1]).kind == HOST

    def test_the_next_number_is_no_data(self):
        classifier = Classifier()
        for number in range(2):
            _works(classifier, _step(number))
            stack = _users(_stack())
        innermost = stack.frames[0]
        innermost.offset = next(
            instruction.offset
            for instruction in dis.get_instructions(innermost.code)
            if instruction.opname == "FOR_ITER" and instruction.offset < innermost.offset
        )
        assert classifier.classify(stack).kind == HOST

    def test_unseen_line_is_data_if_it_feeds_the_step(self):
        classifier, rows = Classifier(), [[1.0], [2.0]]
        for number, row in enumerate(rows):
            inputs = [number, *map(abs, row)]
            _works(classifier, _step(inputs))
            stack = _users(_stack())
        (loop,) = loops_at(stack.frames[0].code, stack.frames[0].offset)
        kind, head = classifier.at_line(loop.code, loop.line, loop.line)
        assert (kind, head.call) == (HOST, "enumerate()")
        kind, made = classifier.at_line(loop.code, loop.line + 1, loop.line)
        assert (kind, made.call) == (DATA, "map()")

    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            ("walker.step(float(action))", UNSEEN),
            ("losses.append(loss.item())", UNSEEN),
            ("rows.extend(np.asarray(batch))", UNSEEN),
            ("walker.step(float('inf'))", HOST),
            ("walker.step(action)", HOST),
            ("draw(figure.item)", HOST),
        ],
    )
    def test_unseen_line_that_may_fetch_is_unknown(self, monkeypatch, line, kind):
        source = f"for _ in range(9):\n    {line}\n"
        monkeypatch.setattr("jaxprof.recorder.samples.flow.tree_of", lambda file: ast.parse(source))
        assert Classifier().at_line(compile(source, "walk.py", "exec"), 2, 1)[0] == kind

    @pytest.mark.parametrize("called", [_module_step, len])
    def test_a_step_too_short_to_be_seen_is_known_by_its_name(self, called, monkeypatch):
        """Before the work of the loop is known nothing is data."""
        monkeypatch.setitem(globals(), "_module_step", called)
        kept = []

        def rows():
            kept.append(_stack())
            yield [1.0]

        for row in rows():
            _module_step(row)
        assert _kind(kept[-1]) == (HOST if called is len else DATA)

    def test_a_generator_that_runs_the_program_is_no_loader(self):
        classifier = Classifier()

        def steps():
            for _ in range(2):
                classifier.working_at(_users(_step()))
                yield _stack()

        for outside in steps():
            assert classifier.classify(outside).kind == HOST

    def test_generator_under_the_call_is_data(self):
        """`functools.reduce(step, batches(), state)` has one instruction for both."""
        made = []
        used = []

        def batches():
            for number in range(3):
                made.append(_stack())
                yield number

        def note(state, _batch):
            used.append(_stack())
            return state

        functools.reduce(note, batches(), jnp.zeros(3))
        classifier = Classifier()
        _works(classifier, used[0])
        assert [classifier.classify(stack).kind for stack in (made[-1], used[-1])] == [DATA, HOST]


class TestLoops:
    def test_every_loop_around_a_place_is_told_innermost_first(self):
        def inner():
            for _ in range(1):
                stack = _stack()
            return stack

        first = sys._getframe().f_lineno + 1
        for _epoch in range(1):
            for _batch in range(1):
                stack = inner()
        sites = [site.at for site in Classifier().classify(stack).sites if site.at.file == __file__]
        outer = [site for site in sites if site.function == "test_every_loop_around_a_place_is_told_innermost_first"]
        assert sites[0].function == "inner"
        assert [(site.loop_line - first, site.line - first, site.call) for site in outer[:2]] == [
            (1, 2, "inner"),
            (0, 2, "inner"),
        ]

    def test_loop_around_a_generator_is_the_programs(self):
        def fed():
            for _ in range(1):
                yield _stack()

        def traced(x):
            for _ in range(2):
                _stacks[:] = [_stack()]
            return x

        for stack in fed():
            stacks = [stack]
            jax.jit(traced)(1.0)
        for each in (*stacks, _stacks.pop()):
            sites = [site.at for site in Classifier().classify(each).sites if site.at.file == __file__]
            assert {site.function for site in sites} == {sys._getframe().f_code.co_name}


class TestJax:
    @pytest.mark.parametrize(
        ("read", "call", "implicit"),
        [
            (lambda array: float(array), "float()", "device_to_host"),
            (lambda array: jax.block_until_ready(array), "jax.block_until_ready()", ""),
        ],
        ids=["float", "asked for"],
    )
    def test_a_thread_that_reads_an_array_waits_for_the_device(self, read, call, implicit):
        @jax.jit
        def slow(x):
            return jax.lax.fori_loop(0, 60, lambda _, y: y @ y / 500, x).sum()

        def seen_waiting():
            for _ in range(20):
                thread = threading.Thread(target=lambda: read(slow(x)), daemon=True)
                thread.start()
                while thread.is_alive():
                    stack = read_stack(sys._current_frames().get(thread.ident or 0))
                    seen = Classifier().classify(stack)
                    if seen.kind == SYNC and stack.ready is not True:
                        thread.join(30)
                        yield seen, stack

        x = jnp.ones((500, 500), jnp.float32)
        slow(x).block_until_ready()
        seen, stack = next(seen_waiting())
        assert (STATES[seen.kind][1], seen.implicit) == ("device_busy", implicit)
        assert call != "float()" or (stack.ready, stack.array_bytes) == (False, 4)
        assert (seen.line.function, seen.line.call) == ("<lambda>", call)

    def test_an_array_that_is_there_is_copied(self):
        stack, classifier = Stack(), Classifier()
        classifier._seen[stack.key] = ([], Seen(SYNC))
        for ready, size, kind in ((True, 4, SYNC), (True, 1_000_000, TRANSFER), (False, 1_000_000, SYNC)):
            stack.ready, stack.array_bytes = ready, size
            assert classifier.classify(stack).kind == kind

    def test_method_of_an_array_is_dispatch(self):
        """Also where a compilation was seen under it: `x.at[i].add(y)` compiles what it needs."""
        _identity.clear_cache()
        for called, kind in ((jnp.zeros(3).at[0].add, DISPATCH), (_identity, COMPILED)):
            holder = SimpleNamespace(add=called)
            holder.add(_Operand() if kind == DISPATCH else 1.0)
            stack, classifier = _called(_stacks.pop()), Classifier()
            classifier.compiling_at(stack)
            assert classifier.classify(stack).kind == kind

    def test_local_function_compiled_at_one_line_called_at_another(self):
        def calls(step, other):
            step(1.0)
            _identity.clear_cache()
            step(1.0)
            other(1.0)

        _identity.clear_cache()
        _stacks.clear()
        calls(_identity, lambda _: _stacks.append(_stack()))
        warm, *seen = _stacks
        inside = [_users(_from(stack, 1)) for stack in seen]
        classifier = Classifier()
        before = [classifier.classify(stack).kind for stack in inside]
        classifier.compiling_at(_called(warm))
        assert (before, [classifier.classify(stack).kind for stack in inside]) == ([HOST, HOST], [COMPILED, HOST])

    def test_callback_has_the_line_of_the_compiled_call(self):
        def note(value):
            np.asarray(value)
            stacks.append(read_stack(sys._getframe(0)))

        stacks = []
        stepped = jax.jit(lambda x: jax.debug.callback(note, x.sum()) or x + 1)
        x = jnp.zeros(3)
        for _ in range(2):
            x = stepped(x)
        jax.effects_barrier()
        # JAX may run it in a thread of its own: there is no line of the program below it then
        stack = stacks[-1]
        seen = Classifier().classify(stack)
        assert (seen.kind, STATES[seen.kind][0]) == (CALLBACK, "host_busy")
        here = sys._getframe(0).f_code
        if here in [frame.code for frame in stack.frames]:
            assert (seen.line.function, seen.line.call, seen.line.through) == (here.co_name, "stepped", "note")
            assert [site.at.call for site in seen.sites] == ["stepped"]
            assert [code.co_name for code, _ in seen.path] == ["note", here.co_name]

    def test_a_copy_for_a_callback_is_part_of_it(self):
        """JAX puts what it passes and returns on the host or the device, outside the function that is called. Before a
        call with ordered effects, it puts a token of its own there."""

        def seen(around):
            codes = [compile("", "j.py", "exec").replace(co_name=name) for name in ("device_put", around)]
            user = compile("x", "u.py", "exec")
            return Classifier().classify(_made([*codes, user], [JAX, JAX, USER]))

        around = ("_wrapped_callback", "get_token_input", "_device_put")
        assert [(each.kind, each.implicit) for each in map(seen, around)] == [
            (CALLBACK, ""),
            (COMPILED, ""),
            (TRANSFER, ""),
        ]

    def test_a_list_is_made_an_array_on_the_host_before_it_is_copied(self):
        def kind(*names):
            codes = [compile("", "j.py", "exec").replace(co_name=name) for name in (*names, "array")]
            return (
                Classifier().classify(_made([*codes, compile("x", "u.py", "exec")], [*[JAX] * len(codes), USER])).kind
            )

        assert [kind("tree_flatten"), kind("process_primitive", "bind"), kind("_device_put")] == [
            DATA,
            TRANSFER,
            TRANSFER,
        ]

    def test_copy_by_device_put_is_requested(self):
        """From one sharding to another on a CPU, the shards are read and put together again."""

        def implicit(outermost):
            codes = [compile("", "j.py", "exec").replace(co_name=name) for name in ("_value", outermost)]
            user = compile("x", "u.py", "exec")
            return Classifier().classify(_made([*codes, user], [JAX, JAX, USER])).implicit

        assert (implicit("__array__"), implicit("device_put")) == ("device_to_host", "")


class TestNumpyArguments:
    """A jitted function on a line from which it was compiled with NumPy arrays for arguments."""

    @pytest.mark.parametrize(
        ("told", "kind", "implicit"),
        [([], COMPILED, ""), ([16_000_000, 0], FED, "host_to_device"), ([4_096], COMPILED, "")],
        ids=["never", "the largest of a line counts", "too few to take time"],
    )
    def test_while_it_runs_it_copies(self, told, kind, implicit):
        _identity.clear_cache()
        _identity(1.0)
        # The instruction is the call; the frame of a C function does not show, so this is what a sample sees.
        stack, classifier = _users(_from(_stacks.pop(), 1)), Classifier()
        line = classifier.classify(stack).line
        classifier.note_compiled_line(__file__, 1, 16_000_000)
        for numpy_bytes in told:
            classifier.note_compiled_line(line.file, line.line, numpy_bytes)
        seen = classifier.classify(stack)
        assert (seen.kind, seen.implicit) == (kind, implicit)

    def test_what_writes_the_result_on_that_line_is_not_the_function(self):
        def serve(of):
            return of.write(1), SimpleNamespace(tobytes=_step).tobytes(), of.step(1)

        def kind(stack):
            stack, classifier = _from(stack, 1), Classifier()
            classifier.note_compiled_line(__file__, stack.frames[0].code.co_firstlineno + 1, 16_000_000)
            return classifier.classify(stack).kind

        assert [kind(stack) for stack in serve(SimpleNamespace(write=_step, step=_step))] == [HOST, HOST, FED]


def batched_device_put(aval, xs):
    """Called as JAX's own, whose first argument is the type of the arrays."""
    return read_stack(sys._getframe(0))


@pytest.mark.parametrize(
    ("values", "size"),
    [([3], 0), ([np.zeros(5, np.float32), np.float32(1)], 24), ([object()], None), ([np.zeros(5), object()], None)],
)
def test_put_bytes_are_those_of_the_arrays(monkeypatch, values, size):
    monkeypatch.setattr("jaxprof.recorder.samples.stack.frame_kind", lambda frame: JAX)
    assert batched_device_put("f32[5]", values).put_bytes == size


@pytest.mark.parametrize(("value", "size"), [(np.zeros(5, np.uint8), 5), ([1, 2], None)])
def test_put_bytes_are_known_where_jnp_array_is_called(monkeypatch, value, size):
    def array(object, dtype=None):
        return read_stack(sys._getframe(0))

    monkeypatch.setattr("jaxprof.recorder.samples.stack.frame_kind", lambda frame: JAX)
    assert array(value).put_bytes == size


def test_importing(monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "jaxprof_no_such_module":
                _stacks.append(_from(_stack(), 1))  # without this finder's own frame

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(ImportError):
        __import__("jaxprof_no_such_module")
    assert _kind(_stacks.pop()) == IMPORT


def _init_backend():
    return _stack()


def test_start_of_a_backend_is_no_dispatch(monkeypatch):
    is_jax = {True: JAX, False: USER}
    starts = _init_backend.__name__
    monkeypatch.setattr(
        "jaxprof.recorder.samples.stack.frame_kind", lambda frame: is_jax[frame.f_code.co_name == starts]
    )
    assert _kind(_init_backend()) == IMPORT


@pytest.mark.process
def test_jax_starts_its_backend_in_the_function_of_that_name():
    called = "sys.setprofile(lambda frame, event, _: names.add((event, frame.f_code.co_name)))"
    code = f"import sys, jax; names = set(); {called}; jax.devices(); sys.setprofile(None); print(sorted(names))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "('call', '_init_backend')" in done.stdout


def test_brief_wait_on_a_line_with_other_work():
    seen = replace(Classifier().classify(_stack()), kind=DISPATCH)
    kinds = [replace(seen, shares_line=shared).while_locked(forced=False, brief=True).kind for shared in (False, True)]
    assert kinds == [DISPATCH, UNSEEN]


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
def test_sample_after_a_wait_shows_where_the_lock_was_released(kind, forced, becomes):
    seen = Classifier().classify(_stack())
    earlier = Seen(kind, seen.line, seen.sites).while_locked(forced=forced)
    assert earlier.kind == becomes
    assert (earlier.line.call == "") == (becomes == UNSEEN)


@pytest.mark.parametrize("kind", [COMPILED, SYNC])
@pytest.mark.parametrize(("whole", "becomes"), [(True, CALL), (False, UNSEEN)])
def test_lock_in_a_loop_that_is_all_work_is_the_calls(kind, whole, becomes):
    seen = replace(Classifier().classify(_stack()), kind=kind, is_all_work=whole)
    assert seen.while_locked(forced=False).kind == becomes


class _Dropped:
    """What a call gives: it takes a stack where the next result takes its place."""

    def __init__(self, stacks):
        self.stacks = stacks

    def __del__(self):
        self.stacks.append(_from(_stack(), 1))


def test_results_dropped_at_an_unknown_call_belong_to_it():
    def unknown(step, stacks):
        for _ in range(2):
            kept = step(stacks)
        return kept

    def known(_, stacks):
        for _ in range(2):
            kept = _Dropped(stacks)
        return kept

    def without_call(step, stacks):
        kept, other = step(stacks), step(stacks)
        for _ in range(2):
            kept = other
        return kept

    for run, beside in ((unknown, True), (known, False), (without_call, False)):
        stacks = []
        run(_Dropped, stacks)
        seen = Classifier().classify(stacks[0])
        assert (seen.kind, seen.is_beside_unknown, seen.doubtful) == (HOST, beside, False), run.__name__


def test_the_loops_that_tracing_unrolls_and_no_other_ones():
    stacks = []

    def layers(x):
        for _ in range(2):
            x = x + 1
            stacks.append(_stack())
        return x

    for _ in range(1):  # no part of what is traced
        jax.jit(layers)(1.0)
        stacks.append(_stack())
    of_loop, outside = (Classifier().classify(_users(stack)).statements for stack in stacks[1:])
    first = layers.__code__.co_firstlineno
    assert [(each.kind, each.where.line, each.where.function) for each in of_loop] == [
        ("unrolled", first + 1, "layers")
    ]
    assert outside == ()


def test_an_import_is_known_with_its_module_and_line(tmp_path, monkeypatch):
    (tmp_path / "slow_tables.py").write_text("import sys\nstack = sys.read_stack_here()\n")
    monkeypatch.setattr(sys, "read_stack_here", _stack, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    before = sys._getframe().f_lineno
    import slow_tables

    (seen,) = Classifier().classify(slow_tables.stack).statements
    assert (seen.kind, seen.name) == ("imports", "slow_tables")
    assert (seen.where.file, seen.where.line) == (__file__, before + 1)
    assert Classifier().classify(_users(_stack())).statements == ()
