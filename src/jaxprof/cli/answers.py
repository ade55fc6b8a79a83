"""Answers that several commands give about a session or a job: its JSON, the commands that are worth running next,
where the session is written, and what is printed about that.
"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from jaxprof.base.values import frozen
from jaxprof.cli.options import words_given
from jaxprof.cli.output import SIGNAL_BASE, ExitCode, no_form, print_csv, print_json, print_lines, print_text, row_limit
from jaxprof.session.files import lasting_name, path_word, url_of, with_urls

if TYPE_CHECKING:
    from jaxprof.jobs.findings import JobFigures
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.sides import SideOptions, Sides
    from jaxprof.session import LogWriter, Session


def command_line(*words: object) -> str:
    """Return `jaxprof` with these words, as a shell takes it, with an answer in JSON."""
    texts = (path_word(word) if isinstance(word, Path) else str(word) for word in words)
    return shlex.join(["jaxprof", *map(with_urls, texts), "--format", "json"])


def same_command(*more: str, without: Collection[str] = ()) -> str:
    """Return the current command line with an answer in JSON, with `more` words, and without the named parameters.
    Views and bounds are not repeated."""
    command = click.get_current_context().command_path.split()[1:]
    return command_line(*command, *words_given(without={"form", *without}), *more)


def print_facts(kind: str, row: Any, next_commands: Sequence[str] = (), *, limit: int | None = None) -> None:
    """Print an answer of that kind: what its facts say of `row`, or of the values of a dictionary by their keys."""
    from jaxprof.facts import recorder
    from jaxprof.facts.answers import facts_of_answer

    read = SimpleNamespace(**row) if isinstance(row, dict) else row
    print_json(kind, recorder(facts_of_answer(kind))(read), next_commands, limit=limit)


def print_answer(form: str, kind: str, row: Any, lines: Iterable[str], next_commands: Sequence[str] = ()) -> None:
    """Print an answer of that kind: as JSON, as `print_facts` does, else the lines for people."""
    if form == "json":
        print_facts(kind, row, next_commands)
    else:
        print_lines(lines)


def next_of_session(session: Session, path: str | Path) -> list[str]:
    """Return the commands that say more about a session than its summary does, if they have something to say."""
    runs, path = session.runs.values(), lasting_name(Path(path))
    next_commands = [command_line("explain", path)]
    if any(run.plan.how == "program" for run in runs):
        next_commands += [command_line("open", path, f"--{view}") for view in ("findings", "compiles")]
    if any(run.measured for run in runs):
        next_commands.append(command_line("open", path, "--kernels"))
    elif any("hlo" in run.texts for run in runs):
        next_commands.append(command_line("hlo", path, "--kernels"))
    if any("hlo" in run.texts for run in runs):
        next_commands.append(command_line("hlo", path, "--findings"))
    if any(check.verdict != "good" for run in runs for trust in run.trust.values() for check in trust.rows):
        next_commands.append(command_line("open", path, "--trust"))
    if any(run.compile_passes is not None for run in runs):
        next_commands.append(command_line("open", path, "--compile"))
    return next_commands if row_limit(1) is None else [*next_commands, command_line("open", path, "--full")]


def print_session(session: Session, path: str | Path | None) -> None:
    """Print the whole session as an answer in JSON. `path`: where it is; None if it could not be kept."""
    from jaxprof.facts.session_tree import to_dict

    data = to_dict(session)
    data["session"]["path"] = None if path is None else url_of(Path(path)) or str(Path(path).absolute())
    print_json("session", data, [] if path is None else next_of_session(session, path))


def print_conclusion(session: Session, path: Path | None, write: Callable[[str], None], *, indent: int = 0) -> None:
    """Print the conclusion of a session in the three lines of `report.conclusion`. `path`: where the session is; None
    if it could not be kept. `indent`: columns that `write` puts before each line."""
    from jaxprof.report import WIDTH
    from jaxprof.report.conclusion import closing_lines

    for line in closing_lines(session, path, WIDTH - indent):
        write(line)


@frozen
class Outcome:
    session: Session
    path: Path | None
    """Where the session is; None if it could not be kept."""
    exit_code: int
    """What the command ends with: 1 if a run failed, or if the session is not where it should be; 130 after ctrl+c."""


def carry_out(
    planned: Sequence[PlannedRun],
    interpreter: Interpreter,
    writer: LogWriter,
    notes: Iterable[str],
    max_silence_seconds: float,
) -> Outcome:
    """Print `notes`, run the plan to its end, and print where the session is. Ends the command if a signal other than
    ctrl+c ended the plan."""
    from jaxprof.runner.headless import HeadlessRuns, Progress
    from jaxprof.runner.session_recorder import report_location

    progress = Progress(sys.stderr)
    for each in notes:
        progress.note(each)
    runs = HeadlessRuns(writer, interpreter, progress)
    runs.scheduler.max_silence_seconds = max_silence_seconds
    runs.work(planned)
    kept = report_location(writer, progress.note)
    session, stopped_by = runs.scheduler.session, runs.stopped_by
    if stopped_by is not None and stopped_by != signal.SIGINT:
        raise click.exceptions.Exit(SIGNAL_BASE + stopped_by)
    ended_well = kept and all(run.status == "ok" or run.plan.trial for run in session.runs.values())
    code = ExitCode.OK if ended_well else ExitCode.FAILED
    return Outcome(session, writer.kept_path, code if stopped_by is None else ExitCode.INTERRUPTED)


def measure(read: Sides, folder: Path, words: Mapping[str, Any], **more: Any) -> Outcome:
    """Measure the sides, A first, and keep the session. `words`: parameters of the command, with those of `TIMED`;
    `more`: options of all sides, in place of these. Raises UsageError for sides that do not fit, before anything
    runs."""
    from jaxprof.runner.sides import plan_comparison

    sides, notes = read
    return measure_group(
        plan_comparison(sides, side_options(words, folder, **more), notes), sides[0].interpreter, words
    )


def side_options(words: Mapping[str, Any], folder: Path, **more: Any) -> SideOptions:
    """Return the options of all sides, as the parameters of the command and `more` in place of these give them."""
    from jaxprof.runner.sides import SideOptions

    given = {each.name: words[each.name] for each in fields(SideOptions) if each.name in words}
    return SideOptions(**{**given, **more}, folder=folder)


def measure_group(planned: Sequence[PlannedRun], interpreter: Interpreter, words: Mapping[str, Any]) -> Outcome:
    from jaxprof.runner.session_recorder import new_writer

    comparison = planned[0].comparison
    lines = [f"note: {each}" for each in comparison.notes] if comparison is not None else []
    writer = new_writer(words["out"], replace_existing=words["force"])
    return carry_out(planned, interpreter, writer, lines, words["max_silence_seconds"])


def print_job(job: JobFigures, form: str) -> None:
    """Print the job in that form. Raises UsageError for a form that it does not have."""
    from jaxprof.report import hosts

    if form == "json":
        late = dict.fromkeys(finding.index for finding in job.findings if finding.index is not None)
        sessions = {process.index: lasting_name(Path(process.path)) for process in job.processes}
        print_facts("job", job, [command_line("explain", sessions[index]) for index in late])
    elif form == "csv":
        print_csv(hosts.process_table(job))
    elif form == "text":
        print_text(hosts.to_text(job))
    else:
        raise no_form("a job", form, "text", "json", "csv")
