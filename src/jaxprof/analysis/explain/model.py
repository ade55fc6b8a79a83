"""An explanation as a value: findings with their cost and evidence, what cannot be said, with the reason, and what
trying a fix showed; what can be tried from outside, so that nobody's files are edited; and the commands that
verify a fix or fill a gap, as they are typed in a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from jaxprof.events import SourceLocation
from jaxprof.files import is_as_recorded
from jaxprof.redaction import REDACTED
from jaxprof.session.log.state import with_urls

if TYPE_CHECKING:
    from jaxprof.analysis.finding import Sentence
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.session import Run, Session
    from jaxprof.stats import TimeComparison

_STARTED: Final = ("script", "module")
"""Programs that jaxprof started itself, and can start again."""


def command(*words: str) -> str:
    """`jaxprof` and these words, each quoted where a shell would not take it as it is; empty where a word was not
    kept, because nobody could type it."""
    if any(REDACTED in word for word in words):
        return ""
    return shlex.join(("jaxprof", *(with_urls(word) for word in words)))


def record_again(program: ProgramResult, *options: str) -> str:
    """Records the program once more, with these options; empty for a program that records itself."""
    if program.how not in _STARTED or not program.argv:
        return ""
    return command("script", "--plain", *options, *program.argv)


def program_verified(name: str, program: ProgramResult) -> str:
    """Records the changed program, and compares it with this session."""
    again = record_again(program)
    compared = command("compare", name, "last")
    return f"{again} && {compared}" if again else compared


def run_verified(name: str, run: Run) -> str:
    """Measures a changed function beside the committed one where there is a repository, else the run once more."""
    plan = run.plan
    if plan.how == "compile":
        from jaxprof.analysis.ceilings import device_elsewhere

        elsewhere = ("--for", plan.device) if device_elsewhere(run) is not None else ()
        variant = () if plan.target else ("--variant", plan.variant)
        return command("hlo", plan.target or plan.workload, *variant, *_given(run), *elsewhere, "--findings")
    if not plan.side and _is_committed(plan.target):
        device = ("--device", plan.device) if plan.device != "cpu:0" else ()
        return command("compare", "--git", "HEAD", *_given(run), *device, plan.target)
    again = command("run", "--from", name if plan.side else f"{name}:{run.id}")
    return f"{again} && {command('compare', name, 'last')}"


def _given(run: Run) -> tuple[str, ...]:
    return tuple(word for argument in run.plan.arguments for word in ("--arg", argument))


def _is_committed(target: str) -> bool:
    """Whether a function stands in a file of a git repository."""
    file, colon, _ = target.rpartition(":")
    return bool(colon) and file.endswith(".py") and any((folder / ".git").exists() for folder in Path(file).parents)


Subject: TypeAlias = Literal["program", "job", "runs", "comparison", "profile", "hlo", "nothing"]
"""What was explained: a recorded program, a job of several processes, measured runs, the sides of `ab`, a profile, HLO
without a session, or a session without a run."""
Scope: TypeAlias = Literal["program", "call", "compile", "profile", "module"]
"""What a cost is a part of: the wall time of a program, one call of a measured function, one compile,
the devices' time in a
profile, or one run of a compiled module."""
MOST_FINDINGS: Final = 5
MOST_ABSTENTIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCost:
    """What a finding costs. None is unknown, which is not 0."""

    scope: Scope
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of `seconds`; None where it is exact, and where its error is unknown."""
    bytes: int | None = None
    """Traffic of one run of the module; memory that is `held`."""
    held: bool = False
    """Whether `bytes` is memory."""
    share: float | None = None
    """Share of its scope, in 0..1."""
    saves_seconds: float | None = None
    """How much of `seconds` the change would have saved, an estimate; None: unknown."""
    estimate: bool = False
    """Whether `seconds` was derived rather than announced or timed."""
    at_most: bool = False
    """Whether `seconds` is the whole time of kernels of which the change saves only a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFinding:
    """One thing that is worth changing, whichever source it comes from."""

    sentence: Sentence
    """What its check has said."""
    cost: FindingCost
    verify: str
    """The command that shows whether the change helped."""
    run: str = ""
    """The id of the run that it is about; of HLO without a session the module's name."""
    also: tuple[str, ...] = ()
    """More runs that have it."""
    where: SourceLocation | None = None
    directory: str = ""
    """The folder that makes `where` short."""
    code_line: str = ""
    """The text of the line, where the file is here and has not been changed since."""
    kernels: tuple[str, ...] = ()
    """Names of kernels or instructions in the run's HLO, those with the most weight first."""
    function: str = ""
    """The function in the compile ledger."""
    compilations: int = 0
    """How many rows of the ledger it rests on."""
    fault: bool = False
    """Whether it makes the figures of its run meaningless: such findings come first."""
    mechanical: str = ""
    """What `--try` changes to measure the fix; empty where the fix is a change of the program."""
    trial: FixTrial | None = None
    """What that showed; None where it was not asked for."""
    process: int | None = None
    """Of a job: which of its processes; else None."""
    host: str = ""
    """Where that process ran."""

    @property
    def code(self) -> str:
        """An entry of the catalogue."""
        return self.sentence.code

    @property
    def message(self) -> str:
        """The sentence, with its figures."""
        return self.sentence.message

    @property
    def fix(self) -> str:
        """What to change, and where."""
        return self.sentence.advice


@dataclass(frozen=True, slots=True)
class Abstention:
    """Something that cannot be said."""

    code: str
    """`no-capture`, `no-hlo`, ..., or the code of the warning or trust row that forbids it."""
    reason: str
    command: str = ""
    """What would fill the gap; empty where no command can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer first: what to change, the most expensive first, and what is not known."""

    name: str
    """The session, file or profile, as commands take it."""
    subject: Subject
    findings: tuple[RankedFinding, ...]
    """At most `MOST_FINDINGS`."""
    left_out: int
    """How many more there are."""
    abstentions: tuple[Abstention, ...]
    """At most `MOST_ABSTENTIONS`."""
    session: Session | None = field(default=None, repr=False)
    modules: tuple[ModuleStages, ...] = field(default=(), repr=False)
    """Of HLO without a session."""
    job: JobFigures | None = field(default=None, repr=False)
    """Of a job."""

    @property
    def nothing_found(self) -> str:
        """What stands where the first finding would, if there is none."""
        runs = self.session.runs.values() if self.session is not None else ()
        if runs and not any(run.program or run.texts or run.series or run.captures for run in runs):
            return "nothing was measured in which something could be found"
        return "no finding above its threshold"


_LONGEST_LINE: Final = 100


def code_line(
    place: SourceLocation | None, recorded_seconds: float | None, sources: Mapping[str, str] | None = None
) -> str:
    """The line without its indentation; empty where the file is not here, is no Python file, or was changed after
    `recorded_seconds` (Unix time), or since its digest in `sources` was taken: the line may be another one by now.

    A session can come from anywhere and name any file; only what looks like Python source is read.
    """
    if place is None or place.line is None or not place.file.endswith(".py") or not recorded_seconds:
        return ""
    if not is_as_recorded(place.file, sources or {}, recorded_seconds):
        return ""
    from jaxprof.hlo.analysis.origin import HloSourceLocation, source_lines

    lines = source_lines(HloSourceLocation(place.file, place.line))
    return lines[-1][1].strip()[:_LONGEST_LINE] if lines else ""


Outcome: TypeAlias = Literal["faster", "slower", "same", "inconclusive", "failed", "not tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersCompared:
    """Whether the changed side computes what the recorded one does."""

    agree: bool | None = None
    """Whether they differ by no more than two ways to compute the same; None: nothing could be compared."""
    relative: float | None = None
    """The largest difference, relative; 0 where all are equal, None where it is unknown."""
    note: str = ""
    """What is not alike, or why nothing could be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixTrial:
    """A fix beside what it replaces, measured in fresh processes."""

    fix: str
    """What the changed side had."""
    reason: str = ""
    """Why it was not tried, or failed; empty where both sides were measured."""
    failed: bool = False
    """Whether the changed side was started and failed."""
    times: TimeComparison | None = None
    """Of the changed side, beside the recorded one."""
    seconds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Of the recorded and of the changed side: the median call of each launch."""
    bytes: tuple[int | None, int | None] | None = None
    """What a call of each holds at once, where the fix is one of memory."""
    numbers: NumbersCompared | None = None
    other_numbers: str = ""
    """Why the fix gives other numbers, where it does."""
    session: str = ""
    """Where its comparison is kept; empty: nowhere."""

    @property
    def outcome(self) -> Outcome:
        """What may be said of the time."""
        if self.times is None:
            return "failed" if self.failed else "not tried"
        return self.times.verdict()

    @property
    def differs(self) -> bool:
        """Whether the numbers are others, and the fix does not explain that: a faster side is no gain then."""
        return self.numbers is not None and self.numbers.agree is False and not self.other_numbers

    @property
    def saved_bytes(self) -> int | None:
        """How much less the changed side holds; None where that is unknown, or not what the fix is for."""
        before, after = self.bytes or (None, None)
        return None if before is None or after is None else before - after

    @property
    def gains(self) -> bool:
        """Whether the fix is faster, or holds less memory without being slower, and nothing speaks against it."""
        if self.differs:
            return False
        return self.outcome == "faster" or (self.outcome in ("same", "inconclusive") and (self.saved_bytes or 0) > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanicalFix:
    """What is changed to try the fix of a finding."""

    title: str
    """What the changed side has, for people."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its processes."""
    donates: bool = False
    """Whether its call donates the arguments that the finding names."""
    other_numbers: str = ""
    """Why its numbers are others, where that is the price of the fix; empty: they have to be the same."""


TRIED: Final[Mapping[str, MechanicalFix]] = {
    "lost-donation": MechanicalFix(title="the arguments that results update donated", donates=True),
    "precise-product": MechanicalFix(
        title="matrix products at the default precision",
        environment={"JAX_DEFAULT_MATMUL_PRECISION": "default"},
        other_numbers="another precision of products gives other numbers",
    ),
}
"""By the code of a finding about a measured function: what its process or its call can be given."""


def fix_of(finding: RankedFinding, subject: Subject) -> MechanicalFix | None:
    """What can be tried of a finding; None where its fix is a change of the program."""
    return TRIED.get(finding.code) if subject == "runs" else None


def mechanical_of(code: str) -> str:
    """What can be tried of the findings of a code; empty where nothing can."""
    fix = TRIED.get(code)
    return fix.title if fix is not None else ""
