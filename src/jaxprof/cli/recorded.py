"""Read the session at a `Target`, or the profile as a session. What a word names is decided in `analysis.target`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jaxprof.analysis.target import Kind, Target, wrong_kind
from jaxprof.base.errors import FileRefusedError, not_found
from jaxprof.base.files import private_folder, with_home
from jaxprof.cli.options import profile_part, refuse
from jaxprof.cli.output import note, write_whole
from jaxprof.session import Session
from jaxprof.session.files import EXTENSION, lasting_name


def session_of(target: Target) -> Session | None:
    """Return the session at the target; None for what is compiled now, and for HLO and profiles. Raises UsageError if
    there is nothing, FileRefusedError for the folder of a job."""
    if target.is_code or target.kind is Kind.REVISION:
        return None
    path = target.file
    if target.kind not in (Kind.SESSION, Kind.JOB):
        return None
    from jaxprof.session import load

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
        from jaxprof.session import load

        return load(self.path, Session)


def import_to(path: Path, target: Path, views: tuple[str, ...] = (), *, replace: bool = False) -> Session:
    """Read the profile at `path`, or the part of it that the command chooses, into a session file at `target`, and
    return the session. On failure, no file is left. Raises UsageError, FileRefusedError or StorageError."""
    from jaxprof.base.operating_system import raise_on_signals
    from jaxprof.runner.headless import Progress
    from jaxprof.runner.profiles import plan_profile, session_of_profile

    planned = plan_profile(path, *profile_part(), views)
    private_folder(target.parent)
    progress = Progress(sys.stderr)
    try:
        with raise_on_signals(), write_whole(target, force=replace) as partial:
            return session_of_profile(path, partial, progress.take, planned=planned)
    finally:
        progress.end()


@contextmanager
def open_recorded(target: Target, views: tuple[str, ...] = ()) -> Iterator[Recorded]:
    """Yield the session at the target; a profile is read as one into a temporary file, with what these `views` need.
    Raises JaxprofError, also if options of a profile were given for something else."""
    path, word, run = target.path, target.word, target.run or None
    if path is None:
        from jaxprof.session import Library

        known = [path.name.removesuffix(EXTENSION) for path in Library().paths()[:20]]
        raise wrong_kind(target, "a session") or not_found("session", word, known)
    if target.kind is Kind.HLO and (error := wrong_kind(target, "a session or a profile")) is not None:
        raise error
    if path.suffix == ".py" and path.is_file():
        raise FileRefusedError(f"{word} is a program that has not been recorded", f"jaxprof script {word} records it.")
    if target.kind is Kind.PROFILE:
        from jaxprof.base.reaper import TemporaryFolder
        from jaxprof.runner.profiles import session_name

        with TemporaryFolder("profile") as folder:
            made = folder / session_name(path)
            yield Recorded(path, made, str(path), import_to(path, made, views), run)
        return
    why = f"chooses a part of a profile, and {word} is not a profile"
    refuse(("profile_run", "host"), why, "Leave it out.")
    if path.is_dir():
        from jaxprof.session.lines import one_session_needed

        raise one_session_needed(path)

    name, newer = lasting_name(path), target.newer_job
    by_script = path != with_home(word) and word not in path.name and word != "last"
    if by_script or newer is not None or (word == "last" and sys.stderr.isatty()):
        from jaxprof.session.library import read_entry

        job = f"; the job {newer.name} is newer, and one session is needed" if newer is not None else ""
        note(f"{word}: {name}, of {', '.join(read_entry(path).workloads) or 'no run'}{job}")
    yield Recorded(path, path, name, run=run)
