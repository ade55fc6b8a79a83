"""The programs that a test compiles, each as a session of one run, with its exact facts.

The facts are those of `jaxprof gate` and `jaxprof compare`; they are derived on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from jaxprof.api.session import Session
from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen
from jaxprof.events import Compiled, CompileObserved, Event, PhaseEnded, RunFinished, SessionClosed, WarningRaised
from jaxprof.facts import recorder
from jaxprof.facts.comparisons import EXACT
from jaxprof.findings.compare.session_difference import facts_of
from jaxprof.recorder.compiles.ledger import Ledger
from jaxprof.recorder.compiles.reasons import FunctionKey
from jaxprof.session.log import new_header


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
        self._ledger.on_row = self._take
        self._ledger.attach()

    def stop(self) -> None:
        """End watching. A second call does nothing."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.finish()
            ledger.detach()

    @contextmanager
    def paused(self) -> Iterator[None]:
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
        """Return the compilations of the functions with these keys, and of all other functions of the test's own:
        neither single operations nor functions of libraries."""
        return grouped((key, event) for key, event in self.seen if key in keys or not (event.op_by_op or event.library))

    def _take(self, key: FunctionKey, event: Compiled) -> None:
        if event.compile_seconds is not None:
            self.seen.append((key, event))


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
    """Return the function as one that `jax.jit` can hash, under its own name."""
    try:
        hash(function)
    except TypeError:

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__name__ = type(function).__name__
        return call
    return function
