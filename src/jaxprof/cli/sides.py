"""The sides of a comparison, for `compare`, the times of `gate` and `explain --try`: read from the words of a command
line (target, interpreter and environment of each), and measured in turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.cli.answers import report_location
from jaxprof.cli.git_revision import Revision, checked_out
from jaxprof.cli.output import ExitCode
from jaxprof.cli.selection import choose, find_workloads, read_settings
from jaxprof.cli.target import is_compiled_now, split_variant
from jaxprof.errors import UsageError
from jaxprof.private import kept_value
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.interpreter import Interpreter, find_interpreter
from jaxprof.runner.sides import HALF_WIDTH, ComparedSide, SideOptions, SideTree, plan_comparison, tree_note

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.gate import GateLimit
    from jaxprof.cli.git_revision import FoundBase
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session.log import LogWriter

LABELS = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideWords:
    """What the command line says about one side."""

    environment: tuple[str, ...] = ()
    python: str | None = None
    settings: tuple[str, ...] = ()
    precision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllWords:
    """What the command line says about all sides, and about B in place of that."""

    targets: tuple[str, ...]
    revision: str | None = None
    arguments: tuple[str, ...] = ()
    all: SideWords = field(default_factory=SideWords)
    b: SideWords = field(default_factory=SideWords)

    @property
    def differ(self) -> bool:
        """Whether A and B differ by more than their targets."""
        return self.revision is not None or self.b != SideWords()


def words_of(targets: tuple[str, ...], words: Mapping[str, Any]) -> AllWords:
    """Return what the parameters of `compare` say about the sides at these targets."""
    of_all, of_b = (
        SideWords(**{field.name: words[f"{field.name}{suffix}"] for field in fields(SideWords)})
        for suffix in ("", "_b")
    )
    return AllWords(targets=targets, revision=words["revision"], arguments=words["arguments"], all=of_all, b=of_b)


@dataclass(frozen=True, slots=True)
class ReadSides:
    """The sides, and the notes to print before the measuring."""

    sides: list[ComparedSide]
    notes: list[str]


@contextmanager
def read_sides(words: AllWords) -> Iterator[ReadSides]:
    """Yield the sides that the words describe; another revision is checked out until the end. Raises UsageError."""
    targets = _targets(words)
    if words.revision is None:
        yield sides_of(words, targets, None)
        return
    with checked_out(targets[1], words.revision) as revision:
        yield sides_of(words, targets, revision)


def _targets(words: AllWords) -> tuple[str, ...]:
    targets = words.targets
    if not targets:
        raise UsageError("compare needs the sides to compare", "jaxprof compare old.py:step new.py:step")
    if words.revision is not None and len(targets) > 1:
        raise UsageError("--git compares one target with another revision of it", "Name the target once.")
    if len(targets) == 1 and not words.differ:
        raise UsageError(
            "compare needs two sides",
            f"Name the other: jaxprof compare {targets[0]} OTHER; or say how the sides differ, with --git REV, "
            f"--env-b K=V, --set-b, --precision-b or --python-b. "
            f"jaxprof compare {targets[0]} {targets[0]} compares it with itself.",
        )
    if len(targets) > len(LABELS):
        raise UsageError(f"compare measures at most {len(LABELS)} sides", "Compare fewer at a time.")
    return targets * 2 if len(targets) == 1 else targets


def sides_of(words: AllWords, targets: Sequence[str], revision: Revision | None) -> ReadSides:
    """Return the sides at these targets, the first of them at `revision`. Raises UsageError."""
    notes: list[str] = []
    interpreters: dict[str | None, Interpreter] = {}
    sides: list[ComparedSide] = []
    for label, target in zip(LABELS, targets, strict=False):
        side_words = words.b if label == "B" else SideWords()
        python = side_words.python or words.all.python
        if python not in interpreters:
            interpreters[python] = find_interpreter(Path(python) if python else None)
        if interpreters[python].jax is None:
            raise UsageError(
                f"{label}: {interpreters[python].path} has no jax",
                f"{'--python-b' if label == 'B' else '--python'} PATH names an environment with jax.",
            )
        environment = {**_variables(words.all.environment), **_variables(side_words.environment)}
        place, variant = split_variant(target)
        title, tree = [target], SideTree()
        if revision is not None:
            place, tree = (revision.target(target), revision.then(target)) if label == "A" else (target, revision.now())
        if revision is not None and label == "A":
            title = [f"{target} at {words.revision}" + f" ({revision.commit})" * (words.revision != revision.commit)]
        title += [f"{name}={kept_value(name, value)}" for name, value in _variables(side_words.environment).items()]
        title += side_words.settings
        title += [f"{side_words.precision} precision"] if side_words.precision else []
        title += [side_words.python] if side_words.python else []
        infos = find_workloads(
            [place],
            interpreters[python],
            words.arguments,
            several=False,
            variables={**tree.variables, **environment},
            inputs_from=sides[0].workload.target if sides else "",
        )
        if infos[0].inputs_from:
            notes.append(f"{label} has no inputs of its own, and is called with those of A")
        side = ComparedSide(
            label=label,
            title=", ".join(title),
            workload=infos[0],
            variant=variant,
            interpreter=interpreters[python],
            environment=environment,
            settings={**read_settings(words.all.settings), **read_settings(side_words.settings)},
            precision=side_words.precision or words.all.precision or "",
            tree=tree,
        )
        sides.append(side)
    if note := tree_note([side.spec() for side in sides]):
        notes.append(note)
    elif len(set(targets)) == 1 and not words.differ:
        notes.append("all sides are the same: an A/A comparison, which shows what this machine can tell apart")
    return ReadSides(sides, notes)


def _variables(items: Sequence[str]) -> dict[str, str]:
    """Return `NAME=value` items as a mapping. Raises UsageError."""
    variables: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier() or "\0" in value:
            raise UsageError(
                f"cannot read the variable {item!r}", "Write it as NAME=VALUE: --env-b XLA_FLAGS=--xla_..."
            )
        variables[name] = value
    return variables


@dataclass(frozen=True, slots=True)
class MeasuredSides:
    """The outcome of measuring the sides."""

    result: AbResult | None
    """The comparison; None if a signal other than ctrl+c ended it."""
    path: str | None
    """Where the session is; None if it could not be kept there."""
    exit_code: int
    """Exit code of the measuring: 1 if a side failed or the session could not be kept, else what ended it."""


TIMED: Final = ("device", "launches", "budget_seconds", "max_seconds", "max_silence_seconds", "seed")
"""Parameters of a command that say how the times of sides are measured."""


def measure(
    read: ReadSides, folder: Path, how: Mapping[str, Any], make_writer: Callable[[], LogWriter], **more: Any
) -> MeasuredSides:
    """Measure the sides and keep the session. `how`: the parameters `TIMED`; `more`: further options of all sides.
    Raises UsageError for sides that do not fit, before anything runs."""
    (device,) = choose([how["device"]], read.sides[0].interpreter)
    timed = {name: how[name] for name in TIMED} | {"device": device}
    options = SideOptions(**timed, folder=folder, **more)
    planned = plan_comparison(read.sides, options, read.notes)
    return measure_planned(planned, read.sides[0].interpreter, make_writer(), options.max_silence_seconds)


def measure_planned(
    planned: Sequence[PlannedRun], interpreter: Interpreter, writer: LogWriter, max_silence_seconds: float
) -> MeasuredSides:
    """Measure the sides of one comparison, A first, and keep the session."""
    from jaxprof.analysis.ab import ab_results
    from jaxprof.cli.run_headless import HeadlessRuns, Progress

    progress = Progress(sys.stderr)
    for note in planned[0].comparison.notes if planned[0].comparison is not None else ():
        progress.note(f"note: {note}")
    runs = HeadlessRuns(writer, interpreter, progress)
    runs.scheduler.max_silence_seconds = max_silence_seconds
    runs.work(planned)
    path = str(writer.path) if report_location(writer, progress.note) else None
    code = runs.exit_code
    if code is not None and code != ExitCode.INTERRUPTED:
        return MeasuredSides(None, path, code)
    (result,) = ab_results(runs.scheduler.session)
    return MeasuredSides(result, path, code or (ExitCode.FAILED if result.failed or path is None else ExitCode.OK))


def can_be_measured(target: str, base: FoundBase) -> bool:
    """Return whether both sides are programs that can be run now, and not sessions of another time."""
    return is_compiled_now(target) and base.about.reading in ("target", "revision")


def measure_times(
    target: str,
    base: FoundBase,
    compiling: CompileOptions,
    how: Mapping[str, Any],
    limits: Sequence[GateLimit],
    make_writer: Callable[[], LogWriter],
) -> MeasuredSides:
    """Measure both sides, A the base and B the target. Raises UsageError for sides that do not fit."""
    revision = base.revision
    sides = (target if revision else base.target, target)
    targets, variants = zip(*map(split_variant, sides), strict=True)
    if len(chosen := {each for each in (*variants, compiling.variant) if each}) > 1:
        raise UsageError(f"both sides are measured as one variant, not as {' and '.join(sorted(chosen))}", "Name one.")
    words = AllWords(
        targets=targets,
        revision=base.about.name if revision is not None else None,
        arguments=tuple(compiling.arguments),
        all=SideWords(settings=tuple(compiling.settings), python=str(compiling.python) if compiling.python else None),
    )
    read = sides_of(words, targets, revision)
    with TemporaryFolder("gate") as folder:
        return measure(
            read,
            folder,
            how,
            make_writer,
            variant=next(iter(chosen), "jit"),
            preset=compiling.preset,
            arguments=compiling.arguments,
            half_width=HALF_WIDTH if all(limit.fact == "run" for limit in limits if limit.is_time) else None,
        )
