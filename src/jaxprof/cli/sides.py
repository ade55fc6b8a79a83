"""The sides of a comparison, for `compare` and the times of `gate`: read from the words of a command
line (target, interpreter and environment of each), and measured in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.cli.answers import Outcome, carry_out
from jaxprof.cli.selection import find_workloads, read_settings
from jaxprof.cli.target import split_variant
from jaxprof.errors import UsageError
from jaxprof.private import kept_value
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.interpreter import Interpreter, find_interpreter
from jaxprof.runner.new_session import new_writer
from jaxprof.runner.repository import Revision, checked_out
from jaxprof.runner.sides import HALF_WIDTH, ComparedSide, SideOptions, plan_comparison, tree_note

if TYPE_CHECKING:
    from jaxprof.analysis.gate import GateLimit
    from jaxprof.cli.gate_base import FoundBase
    from jaxprof.cli.hlo_target import CompileOptions

LABELS = "ABCDEFGHIJ"
_OF_A_SIDE: Final = ("environment", "python", "settings", "precision")
"""Parameters that hold for all sides; with `_b` behind its name, each holds for B in place of that."""

Sides = tuple[list[ComparedSide], list[str]]
"""The sides, and the notes to print before the measuring."""


@contextmanager
def read_sides(targets: tuple[str, ...], words: Mapping[str, Any]) -> Iterator[Sides]:
    """Yield the sides at these targets, as the parameters of `compare` describe them; another revision is checked out
    until the end. Raises UsageError."""
    targets = _both(targets, words)
    if words.get("revision") is None:
        yield sides_of(targets, words, None)
        return
    with checked_out(targets[1], words["revision"]) as revision:
        yield sides_of(targets, words, revision)


def _both(targets: tuple[str, ...], words: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the targets, of which one alone stands for two sides. Raises UsageError."""
    if words.get("revision") is not None and len(targets) > 1:
        raise UsageError("--git compares one target with another revision of it", "Name the target once.")
    if len(targets) == 1 and not _differ(words):
        raise UsageError(
            "compare needs two sides",
            f"Name the other: jaxprof compare {targets[0]} OTHER; or say how the sides differ, with --git REV, "
            f"--env-b K=V, --set-b, --precision-b or --python-b. "
            f"jaxprof compare {targets[0]} {targets[0]} compares it with itself.",
        )
    if len(targets) > len(LABELS):
        raise UsageError(f"compare measures at most {len(LABELS)} sides", "Compare fewer at a time.")
    return targets * 2 if len(targets) == 1 else targets


def _differ(words: Mapping[str, Any]) -> bool:
    """Return whether A and B differ by more than their targets."""
    return words.get("revision") is not None or any(words.get(f"{name}_b") for name in _OF_A_SIDE)


def sides_of(targets: Sequence[str], words: Mapping[str, Any], revision: Revision | None) -> Sides:
    """Return the sides at these targets, the first of them at `revision`. Raises UsageError."""
    notes: list[str] = []
    interpreters: dict[str | None, Interpreter] = {}
    sides: list[ComparedSide] = []
    for label, target in zip(LABELS, targets, strict=False):
        own = {name: label == "B" and words.get(f"{name}_b") for name in _OF_A_SIDE}
        python = own["python"] or words.get("python")
        if python not in interpreters:
            interpreters[python] = find_interpreter(Path(python) if python else None)
        if interpreters[python].jax is None:
            raise UsageError(
                f"{label}: {interpreters[python].path} has no jax",
                f"{'--python-b' if label == 'B' else '--python'} PATH names an environment with jax.",
            )
        own_variables = _variables(own["environment"] or ())
        environment = {**_variables(words.get("environment") or ()), **own_variables}
        place, variant = split_variant(target)
        title = [target]
        at_revision: dict[str, Any] = revision.side(target, is_then=label == "A") if revision is not None else {}
        if revision is not None and label == "A":
            place = revision.target(target)
            title = [f"{target} at {revision.name}" + f" ({revision.commit})" * (revision.name != revision.commit)]
        title += [f"{name}={kept_value(name, value)}" for name, value in own_variables.items()]
        title += own["settings"] or ()
        title += [f"{own['precision']} precision"] if own["precision"] else []
        title += [own["python"]] if own["python"] else []
        (workload,) = find_workloads(
            [place],
            interpreters[python],
            words["arguments"],
            variables={**at_revision.get("variables", {}), **environment},
            inputs_from=sides[0].workload.target if sides else "",
        )
        if workload.inputs_from:
            notes.append(f"{label} has no inputs of its own, and is called with those of A")
        side = ComparedSide(
            label=label,
            title=", ".join(title),
            workload=workload,
            variant=variant,
            interpreter=interpreters[python],
            environment=environment,
            settings=read_settings([*(words.get("settings") or ()), *(own["settings"] or ())]),
            precision=own["precision"] or words.get("precision") or "",
            **at_revision,
        )
        sides.append(side)
    if note := tree_note([side.spec() for side in sides]):
        notes.append(note)
    elif len(set(targets)) == 1 and not _differ(words):
        notes.append("all sides are the same: an A/A comparison, which shows what this machine can tell apart")
    return sides, notes


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


TIMED: Final = ("launches", "budget_seconds", "max_seconds", "max_silence_seconds", "seed", "out", "force")
"""Parameters of a command that say how the times of sides are measured, and where they are kept."""


def measure(read: Sides, folder: Path, words: Mapping[str, Any], **more: Any) -> Outcome:
    """Measure the sides, A first, and keep the session. `words`: parameters of the command, with those of `TIMED`;
    `more`: options of all sides, in place of these. Raises UsageError for sides that do not fit, before anything
    runs."""
    sides, notes = read
    interpreter = sides[0].interpreter
    given = {each.name: words[each.name] for each in fields(SideOptions) if each.name in words}
    planned = plan_comparison(sides, SideOptions(**{**given, **more}, folder=folder), notes)
    comparison = planned[0].comparison
    lines = [f"note: {each}" for each in comparison.notes] if comparison is not None else []
    writer = new_writer(words["out"], replace_existing=words["force"])
    return carry_out(planned, interpreter, writer, lines, words["max_silence_seconds"])


def measure_times(
    target: str,
    base: FoundBase,
    compiling: CompileOptions,
    how: Mapping[str, Any],
    limits: Sequence[GateLimit],
) -> Outcome:
    """Measure both sides, A the base and B the target. Raises UsageError for sides that do not fit."""
    revision = base.revision
    sides = (target if revision else base.target, target)
    targets, variants = zip(*map(split_variant, sides), strict=True)
    if len(chosen := {each for each in (*variants, compiling.variant) if each}) > 1:
        raise UsageError(f"both sides are measured as one variant, not as {' and '.join(sorted(chosen))}", "Name one.")
    words = {
        "revision": base.about.name if revision is not None else None,
        "arguments": compiling.arguments,
        "settings": compiling.settings,
        "python": str(compiling.python) if compiling.python else None,
    }
    read = sides_of(targets, words, revision)
    with TemporaryFolder("gate") as folder:
        return measure(
            read,
            folder,
            how,
            device=compiling.device,
            variant=next(iter(chosen), "jit"),
            preset=compiling.preset,
            arguments=compiling.arguments,
            half_width=HALF_WIDTH if all(limit.fact == "run" for limit in limits if limit.is_time) else None,
        )
