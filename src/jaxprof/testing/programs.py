"""The programs that a test compiles, each as a session of one run, with its exact facts.

The facts are those of `jaxprof gate` and `jaxprof compare`; they are derived on first use. Other devices
are compiled for on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.memory import MemoryPicture, buffers_of
from jaxprof.analysis.run_difference import facts_of
from jaxprof.api.session import Session
from jaxprof.errors import JaxprofError, UsageError
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
from jaxprof.recorder.compiles.ledger import Ledger
from jaxprof.recorder.compiles.signature import FunctionKey
from jaxprof.session import Run
from jaxprof.session.log import new_header

if TYPE_CHECKING:
    from jaxprof.devices.targets import Target
    from jaxprof.recorder.calls.kept_call import KeptArguments


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation of a test."""

    key: FunctionKey
    """Identifies the function: compilations of the same function, wrapped in the same way, have the same key."""
    event: Compiled


class CompileWatch:
    """Watches the compilations of this process from `start` to `stop`."""

    def __init__(self) -> None:
        self.seen: list[Compilation] = []
        self.watching = False
        self._ledger: Ledger | None = None

    def start(self) -> None:
        """Empty JAX's caches, and begin to watch. Raises ImportError without jax."""
        import jax

        jax.clear_caches()
        self._ledger = Ledger(lambda event: None)
        self._ledger.on_row = self._take
        self._ledger.attach()
        self.watching = True

    def stop(self) -> None:
        """End watching. A second call does nothing."""
        if self.watching and self._ledger is not None:
            self.watching = False
            self._ledger.finish()
            self._ledger.detach()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what is compiled inside."""
        if not self.watching or self._ledger is None:
            yield
            return
        self._ledger.detach()
        try:
            yield
        finally:
            self._ledger.attach()

    def by_function(self) -> dict[FunctionKey, list[Compiled]]:
        """Return the compilations of the test's own functions: neither single operations nor functions of libraries."""
        grouped: dict[FunctionKey, list[Compiled]] = {}
        for compilation in self.seen:
            if not compilation.event.op_by_op and not compilation.event.library:
                grouped.setdefault(compilation.key, []).append(compilation.event)
        return grouped

    def _take(self, key: FunctionKey, event: Compiled) -> None:
        if event.compile_seconds is not None:
            self.seen.append(Compilation(key, event))


UNKNOWN_MEMORY = MemoryPicture("unknown", None, {}, (), (), None)


class ProgramFacts:
    """A compiled program. Its unknown facts are None."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def session(self) -> Session:
        """The program as a session of one run, which prints as text, can be saved, and holds the HLO."""
        return self._session

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
        return self.facts["bytes"]

    @property
    def memory(self) -> MemoryPicture:
        """Memory that the program holds while it runs: `peak_bytes`, and what that is made of."""
        return buffers_of(self.session, self.run.id) or UNKNOWN_MEMORY

    @property
    def failure(self) -> str:
        """The error of the compilation; empty if there was none."""
        return self.run.error

    @property
    def run(self) -> Run:
        """The only run of the session."""
        (run,) = self.session.runs.values()
        return run

    @cached_property
    def facts(self) -> dict[str, float | None]:
        """Every exact fact by its code, as `jaxprof gate --fail-on` names them."""
        return facts_of(self.session, self.run)


class CalledProgram(ProgramFacts):
    """A program that the fixture has called."""

    def __init__(self, events: Sequence[Event], function: CalledFunction, signature: str) -> None:
        super().__init__(_session(events))
        self.function = function
        self.signature = signature
        """Types of the arguments, for people."""
        self._events = tuple(events)
        self._elsewhere: dict[str, ProgramFacts] = {}

    @property
    def events(self) -> Iterator[Event]:
        """The events of the program's run, with the compilations of its function so far."""
        for event in self._events:
            if isinstance(event, RunFinished):
                for row in self.function.compilations():
                    seconds = row.compile_seconds or 0.0
                    yield CompileObserved(run=event.run, function=row.function, stage="compile", seconds=seconds)
            yield event

    def for_device(self, device: str, call: MadeCall) -> ProgramFacts:
        """Return the program of such a call, compiled once for each device."""
        target = target_of(device)
        known = self._elsewhere.get(target.label)
        if known is None:
            spec = replace(self.run.plan, workload=call.function.name, device=target.label)
            with self.function.uncounted():
                session = compile_for(target, spec, *call.function.by_position(call))
            known = self._elsewhere[target.label] = ProgramFacts(session)
        return known


class CalledFunction:
    """A function that the fixture has called: its programs, and how it is compiled."""

    def __init__(self, function: Callable[..., Any], watch: CompileWatch) -> None:
        import jax

        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.is_plain = not hasattr(function, "lower")
        self.compiled: Any = jax.jit(_plain(function)) if self.is_plain else function
        self.programs: list[tuple[MadeCall, CalledProgram]] = []
        self._watch = watch
        self._keys: set[FunctionKey] = set()

    def by_position(self, call: MadeCall) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function and the shapes of a call, all given by position."""

        def by_position(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            return self.compiled(*args, **kwargs)

        by_position.__name__ = self.name
        by_position.lower = self.compiled.lower  # type: ignore[attr-defined] # as what is jitted already
        return by_position, call.shapes

    def uncounted(self) -> AbstractContextManager[None]:
        """Do not count what is compiled inside as the test's."""
        return self._watch.paused()

    def compilations(self) -> tuple[Compiled, ...]:
        """Return the function's compilations in this test so far."""
        return tuple(seen.event for seen in self._watch.seen if seen.key in self._keys)

    def by_key(self) -> dict[FunctionKey, list[Compiled]]:
        """Return the function's compilations by key, which tells it from another function of the same name."""
        return {key: [seen.event for seen in self._watch.seen if seen.key == key] for key in self._keys}

    def took(self, before: int) -> Compiled | None:
        """Return the compilation of the function by a call that began after `before` compilations of the test; None if
        the call compiled nothing."""
        during = self._watch.seen[before:]
        named = [seen for seen in during if seen.event.function == self.name]
        candidates = named or [seen for seen in during if not seen.event.op_by_op]
        self._keys |= {seen.key for seen in candidates}
        return candidates[-1].event if candidates else None


@dataclass(frozen=True, slots=True, eq=False)
class MadeCall:
    """One call of a function by a test."""

    function: CalledFunction
    shapes: tuple[Any, ...]
    """`(args, kwargs)` with shapes in place of arrays."""
    kept: KeptArguments
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


def _session(events: Iterable[Event]) -> Session:
    session = Session(new_header(command=[]))
    for event in (*events, SessionClosed()):
        session.apply(event)
    return session


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as one that `jax.jit` can hash, under its own name."""
    try:
        hash(function)
    except TypeError:

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__name__ = type(function).__name__
        return call
    return function


def target_of(device: str) -> Target:
    """Return the one device that `device` names: `h100`. Skip the test if its compiler is not installed. Raises
    UsageError."""
    import pytest

    from jaxprof.devices.targets import parse_target, wheels
    from jaxprof.runner.interpreter import find_interpreter

    target = parse_target(device)
    if target.devices != 1:
        raise UsageError(
            f"{device} is {target.devices} devices", "Tests take one device; jaxprof hlo --for takes several."
        )
    try:
        wheels.environment(target.chip.vendor, find_interpreter().path)
    except JaxprofError as error:
        pytest.skip(f"jaxprof: {error.what}. {error.hint}")
    return target


def compile_for(target: Target, spec: RunSpec, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Session:
    """Compile the program for a device that is not here, and return its session of one run: exported from this process,
    where the function may be anything that can be called, and compiled in a child that has the device's compiler.

    A compile that fails is a failed run. Raises what the function and its export raise.
    """
    from jaxprof.engine.measure.portable import export_for
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.scheduler import session_of
    from jaxprof.session.log import LogWriter

    platform = "tpu" if target.chip.vendor == "tpu" else "cuda"
    program = export_for(platform, function, arguments)
    session = Session(new_header(command=[]))
    with TemporaryFolder("program") as folder:
        path = folder / "program"
        path.write_bytes(program.data)
        planned = PlannedRun(
            spec=spec, compile_only=True, elsewhere=target, exported=str(path), donated=program.donated
        )
        session_of([planned], LogWriter(session.header, None), find_interpreter(), session.extend)
    return session
