"""What `jaxprof baseline save` keeps: programs that are compiled now into one session, or a copy of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxprof.analysis.opener import Kind, kind_of
from jaxprof.cli.hlo_target import CompileOptions, compile_session, find_modules
from jaxprof.cli.target import is_compiled_now
from jaxprof.errors import StorageError, UsageError
from jaxprof.session import Session
from jaxprof.session.log import Library, load
from jaxprof.session.log.baselines import Baselines
from jaxprof.workloads import names


@dataclass(frozen=True, slots=True)
class SavedBaseline:
    """What was done."""

    path: Path
    dropped: int
    """How many decisions were about the baseline that it replaces."""


def save_baseline(name: str, targets: Sequence[str], options: CompileOptions, *, replace: bool) -> SavedBaseline:
    """Keep the targets as the baseline `name`. Raises JaxprofError; what is there stays then."""
    baselines = Baselines()
    _refuse_reserved(name)
    dropped = len(baselines.decisions(name)) if replace and baselines.search(name) else 0
    compiled = [target for target in targets if is_compiled_now(target)]
    if compiled and len(compiled) < len(targets):
        raise UsageError("a baseline is of programs that are compiled now, or of a session", "Give one or the other.")
    if len(targets) > 1 and not compiled:
        raise UsageError("a baseline is a copy of one session", "Save each under a name of its own.")
    if compiled:
        with baselines.replacing(name, replace=replace) as path:
            compile_session(list(dict.fromkeys(targets)), _with(options, path))
            if not path.exists() or not load(path, Session).complete:
                raise StorageError(f"the baseline {name} could not be written to {baselines.folder}")
        return SavedBaseline(baselines.path(name), dropped)
    find_modules(targets[0], None, None, options)  # the same refusals: no session, options without an effect
    source = Library().find(targets[0])
    if kind_of(source) is not Kind.SESSION:
        raise UsageError(f"{targets[0]} is no session", "jaxprof import makes one of a profile.")
    return SavedBaseline(baselines.save(name, source, replace=replace), dropped)


def _with(options: CompileOptions, path: Path) -> CompileOptions:
    return replace(options, out=path, force=True)


def _refuse_reserved(name: str) -> None:
    """Raises UsageError for a name that `--base` reads as something else."""
    if name in names() or name == "last":
        what = "a workload" if name in names() else "the newest session"
        raise UsageError(f"{name!r} cannot be the name of a baseline: --base {name} is {what}", "Give another name.")
