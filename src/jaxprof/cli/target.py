"""Find out what a word on the command line names, in the same way for every command.

In this order: a URL, which is fetched first; what is at a path (a session, the folder of a job, a profile, HLO, a
program); a function of the user's (`file.py:function`, `module:function`) or a workload (`selu`, `selu:jit`), which is
compiled now; a kept session, by its name, a part of it, or `last`, and the newest one of a script. `gate` reads its
`--base`, which has more meanings.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jaxprof.base.errors import (
    FileRefusedError,
    JaxprofError,
    UsageError,
    is_path,
    missing_file,
    not_found,
    unknown_name,
)
from jaxprof.base.files import with_home
from jaxprof.cli.options import profile_part, refuse
from jaxprof.cli.output import note, written_whole
from jaxprof.session.files import lasting_name

if TYPE_CHECKING:
    from jaxprof.analysis.opener import Kind
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Session

T = TypeVar("T")

_PATIENCE_SECONDS = 2.0
_WITH_RUN = re.compile(r"(.+\.jaxprof(?:\.d)?)(:[^/:]+)")
"""A session and a run of it: `gs://bucket/a.jaxprof:r1`."""
_RUN_OF_SESSION = re.compile(r"(?:last|.+\.jaxprof(?:\.d)?):.+|.+(?<!\.py):r\d+")
"""A run of a session: `last:r1`, `a.jaxprof:selu`; `step.py:r1` is a function."""
_fetched_paths: dict[str, Path] = {}


def local_source(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Replace each URL among the words of an argument that names something to read by the path of its copy, which is
    fetched here, so that commands only see paths. This is a callback of such arguments. Raises UsageError or
    FileRefusedError."""
    if ctx.resilient_parsing or value is None:  # completion fetches nothing
        return value
    return local_word(value) if isinstance(value, str) else tuple(map(local_word, value))


def local_word(word: str) -> str:
    """Return the word itself; for a URL the path of what was fetched from it, and the run that is named behind it.
    Raises UsageError or FileRefusedError."""
    if "://" not in word:
        return word
    from jaxprof.remote.url import is_url

    if not is_url(word):
        return word
    named = _WITH_RUN.fullmatch(word)
    url, run = (named[1], named[2]) if named else (word, "")
    path = _fetched(url)
    if path.suffix == ".py":
        raise UsageError(
            f"{url} is a program, and what comes from a URL is not run", "Download it, read it, and give the file."
        )
    return f"{path}{run}"


def _fetched(url: str) -> Path:
    """Fetch what is at a URL, once in a command, and return the path of the copy."""
    if url in _fetched_paths:
        return _fetched_paths[url]
    from jaxprof.base.operating_system import unwound_by_signals
    from jaxprof.remote.mirror import Mirror, forget_old
    from jaxprof.remote.url import RemotePlace

    forget_old(time.time())
    place = RemotePlace(url)
    due = time.monotonic() + _PATIENCE_SECONDS

    def progress(done: int, count: int) -> None:
        nonlocal due
        if time.monotonic() >= due and done < count:
            due = time.monotonic() + 5 * _PATIENCE_SECONDS
            note(f"fetching {place.shown}: {done} of {count} files")

    with unwound_by_signals():
        mirror = Mirror(place)
        if words := mirror.refresh(progress):
            note(f"note: {words}")
    return _fetched_paths.setdefault(url, mirror.path)


def is_ready(word: str) -> bool:
    """Return whether the word is a path to something that need not be compiled. A folder whose name ends like a
    program's is none."""
    path = with_home(word)
    return os.path.isdir(path) if word.endswith(".py") else os.path.exists(path)


def is_compiled_now(word: str) -> bool:
    """Return whether the word is a workload or a function of the user's, and nothing that is compiled already.
    `last:r1` is a run of a session, although Python could import a module `last` from the current folder."""
    if is_ready(word) or _RUN_OF_SESSION.fullmatch(word):
        return False
    from jaxprof.workloads import is_workload

    return is_workload(word) or ":" in word or word.endswith(".py")


def split_run(word: str, find: Callable[[str], T]) -> tuple[T, str]:
    """Return what `find` makes of the word, and the run that is named after its last colon (`last:r2`), or an empty
    text. A name that has a colon itself takes precedence. Raises what `find` raises."""
    try:
        return find(word), ""
    except JaxprofError:
        name, colon, run = word.rpartition(":")
        if not colon or not name:
            raise
    return find(name), run


def kept(word: str, *, jobs: bool = False) -> Path | None:
    """Return what the word names: a path, the name of a kept session or job, or a script, whose newest session it then
    is, with `jobs` also its newest job; None if there is nothing. Raises UsageError if there are several."""
    from jaxprof.session.log import Library

    library = Library()
    path = library.search(word, jobs=jobs)
    return path if path is not None and path.suffix != ".py" else library.of_script(word, jobs=jobs) or path


def named(word: str) -> tuple[Kind | None, Path]:
    """Return what the word names, a path or the name of a kept session or job, and its path; the kind is None if there
    is nothing of a known kind. Raises UsageError if a part of a profile was chosen, and this is none."""
    from jaxprof.analysis.opener import Kind, kind_of

    path = with_home(word)
    if not is_ready(word):
        with suppress(UsageError):  # ambiguous: the search for a session, which follows, reports that
            path = kept(word, jobs=True) or path
    kind = kind_of(path)
    if kind is not Kind.PROFILE:
        why = f"chooses a part of a profile, and {word} is not a profile"
        refuse(("profile_run", "host"), why, "Leave it out.")
    return kind, path


def existing(word: str) -> Path:
    """Return the path of what the word names, a path or a kept session. Raises UsageError with similar names if there
    is nothing."""
    if is_ready(word):  # a path needs no folder of sessions, nor what reads it
        return with_home(word)
    path = kept(word)
    if path is None:
        from jaxprof.workloads import names

        raise not_found("path, workload or session", word, names())
    return path


def session_at(word: str) -> Session | None:
    """Return the session that the word names, by path or name; None for what is compiled now, and for HLO and profiles.
    Raises UsageError if there is nothing, FileRefusedError for the folder of a job."""
    from jaxprof.analysis.opener import Kind, kind_of
    from jaxprof.session import Session
    from jaxprof.session.log import load

    if is_compiled_now(word) or kind_of(path := existing(word)) not in (Kind.SESSION, Kind.JOB):
        return None
    return load(path, Session)


@dataclass(eq=False)
class Recorded:
    """A session, or a profile that was read as one. It is loaded on first use."""

    given: Path
    """The session's file; for a profile, its own path."""
    path: Path
    """The session's file; for a profile, the file of the session that was made of it."""
    name: str
    """Name by which a later command finds the session: `last` will be another one by then."""
    imported: Session | None = None
    """The session that was made of a profile; None if a session was given."""
    run: str | None = None
    """The run that the word names; None for the whole session."""

    @cached_property
    def session(self) -> Session:
        """The loaded session. Raises FileRefusedError if it cannot be read."""
        if self.imported is not None:
            return self.imported
        from jaxprof.session import Session
        from jaxprof.session.log import load

        return load(self.path, Session)


def import_to(path: Path, target: Path, views: tuple[str, ...] = (), *, replace: bool = False) -> Session:
    """Read the profile at `path`, or the part of it that the command chooses, into a session file at `target`, and
    return the session. On failure, no file is left. Raises UsageError, FileRefusedError or StorageError."""
    from jaxprof.base.files import private_folder
    from jaxprof.base.operating_system import unwound_by_signals
    from jaxprof.runner.headless import Progress
    from jaxprof.runner.profiles import plan_profile, session_of_profile

    planned = plan_profile(path, *profile_part(), views)
    private_folder(target.parent)
    progress = Progress(sys.stderr)
    try:
        with unwound_by_signals(), written_whole(target, force=replace) as partial:
            return session_of_profile(path, partial, progress.take, planned=planned)
    finally:
        progress.end()


@contextmanager
def recorded(word: str, views: tuple[str, ...] = ()) -> Iterator[Recorded]:
    """Yield the session that the word names; a profile is read as one into a temporary file, with what these `views`
    need. Raises JaxprofError, also if options of a profile were given for something else."""
    from jaxprof.analysis.opener import Kind
    from jaxprof.session.log.reader import one_session_needed

    kind, place = named(word)
    if place.suffix == ".py" and place.is_file():
        raise FileRefusedError(f"{word} is a program that has not been recorded", f"jaxprof script {word} records it.")
    if kind is Kind.PROFILE:
        from jaxprof.base.reaper import TemporaryFolder
        from jaxprof.runner.profiles import session_name

        with TemporaryFolder("profile") as folder:
            path = folder / session_name(place)
            yield Recorded(place, path, str(place), import_to(place, path, views))
        return
    if is_ready(word):
        path = place
    else:
        from jaxprof.session.log import Library

        path = kept(word) or Library().find(word)
    name = lasting_name(path)
    if path.is_dir():
        raise one_session_needed(path)
    by_script = path != with_home(word) and word not in path.name and word != "last"
    older = word == "last" and kind is Kind.JOB
    if by_script or older or (word == "last" and sys.stderr.isatty()):
        from jaxprof.session.log.entry import read_entry

        newer = f"; the job {place.name} is newer, and one session is needed" if older else ""
        note(f"{word}: {name}, of {', '.join(read_entry(path).workloads) or 'no run'}{newer}")
    yield Recorded(path, path, name)


def choose(given: Sequence[str], interpreter: Interpreter, variables: Mapping[str, str] | None = None) -> list[str]:
    """Return the ids of the devices to run on, without repeats: those that were `given`; else those of the user's
    setting that are there, with a note on the others; else the one that JAX uses by default, with `variables` laid over
    the environment. Raises UsageError for a device that does not exist or that JAX does not use, with the source of a
    setting."""
    from jaxprof.base.config import read_config
    from jaxprof.runner.device_choice import default_for, find_devices

    config = read_config()
    wanted = given or config.get("devices", tuple) or ()
    if not wanted:
        device, why = default_for(interpreter, {**os.environ, **(variables or {})}.get("JAX_PLATFORMS", ""))
        if why:
            note(f"note: this runs on {device}, because {why}")
        return [device]
    chosen, errors = find_devices(wanted, interpreter)
    if errors and (given or not chosen):
        source = "" if given else f"{config.sources['devices']}: "
        raise UsageError(f"{source}{errors[0].what}", errors[0].hint) from errors[0]
    for error in errors:
        note(f"note: this runs on {', '.join(chosen)}. {config.sources['devices']}: {error.what}")
    return chosen


def command_for(words: Sequence[str], commands: Collection[str], *, in_terminal: bool) -> str:
    """Return the command that `words` stand for, a file and what follows it: `jaxprof FILE`. Runs nothing.

    `open` for a session, a job, a profile or HLO; `hlo` for the last without a terminal, or with options; `script` for
    a file of Python, `run` for `FILE.py:function`. A folder is only looked at, whatever lies in it: somebody else may
    have made it. Raises UsageError for a word that is neither a command nor a path, MissingFileError where there is
    nothing, FileRefusedError for anything else.
    """
    word, *rest = words
    local = local_word(word)
    path = with_home(local)
    if not path.exists():
        place, colon, function = word.rpartition(":")
        if colon and place.endswith(".py") and function.isidentifier():
            return "run"
        raise missing_file(word) if is_path(word) else unknown_name("command", word, commands)
    if local == word and path.suffix == ".py" and path.is_file():  # nothing that was fetched is run
        return "script"
    from jaxprof.analysis.opener import Kind, kind_of

    kind = kind_of(path)
    if kind is None:
        raise FileRefusedError(
            f"{word} is neither a program in Python nor a session, a job, a profile or HLO",
            f"jaxprof script {word} runs the folder as a program."
            if (path / "__main__.py").is_file()
            else "jaxprof FILE.py profiles a program; jaxprof FILE.jaxprof opens a session.",
        )
    return "hlo" if kind is Kind.HLO and (rest or not in_terminal) else "open"
