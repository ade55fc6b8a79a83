"""Findings: what is worth changing in programs, HLO, measured runs, captures, jobs and comparisons, and the
explanation that is made of them.

Each is a check with its title, its meaning and its fix in one place; `catalogue` lists all of them, and `derive` makes
the explanation. `program_result` is a program with its findings, `compare` what differs between two sessions, with the
limits of `gate` on it.

Here: an explanation as a value, with what remains unknown and why, and the shell commands that verify a fix or fill a
gap.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from jaxprof.analysis.target import command
from jaxprof.base.values import field, frozen
from jaxprof.events import SourceLocation
from jaxprof.session.files import path_word

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events.finding import Finding
    from jaxprof.jobs.findings import JobFigures
    from jaxprof.session import Run, Session


_FLAGS = ("--force", "--full", "--capture", "--plain")
_OUTPUT = ("-o", "--out", "--force", "--full", "--format", "--limit")
"""Options of a comparison that say where its answer goes, and in which form."""
_STARTED = ("script", "module")
"""Ways in which jaxprof itself started a program, and can start it again."""


def record_again(program: ProgramResult, *options: str) -> str:
    """Return the command that records the program again with these options; empty for one that records itself, or that
    came from standard input."""
    if program.how not in _STARTED or program.argv[:1] in ((), ("-",)):
        return ""
    path, *arguments = program.argv
    return command("script", "--plain", *options, path if path == "-m" else path_word(path), *arguments)


def program_verification(name: str, program: ProgramResult) -> str:
    """Return the command that records the changed program and compares it with this session."""
    again = record_again(program)
    compared = command("compare", name, "last")
    return f"{again} && {compared}" if again else compared


def is_command_of(session: Session, proposed: str) -> bool:
    """Return whether a proposed command is the one that recorded the session, wherever its answer went."""
    apart = {*_OUTPUT, "--plain"}
    recorded, words = session.header.command[1:], shlex.split(proposed)[1:]
    return bool(words) and [*_without(apart, recorded)] == [*_without(apart, words)]


def comparison_command(session: Session, *options: str) -> str:
    """Return the command of the session's comparison with these options; empty if the session does not hold it. Its
    answer goes where answers go by default: the file that the first one wrote is there."""
    name, *words = session.header.command[1:] or [""]
    if name not in ("ab", "compare"):
        return ""
    return command("compare", *_without({*_OUTPUT, *options[:1]}, words), *options)


def _without(left_out: Collection[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line without these options and their values, which may be attached: `--out=FILE`,
    `-oFILE`."""
    rest = iter(words)
    for word in rest:
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if option not in left_out:
            yield word
        elif option == word and option not in _FLAGS:
            next(rest, None)


def run_verification(session: Session, name: str, run: Run) -> str:
    """Return the command that measures a changed function. In a repository it compares the function with the committed
    one, otherwise it measures the run again; for a side, the comparison's command."""
    plan = run.plan
    if plan.side:
        return comparison_command(session)
    if plan.how == "compile":
        from jaxprof.analysis.runs.ceilings import device_elsewhere

        where = ("--device" if device_elsewhere(run) is None else "--for", plan.device)
        variant = () if plan.target else ("--variant", plan.variant)
        return command("hlo", plan.target or plan.workload, *variant, *_argument_options(run), *where, "--findings")
    file, colon, _ = plan.target.rpartition(":")
    if bool(colon) and file.endswith(".py") and any((folder / ".git").exists() for folder in Path(file).parents):
        return command("compare", "--git", "HEAD", *_argument_options(run), "--device", plan.device, plan.target)
    return f"{command('run', '--from', f'{name}:{run.id}')} && {command('compare', name, 'last')}"


def _argument_options(run: Run) -> tuple[str, ...]:
    return tuple(word for argument in run.plan.arguments for word in ("--arg", argument))


Subject: TypeAlias = Literal["program", "job", "runs", "comparison", "profile", "message", "nothing"]
"""What was explained: a recorded program, a job of several processes, measured runs, the sides of `ab`, a profile, an
out-of-memory message, or a session without a run."""
MOST_FINDINGS = 5
MOST_ABSTENTIONS = 4
MOST_MODULES = 16
"""Largest number of programs of one session whose HLO is read: the first ones."""


@frozen
class Abstention:
    """Something that remains unknown, with the reason."""

    code: str
    """Code such as `no_capture` or `no_hlo`, or the code of the warning or trust check that causes the gap."""
    reason: str
    command: str = ""
    """Command that would fill the gap; empty if there is none."""
    from_file: bool = False
    """Whether the command has words of a file that this machine did not record."""
    leads: bool = False
    """Whether it is about much more of the time than any finding, and comes before them."""


@frozen(kw_only=True)
class Explanation:
    """The answer: what to change, most expensive first, and what remains unknown."""

    name: str
    """Name of the session, file or profile in commands."""
    subject: Subject
    findings: tuple[Finding, ...]
    """Findings in order, at most `MOST_FINDINGS` unless the caller raised that limit."""
    left_out: int
    """Number of further findings."""
    abstentions: tuple[Abstention, ...]
    """The first `MOST_ABSTENTIONS` gaps."""
    session: Session | None = field(default=None, repr=False)
    job: JobFigures | None = field(default=None, repr=False)
    """The job that was explained, for a job."""

    @property
    def leading(self) -> Abstention | None:
        """Sentences before all findings."""
        return next((each for each in self.abstentions if each.leads), None)

    @property
    def from_file(self) -> bool:
        """Whether its words, commands among them, come from a file that this machine did not record. Those of a job
        always do: its sessions lie in a folder, and its commands name nothing but their paths."""
        return self.session is None or self.session.from_file

    @property
    def is_unmeasured(self) -> bool:
        if self.session is None or self.job is not None:
            return False
        # HLO counts only of a run that was to be compiled: one that was to be timed has it long before its first time.
        return not any(
            (run.program and run.program.is_seen)
            or run.samples("run")
            or run.captures
            or (run.texts and run.plan.how == "compile")
            for run in self.session.runs.values()
        )

    @property
    def nothing_found(self) -> str:
        """Text shown in place of the first finding, if there is none."""
        if self.job is not None and self.job.processes:
            alone = command("explain", path_word(self.job.processes[0].path))
            return f"no finding about the job; of one process: {alone}" if alone else "no finding about the job"
        if self.is_unmeasured:
            return "nothing was measured, so there is nothing to report"
        return "no finding above its threshold"


SMALL = 0.05
"""Share of what a finding is about below which it comes last, and does not lead."""
_AT_MOST_WEIGHT = 0.5
"""Weight of an upper bound on the saved time; it ranks behind a certain cost of the same size."""


def subject_share(finding: Finding, program: ProgramResult | None = None) -> float | None:
    """Return the share of what a finding is about: of the loop of a program, which may be a small part of its wall
    time; else of its scope. None if that is unknown."""
    if finding.scope != "program" or program is None or finding.seconds is None:
        return finding.share
    whole = min(program.wall_seconds, program.hot.seconds or program.wall_seconds)
    return finding.seconds / whole if whole > 0 else None


def rank(finding: Finding, program: ProgramResult | None = None) -> tuple[float | str, ...]:
    """Return the sort key of a finding: faults first, what was tried and is faster, then by cost in time and in bytes;
    then those about a compilation, whose seconds are no part of a call's; last those that concern next to nothing of
    what they are about, such as the loop of `program`."""
    share = subject_share(finding, program)
    seconds = finding.saves_seconds if finding.saves_seconds is not None else finding.seconds
    weight = (seconds or 0.0) * (_AT_MOST_WEIGHT if finding.at_most else 1.0)
    small = share is not None and share < SMALL and not finding.fault
    first = finding.code not in ("program_failed", "standstill", "unfinished_compile")
    untried = finding.code != "tried_and_faster"
    once = finding.scope == "compile"
    return not finding.fault, first, untried, small, once, -weight, -(finding.bytes or 0), finding.code, finding.run


_LONGEST_LINE = 100


def code_line(location: SourceLocation | None, session: Session) -> str:
    """Return the line without its indentation; empty if the file is not here as the session recorded it."""
    if location is None or location.line is None:
        return ""
    from jaxprof.base.recorded_source import recorded_lines  # a session without lines of source needs no reader

    lines = recorded_lines(location.file, location.line, session.sources)
    return lines[-1][1].strip()[:_LONGEST_LINE] if lines else ""
