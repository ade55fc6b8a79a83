"""The public Python API: profile a function in the caller's own process, load a session, look at it.

    import jaxprof

    session = jaxprof.profile(step, params, batch)
    print(session)
    session.save("step.jaxprof")

It uses the same engine as the terminal app, without the child process: the caller's jax, devices and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof import session as fold_room
from jaxprof.errors import StorageError, UsageError
from jaxprof.results import RunResult, results
from jaxprof.store import LogWriter, new_header
from jaxprof.store import load as load_file
from jaxprof.store.codec import EXTENSION

if TYPE_CHECKING:
    from jaxprof.events import Event, Header


class Session(fold_room.Session):
    """A session as a user of the API holds it: prints as text, can be saved, and gives its runs as figures."""

    def __init__(self, header: Header | None = None) -> None:
        super().__init__(header)
        self._events: list[Event] = []

    def apply(self, event: Event) -> None:
        """Takes one event in, and keeps it, so that `save` writes the log as it was."""
        super().apply(event)
        self._events.append(event)

    @property
    def figures(self) -> list[RunResult]:
        """What is derived from each run: medians, intervals, phases, speed-up, warnings."""
        return results(self)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form (`docs/json.md`) as plain dicts, lists and numbers."""
        from jaxprof.report.json import to_dict

        return to_dict(self)

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Writes the session to `path` (`.jaxprof` is added when there is no extension).

        Raises StorageError when the file is there already (unless `replace`), or cannot be written.
        """
        target = Path(path).expanduser()
        if not target.suffix:
            target = target.with_suffix(EXTENSION)
        writer = LogWriter(self.header, target, replace_existing=replace)
        for event in self._events:
            writer.append(event)
        writer.sync()
        writer.close()
        if writer.failure is not None:
            raise StorageError(writer.failure.what, "Give another path.")
        return target

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.figures)

    def __str__(self) -> str:
        from jaxprof.report.text import to_text

        return to_text(self)

    def __repr__(self) -> str:
        states = ", ".join(f"{run.label}: {run.status}" for run in self.runs.values())
        return f"<jaxprof.Session {self.header.session} [{states}]>"


def _environment() -> dict[str, Any]:
    from jaxprof.telemetry.environment import environment_facts

    return dict(environment_facts())


def load(path: str | Path) -> Session:
    """The session in a file, also one that was cut off. Raises FileRefusedError when it is not a session."""
    return load_file(Path(path).expanduser(), Session)


def profile(
    fn: Callable[..., Any],
    *args: Any,
    name: str = "",
    static_argnums: int | tuple[int, ...] = (),
    baseline: Callable[..., Any] | None = None,
    op_by_op: bool = False,
    budget_seconds: float = 2.0,
    max_seconds: float | None = None,
    keep_constants: bool = False,
) -> Session:
    """Measures `fn(*args)` phase by phase in this process, compiled by `jax.jit` if it is not already.

    `args` are what `fn` takes: arrays, scalars, and nested tuples, lists and dicts of them. `static_argnums` is passed
    on to `jax.jit`. With `baseline` (a NumPy twin, called with the same arguments as NumPy arrays) the session has a
    speed-up and checks the result; with `op_by_op` the function is also timed without jit. Times are in seconds.

    A failure of `fn` is a failed run of the session, with its traceback, and is not raised. Raises UsageError for
    something that is not callable, or a budget that is not above 0.
    """
    from jaxprof.measure.inprocess import profile_function

    if not callable(fn):
        raise UsageError(f"profile wants a function, not {type(fn).__name__}", "jaxprof.profile(fn, *args)")
    if budget_seconds <= 0 or (max_seconds is not None and max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "budget_seconds=2.0 is the default.")
    session = Session(new_header(_environment(), command=[]))
    profile_function(
        fn,
        args,
        session.apply,
        name=name,
        static_argnums=static_argnums,
        baseline=baseline,
        op_by_op=op_by_op,
        budget_seconds=budget_seconds,
        max_seconds=max_seconds,
        keep_constants=keep_constants,
    )
    return session
