"""The session of the Python API: loaded from a file, or made by `jaxprof.profile`, which measures a function in the
caller's own process, with their jax, devices and settings; and HLO, whatever file or folder holds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.runs.run_result import RunResult, results
from jaxprof.base.errors import StorageError, UsageError
from jaxprof.base.operating_system import refuse_to_run
from jaxprof.events import Event, Header, RunSpec, SessionClosed
from jaxprof.remote import path_here
from jaxprof.session import LogWriter, new_header
from jaxprof.session import Session as FoldedSession
from jaxprof.session import load as load_file
from jaxprof.session.files import EXTENSION

if TYPE_CHECKING:
    from jaxprof.hlo.stages import ModuleStages

_LONGEST_IN_NOTEBOOKS = 16_000
"""Most characters that a notebook shows of a session."""


class Session(FoldedSession):
    """A session, which prints as text, can be saved, and has the figures of its runs."""

    def __init__(self, header: Header | None = None) -> None:
        super().__init__(header)
        self._events: list[Event] = []

    def apply(self, event: Event) -> None:
        """Fold one event, and keep it, so that `save` writes the log unchanged."""
        super().apply(event)
        self._events.append(event)

    @property
    def figures(self) -> list[RunResult]:
        """The figures of each run: medians, intervals, phases, speed-up, warnings."""
        return results(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (`docs/json.md`) as plain dicts, lists and numbers."""
        from jaxprof.facts.session_tree import to_dict

        return to_dict(self)

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the session to `path` (`.jaxprof` is added if there is no extension).

        Raises UsageError for a URL, StorageError if the file already exists (unless `replace`) or cannot be written.
        """
        target = path_here(path, "Save it here, and copy it there.")
        if not target.suffix:
            target = target.with_suffix(EXTENSION)
        writer = LogWriter(self.header, target, replace_existing=replace)
        for event in self._events:
            writer.append(event)
        writer.sync()
        writer.close()
        if writer.failure is not None:
            raise StorageError(writer.failure.what, "Give another path.")
        return writer.path or target

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.figures)

    def __str__(self) -> str:
        from jaxprof.report.session_text import to_text

        return to_text(self)

    def _repr_markdown_(self) -> str:
        """Return the report for notebooks, or the beginning of a long one."""
        from jaxprof.report import markdown
        from jaxprof.report.session_text import to_text

        text = to_text(self)
        if len(text) <= _LONGEST_IN_NOTEBOOKS:
            return markdown(text)
        return markdown(text[:_LONGEST_IN_NOTEBOOKS].rpartition("\n")[0]) + "\n\n`print(session)` shows all of it."

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print in IPython: the report if a line returns the session, the short form inside a list."""
        alone = not cycle and len(printer.stack) == 1
        printer.text(str(self) if alone else repr(self))

    def __repr__(self) -> str:
        states = ", ".join(f"{run.label}: {run.shown.status}" for run in self.runs.values())
        return f"<jaxprof.Session {self.header.session} [{states}]>"


def load(path: str | Path) -> Session:
    """Load the session in a file, even one that was interrupted. Raises FileRefusedError if it is not a session, and
    UsageError for a URL."""
    return load_file(path_here(path, "`jaxprof open URL` and the other commands fetch it."), Session)


def load_hlo(path: str | Path) -> list[ModuleStages]:
    """Return the modules at `path`: HLO text or proto, also `.gz`; a folder that XLA dumped into; a session; a profile.

    Each has a `label`, its `stages` (`hlo`, `hlo_before`, and for a session `stablehlo`, `jaxpr`), `text(stage)` and
    `module()`, whose kernels `kernels` of `jaxprof.hlo.kernels.kernels` returns. If only the text from before XLA's
    passes was dumped, that is the module.

    Raises FileRefusedError if there is no HLO.
    """
    from jaxprof.analysis.kernels import open_hlo

    def read_profile(path: Path) -> FoldedSession:
        from jaxprof.base.reaper import TemporaryFolder
        from jaxprof.runner.profiles import session_name, session_of_profile

        with TemporaryFolder("profile") as folder:
            return session_of_profile(path, folder / session_name(path))

    return open_hlo(path_here(path, "`jaxprof hlo URL` fetches it."), read_profile)[0]


def profile(
    fn: Callable[..., Any],
    *args: Any,
    name: str = "",
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    budget_seconds: float = 2.0,
    max_seconds: float | None = None,
    keep_constants: bool = False,
    **kwargs: Any,
) -> Session:
    """Measure `fn(*args, **kwargs)` phase by phase in this process, compiled by `jax.jit` unless it already is.

    `args` and `kwargs` are what `fn` takes: arrays, scalars, and nested tuples, lists and dicts of them; to
    pass an argument that is named like an option of this function, use `functools.partial`. `static_argnums` and
    `static_argnames` are those of `jax.jit`. Times are in seconds.

    If `fn` fails, the session has a failed run with the traceback, and nothing is raised. Raises UsageError for an
    object that is not callable, a static argument that `fn` does not have, or a budget that is not above 0.
    """
    from jaxprof.engine.measure.inprocess import device_of, lay_out_call, measure_call

    if not callable(fn):
        raise UsageError(f"profile needs a function, not {type(fn).__name__}", "jaxprof.profile(fn, *args, **kwargs)")
    if budget_seconds <= 0 or (max_seconds is not None and max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "budget_seconds=2.0 is the default.")
    refuse_to_run("jaxprof.profile")
    call = lay_out_call(fn, args, kwargs, name=name, static_argnums=static_argnums, static_argnames=static_argnames)
    spec = RunSpec(
        workload=call.name,
        variant="jit",
        how="jit",
        device=device_of(call.arguments),
        budget_seconds=budget_seconds,
        max_seconds=max_seconds,
        keep_constants=keep_constants,
        compilation_cache=True,  # the caller's own setting
        check=False,
    )
    session = Session(new_header(header_environment(), command=[]))
    measure_call("r1", spec, call.function, call.arguments, session.apply, call.static)
    session.apply(SessionClosed(monotonic_seconds=time.monotonic()))
    return session


def header_environment() -> dict[str, Any]:
    """Return the machine's facts in the session's header."""
    from jaxprof.devices.inventory.machine import environment_facts

    return dict(environment_facts())
