"""What several commands answer in JSON about a session, and the commands that an answer names as worth asking next."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.options import words_given
from jaxprof.cli.output import note, print_json, with_urls
from jaxprof.units import counted

if TYPE_CHECKING:
    from jaxprof.session import Session


def command_line(*words: object) -> str:
    """`jaxprof` with these words, as a shell takes it, with an answer in JSON."""
    return shlex.join(["jaxprof", *(with_urls(str(word)) for word in words), "--format", "json"])


def in_json(line: str) -> str:
    """A command line as people are told it, such as `jaxprof run ... && jaxprof compare ...`, with answers in JSON."""
    return " && ".join(map(_in_json, line.split(" && ")))


def _in_json(line: str) -> str:
    program, command, *words = shlex.split(line)
    plain = command == "script" and words[:1] == ["--plain"]  # which prints words
    return shlex.join([program, command, "--format", "json", *words[plain:]])


def same_command(*more: str, without: Collection[str] = ()) -> str:
    """The present command line, with an answer in JSON, with `more` words, and without the parameters named. Views and
    bounds are not repeated."""
    command = click.get_current_context().command_path.split()[1:]
    return command_line(*command, *words_given(without={"form", *without}), *more)


def next_of_session(session: Session, place: str | Path) -> list[str]:
    """The commands that say more about a session than its summary does; only those that have something to say."""
    from jaxprof.session.log import Library

    runs, place = session.runs.values(), Library().name_of(Path(place))
    named = [command_line("explain", place)]
    if any(run.plan.how == "program" for run in runs):
        named += [command_line("show", place, f"--{view}") for view in ("findings", "compiles")]
    if any(run.measured for run in runs):
        named.append(command_line("show", place, "--kernels"))
    elif any("hlo" in run.texts for run in runs):
        named.append(command_line("hlo", place, "--kernels"))
    if any("hlo" in run.texts for run in runs):
        named.append(command_line("hlo", place, "--findings"))
    if any(check.verdict != "good" for run in runs for trust in run.trust.values() for check in trust.rows):
        named.append(command_line("show", place, "--trust"))
    if any(run.compile_passes is not None for run in runs):
        named.append(command_line("show", place, "--compile"))
    return [*named, command_line("show", place, "--full")]


def print_session(session: Session, place: str | Path | None, *, live: bool = False) -> None:
    """Print the whole session as an answer. `place`: where it is; None if it could not be kept."""
    from jaxprof.report.json import to_dict
    from jaxprof.session.log.state import url_of

    data = to_dict(session, live=live)
    data["session"]["path"] = None if place is None else url_of(Path(place)) or str(Path(place).absolute())
    print_json("session", data, [] if place is None else next_of_session(session, place))


def print_imported(session: Session, place: Path, form: str) -> None:
    """Say where the session is that was made of a profile; print it as an answer if that is the form."""
    note(f"session: {place} ({counted(len(session.runs) - 1, 'program')})")
    if form == "json":
        print_session(session, place)
