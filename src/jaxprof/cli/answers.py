"""Answers that several commands give about a session: its JSON, the commands that are worth running next, where the
session is written, and what is printed about that.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.options import words_given
from jaxprof.cli.output import note, print_json, with_urls
from jaxprof.units import counted

if TYPE_CHECKING:
    from jaxprof.job_process import JobProcess
    from jaxprof.session import Session
    from jaxprof.session.log import LogWriter


def command_line(*words: object) -> str:
    """Return `jaxprof` with these words, as a shell takes it, with an answer in JSON."""
    return shlex.join(["jaxprof", *(with_urls(str(word)) for word in words), "--format", "json"])


def in_json(line: str) -> str:
    """Return a command line for people, such as `jaxprof run ... && jaxprof compare ...`, with answers in JSON."""
    return " && ".join(map(_in_json, line.split(" && ")))


def _in_json(line: str) -> str:
    program, command, *words = shlex.split(line)
    plain = command == "script" and words[:1] == ["--plain"]  # prints text, not JSON
    return shlex.join([program, command, "--format", "json", *words[plain:]])


def same_command(*more: str, without: Collection[str] = ()) -> str:
    """Return the present command line with an answer in JSON, with `more` words, and without the named parameters.
    Views and bounds are not repeated."""
    command = click.get_current_context().command_path.split()[1:]
    return command_line(*command, *words_given(without={"form", *without}), *more)


def next_of_session(session: Session, place: str | Path) -> list[str]:
    """Return the commands that say more about a session than its summary does, if they have something to say."""
    from jaxprof.session.log import Library

    runs, place = session.runs.values(), Library().name_of(Path(place))
    next_commands = [command_line("explain", place)]
    if any(run.plan.how == "program" for run in runs):
        next_commands += [command_line("open", place, f"--{view}") for view in ("findings", "compiles")]
    if any(run.measured for run in runs):
        next_commands.append(command_line("open", place, "--kernels"))
    elif any("hlo" in run.texts for run in runs):
        next_commands.append(command_line("hlo", place, "--kernels"))
    if any("hlo" in run.texts for run in runs):
        next_commands.append(command_line("hlo", place, "--findings"))
    if any(check.verdict != "good" for run in runs for trust in run.trust.values() for check in trust.rows):
        next_commands.append(command_line("open", place, "--trust"))
    if any(run.compile_passes is not None for run in runs):
        next_commands.append(command_line("open", place, "--compile"))
    return [*next_commands, command_line("open", place, "--full")]


def print_session(session: Session, place: str | Path | None, *, live: bool = False) -> None:
    """Print the whole session as an answer in JSON. `place`: where it is; None if it could not be kept."""
    from jaxprof.report.json import to_dict
    from jaxprof.session.log.state import url_of

    data = to_dict(session, live=live)
    data["session"]["path"] = None if place is None else url_of(Path(place)) or str(Path(place).absolute())
    print_json("session", data, [] if place is None else next_of_session(session, place))


def print_conclusion(session: Session, place: Path | None, write: Callable[[str], None]) -> None:
    """Print the conclusion of a session in the three lines of `report.conclusion`. `place`: where the session is; None
    if it could not be kept."""
    from jaxprof.analysis.explain.derive import explanation
    from jaxprof.report.conclusion import conclusion, conclusion_lines
    from jaxprof.session.log import Library

    explained = explanation(session, "last" if place is None else Library().name_of(place))
    found = conclusion(explained)
    for line in conclusion_lines(found if place is not None else replace(found, command="")):
        write(line)


def print_imported(session: Session, place: Path, form: str) -> None:
    """Print where the session is that was made of a profile, and the session itself if the format is JSON."""
    note(f"session: {place} ({counted(len(session.runs) - 1, 'program')})")
    if form == "json":
        print_session(session, place)


def new_writer(out: Path | None, *, replace_existing: bool = False, process: JobProcess | None = None) -> LogWriter:
    """Return a new log in `out`, or among the kept sessions. `process`: the process of a job that it records. Raises
    UsageError or StorageError before anything runs."""
    from jaxprof.devices.inventory.environment import environment_facts
    from jaxprof.session.log import Library, LogWriter, new_header

    header = new_header(environment_facts())
    if process is not None:
        header = replace(header, process_index=process.index, process_count=process.count, job=process.job)
    if out is not None:
        _refuse_folder(out)
    path = out if out is not None else Library().new_path(header)
    return LogWriter(header, path, replace_existing=replace_existing and out is not None)


def clear_place(out: Path, *, replace_existing: bool) -> None:
    """Check that a new session can be written to `out`, which another process does later. Raises like `new_writer`."""
    _refuse_folder(out)
    if replace_existing:
        out.unlink(missing_ok=True)
    else:
        refuse_existing(out)


def refuse_existing(out: Path) -> None:
    """Raises StorageError if `out` exists."""
    from jaxprof.errors import StorageError

    if out.exists():
        raise StorageError(f"{out} already exists", "Give another name, or --force to replace it.")


def _refuse_folder(out: Path) -> None:
    from jaxprof.errors import UsageError

    if out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'session.jaxprof'}")


def report_location(writer: LogWriter, note: Callable[[str], None]) -> bool:
    """Print where the session is. If it could not be written there, save it in another folder and return False."""
    from jaxprof.errors import StorageError
    from jaxprof.session.log.state import url_of
    from jaxprof.session_names import EXTENSION

    if writer.failure is None:
        place = writer.path and (url_of(writer.path) or writer.path)
        note(f"session: {place}" + (f" ({writer.changed})" if writer.changed else ""))
        return not writer.is_displaced
    for folder in _other_places(writer.path):
        target = folder / f"jaxprof-{writer.header.session}{EXTENSION}"
        try:
            writer.move_to(target)
        except StorageError:
            continue
        writer.close()
        note(f"session: {target} (it could not be written to the requested place; --out FILE names another)")
        return False
    note("the session could not be kept: free some space, or name another place with --out FILE, and run again")
    return False


def _other_places(path: Path | None) -> Sequence[Path]:
    taken = path.parent.absolute() if path is not None else None
    return [folder for folder in (Path.cwd(), Path(tempfile.gettempdir())) if folder.absolute() != taken]
