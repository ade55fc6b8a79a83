"""The fixture `jaxprof`: it calls a function as the test asks, and keeps what the call compiled.

The program is read right after the call, from the caches that the call has filled: later the settings under which it
was compiled (a mesh, a precision) may be gone, and donated arguments are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.kernels.memory import MemoryPicture, memory_of_run
from jaxprof.analysis.programs.sentences import compile_reason
from jaxprof.api.session import Session
from jaxprof.base.errors import UsageError
from jaxprof.base.grouping import grouped
from jaxprof.base.text import shorten
from jaxprof.base.units import bytes_
from jaxprof.base.values import frozen
from jaxprof.events import (
    Compiled,
    CompileObserved,
    Event,
    PhaseEnded,
    RunFinished,
    RunSpec,
    SessionClosed,
    WarningRaised,
)
from jaxprof.facts import recorder
from jaxprof.facts.comparisons import EXACT
from jaxprof.findings.compare.session_difference import facts_of
from jaxprof.recorder.compiles.arguments import static_text
from jaxprof.recorder.compiles.ledger import Ledger
from jaxprof.recorder.compiles.reasons import FunctionKey
from jaxprof.session import new_header

if TYPE_CHECKING:
    from jaxprof.recorder.calls.kept_call import KeptArguments


class CompileWatch:
    """Watches the compilations of this process from `start` to `stop`."""

    def __init__(self) -> None:
        self.seen: list[tuple[FunctionKey, Compiled]] = []
        """Compilations in order. Those of the same function, wrapped in the same way, have the same key."""
        self._ledger: Ledger | None = None

    def start(self) -> None:
        """Empty JAX's caches, and begin to watch. Raises ImportError without jax."""
        import jax

        jax.clear_caches()
        self._ledger = Ledger(lambda event: None)

        def take(key: FunctionKey, event: Compiled) -> None:
            if event.compile_seconds is not None:
                self.seen.append((key, event))

        self._ledger.on_row = take
        self._ledger.attach()

    def stop(self) -> None:
        """End watching. A second call does nothing."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.finish()
            ledger.detach()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Do not count what is compiled inside."""
        ledger = self._ledger
        if ledger is None:
            yield
            return
        ledger.detach()
        try:
            yield
        finally:
            ledger.attach()

    def by_function(self, keys: Collection[FunctionKey]) -> dict[FunctionKey, list[Compiled]]:
        """Return the compilations of functions with these keys, and of all others of the test's own."""
        return grouped((key, event) for key, event in self.seen if key in keys or not (event.op_by_op or event.library))


class CalledProgram:
    """A program that the fixture has called, as a session of one run."""

    def __init__(self, events: Sequence[Event], call: MadeCall) -> None:
        self.session = Session(new_header(command=[]))
        for event in (*events, SessionClosed()):
            self.session.apply(event)
        (self.run,) = self.session.runs.values()
        self.call = call
        """The first call of the program."""
        self.function = call.function
        self._events = tuple(events)

    @cached_property
    def facts(self) -> dict[str, float | None]:
        """Every exact fact by its code; None if unknown."""
        return recorder(EXACT)(facts_of(self.session, self.run))

    @property
    def events(self) -> Iterator[Event]:
        """The events of the program's run, with the compilations of its function so far."""
        for event in self._events:
            if isinstance(event, RunFinished):
                for row in self.function.compilations():
                    seconds = row.compile_seconds or 0.0
                    yield CompileObserved(run=event.run, function=row.function, stage="compile", seconds=seconds)
            yield event


class CalledFunction:
    """A function that the fixture has called: its programs, and how it is compiled."""

    def __init__(self, function: Callable[..., Any], watch: CompileWatch) -> None:
        import jax

        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.is_plain = not hasattr(function, "lower")
        self.compiled: Any = jax.jit(_plain(function)) if self.is_plain else function
        self.programs: list[CalledProgram] = []
        self._watch = watch
        self.keys: set[FunctionKey] = set()
        """What tells it from another function of the same name."""

    def compilations(self) -> tuple[Compiled, ...]:
        return tuple(event for key, event in self._watch.seen if key in self.keys)

    def took(self, before: int) -> Compiled | None:
        """Return the compilation of the function by a call that began after `before` compilations of the test; None if
        the call compiled nothing."""
        during = self._watch.seen[before:]
        named = [(key, event) for key, event in during if event.function == self.name]
        candidates = named or [(key, event) for key, event in during if not event.op_by_op]
        self.keys |= {key for key, _ in candidates}
        return candidates[-1][1] if candidates else None


@frozen(eq=False)
class MadeCall:
    """One call of a function by a test."""

    function: CalledFunction
    shapes: tuple[Any, ...]
    """`(args, kwargs)` with shapes in place of arrays."""
    words: tuple[str, ...]
    """Arguments of the program, for people: `f32[64,256]`."""
    types: tuple[Any, ...]
    """What tells its program from others: the structure of its arguments, their shapes and dtypes."""
    values: tuple[Any, ...]
    """The leaves that are not arrays. A static one tells programs apart, too."""


def as_compiled(events: Iterable[Event], compilation: Compiled | None) -> Iterator[Event]:
    """Yield the events of a program that was read after its call, with the times that its stages took in the call:
    reading found them in a cache. `compilation`: the program's compilation; None if unknown."""
    for event in events:
        if isinstance(event, PhaseEnded):
            yield replace(event, seconds=getattr(compilation, f"{event.phase}_seconds", None), note="")
        elif not (isinstance(event, WarningRaised) and event.code == "compile_cached"):
            yield event


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        hash(function)
    except TypeError:

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__name__ = type(function).__name__
        return call
    return function


_LEAVES_NAMED = 16


@frozen(kw_only=True)
class Compilation(Compiled):
    """A compilation, with its reason in words."""

    @property
    def reason(self) -> str:
        """Why the function was compiled again; empty for the first time."""
        return compile_reason(self)


class CallResult:
    """One call of a function, and its program. Its unknown facts are None."""

    def __init__(self, value: Any, program: CalledProgram) -> None:
        self.value = value
        """What the function returned."""
        self.session: Session = program.session
        """The program as a session of one run, which prints as text, can be saved, and holds the HLO."""
        self.run = program.run
        """The only run of the session."""
        self.failure = program.run.error
        """The error of the compilation; empty if there was none."""
        self._program = program

    @property
    def compiles(self) -> int:
        """How often the function has been compiled in this test so far, by this call and all others."""
        return len(self._program.function.compilations())

    @property
    def compilations(self) -> tuple[Compilation, ...]:
        """The compilations of the function in this test so far, with their reasons."""
        names = [item.name for item in fields(Compiled)]
        rows = self._program.function.compilations()
        return tuple(Compilation(**{name: getattr(row, name) for name in names}) for row in rows)

    @property
    def facts(self) -> dict[str, float | None]:
        """Every exact fact by its code, as `jaxprof gate --fail-on` names them."""
        return self._program.facts

    @property
    def kernels(self) -> int | None:
        """Number of kernels that one call launches; those of a loop count once."""
        kernels = self.facts["kernels"]
        return None if kernels is None else int(kernels)

    @property
    def flops(self) -> float | None:
        """FLOPs of one call, counted from the HLO; None if the trip count of a loop is unknown."""
        return self.facts["flops"]

    @property
    def bytes(self) -> float | None:
        """Bytes that the kernels of one call read and write, counted like `flops`."""
        return self.facts["accessed_bytes"]

    @property
    def memory(self) -> MemoryPicture:
        """Memory that the program holds while it runs: `peak_bytes`, and what that is made of."""
        return memory_of_run(self.session, self.run.id) or MemoryPicture("unknown", None, {}, (), (), None)


class Caller:
    """The fixture `jaxprof`, which tests call: `result = jaxprof(fn, *args, **kwargs)`."""

    def __init__(self, test: str, watch: CompileWatch) -> None:
        self.test = test
        self.functions: list[CalledFunction] = []
        self.watch = watch
        self._known: dict[Any, CalledFunction] = {}

    @property
    def programs(self) -> list[CalledProgram]:
        return [program for function in self.functions for program in function.programs]

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallResult:
        """Call `fn(*args, **kwargs)` and return the result with its program. A function that is not compiled already
        (by `jax.jit`, `nnx.jit`, `eqx.filter_jit`) is compiled by `jax.jit`. Raises UsageError for something that is
        not callable, and what the function raises."""
        from jaxprof.engine.measure.ahead_of_time import abstract
        from jaxprof.recorder.calls.kept_call import KeptArguments, KeptArray

        if not callable(fn):
            raise UsageError(f"jaxprof needs a function, not {type(fn).__name__}", "jaxprof(fn, *args, **kwargs)")
        try:
            hash(fn)
            key: Any = fn
        except TypeError:
            key = id(fn)  # stays unique: CalledFunction keeps the function alive
        function = self._known.get(key)
        if function is None:
            function = self._known[key] = CalledFunction(fn, self.watch)
            self.functions.append(function)
        kept = KeptArguments.of(args, kwargs, values=False)
        types = [
            (leaf.shape, str(leaf.dtype), leaf.weak, leaf.sharding) if isinstance(leaf, KeptArray) else type(leaf)
            for leaf in kept.leaves
        ]
        values = tuple(leaf for leaf in kept.leaves if not isinstance(leaf, KeptArray))
        call = MadeCall(
            function, abstract((args, kwargs)), _types(kept, function.compiled), (kept.structure, *types), values
        )
        before = len(self.watch.seen)
        try:
            value = function.compiled(*args, **kwargs)
        except Exception as error:
            if function.is_plain:
                error.add_note("The fixture jaxprof compiles a plain function with jax.jit; give it a compiled one.")
            raise
        compilation = function.took(before)
        program = _find_program(call, function.programs) if compilation is None else None
        if program is None:
            program = self._read(call, compilation)
            function.programs.append(program)
        return CallResult(value, program)

    def _read(self, call: MadeCall, compilation: Compiled | None) -> CalledProgram:
        """Return the program of a call that was just made. `compilation`: the one that the call caused, if any."""
        from jaxprof.engine.measure.inprocess import compile_call, device_of

        name = call.function.name
        count = sum(program.function.name == name for program in self.programs)
        spec = RunSpec(
            workload=self.test,
            variant=name if not count else f"{name} {count + 1}",
            how="compile",
            device=device_of(call.shapes),
            arguments=call.words,
            compilation_cache=True,
            check=False,
            capture=False,
        )
        events: list[Event] = []
        args, kwargs = call.shapes
        with self.watch.pause():
            compile_call("r1", spec, call.function.compiled, args, kwargs, events.append)
        return CalledProgram(list(as_compiled(events, compilation)), call)


def _find_program(call: MadeCall, programs: list[CalledProgram]) -> CalledProgram | None:
    """Return the program of such a call: with the same static values, else with others, which are then not static."""
    alike = [program for program in reversed(programs) if program.call.types == call.types]
    for program in alike:
        with suppress(Exception):  # the comparison of a value of the test's own
            if bool(program.call.values == call.values):
                return program
    return alike[0] if alike else None


def _types(kept: KeptArguments, function: Any) -> tuple[str, ...]:
    """Return the first arguments in words, `f32[64,256]`, and how many more; nothing that looks like a secret."""
    import jax

    from jaxprof.recorder.calls.kept_call import KeptArray
    from jaxprof.workloads.callables import arguments_by_name
    from jaxprof.workloads.specs import array_text

    parameters = [*arguments_by_name(function), *[""] * len(kept.leaves)]
    numbered = jax.tree.unflatten(kept.structure, range(len(kept.leaves)))
    by_position, by_name = (jax.tree_util.tree_flatten_with_path(part)[0] for part in numbered)
    named = {leaf: f"{parameters[path[0].idx]}{jax.tree_util.keystr(path[1:])}" for path, leaf in by_position}
    named |= {leaf: jax.tree_util.keystr(path) for path, leaf in by_name}

    def words(number: int, leaf: Any) -> str:
        if not isinstance(leaf, KeptArray):
            is_plain = isinstance(leaf, bool | int | float | str)
            return shorten(static_text(leaf, named[number]) if is_plain else type(leaf).__name__, 40)
        return array_text(str(leaf.dtype), leaf.shape) or f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"

    listed = [words(number, leaf) for number, leaf in enumerate(kept.leaves[:_LEAVES_NAMED])]
    rest = kept.leaves[_LEAVES_NAMED:]
    if rest:
        arrays = [leaf for leaf in rest if isinstance(leaf, KeptArray)]
        sizes = [leaf.dtype.itemsize * math.prod(leaf.shape) for leaf in arrays]
        listed.append(f"and {len(rest)} more, {bytes_(sum(sizes))}")
    return tuple(listed)
