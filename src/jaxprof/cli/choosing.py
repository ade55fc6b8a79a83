"""From the words on the command line to the runs: names, variants and parameters, all checked before any run.

A name is a built-in workload, or the target of a user's own function; the latter is described by a child process,
so that the user's code never runs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxprof.errors import UsageError, WorkerError, unknown_name
from jaxprof.worker import Choice, Interpreter, Planned, describe, plan_runs, read_sweep
from jaxprof.workloads import built_in
from jaxprof.workloads.model import WorkloadCard, card


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs to be made, and what to say about the choice."""

    planned: list[Planned]
    notes: list[str] = field(default_factory=list)


def find_cards(targets: Sequence[str], interpreter: Interpreter, arguments: Sequence[str]) -> list[WorkloadCard]:
    """A card for each target, in order, each once. Raises UsageError for an unknown name, or a target that cannot be
    imported."""
    wanted = list(dict.fromkeys(targets))
    own = [target for target in wanted if is_own(target)]
    if arguments and not own:
        raise UsageError("--arg is for your own functions", "Sizes of built-in workloads are set with --set n=4000.")
    found = {target: card(built_in(target), sources=False) for target in wanted if target not in own}
    if own:
        found |= dict(zip(own, describe_own(own, interpreter, arguments), strict=True))
    return [found[target] for target in wanted]


def describe_own(targets: Sequence[str], interpreter: Interpreter, arguments: Sequence[str]) -> list[WorkloadCard]:
    """The cards of a user's own functions. Raises UsageError: a target that cannot be described is a wrong word."""
    try:
        return describe(interpreter, targets, arguments)
    except WorkerError as error:
        raise UsageError(error.what, error.mend) from error


def is_own(target: str) -> bool:
    """Whether `target` names a user's function (`file.py:f`, `module:f`) and not a built-in workload."""
    return ":" in target or "/" in target or target.endswith(".py")


def plan(cards: Sequence[WorkloadCard], choice: Choice) -> Chosen:
    """The runs of all `cards`. With several, each takes the variants and settings that it knows; one that none knows
    raises UsageError naming the near ones."""
    variants = {variant.name for one in cards for variant in one.variants}
    for name in choice.variants:
        if name not in variants:
            raise unknown_name("variant", name, variants)
    parameters = {parameter.name for one in cards for parameter in one.parameters}
    for name in choice.settings:
        if name not in parameters:
            raise unknown_name("parameter", name, parameters)
    chosen = Chosen([])
    for one in cards:
        kept = [name for name in choice.variants if name in {variant.name for variant in one.variants}]
        if choice.variants and not kept:
            chosen.notes.append(f"{one.name} has no variant {' or '.join(choice.variants)}: left out")
            continue
        known = {parameter.name for parameter in one.parameters}
        if choice.sweep and len(cards) == 1:
            read_sweep(choice.sweep, one.parameters)
        settings = {name: text for name, text in choice.settings.items() if name in known}
        chosen.planned.extend(plan_runs([one], replace(choice, variants=kept, settings=settings)))
    return chosen


def read_settings(items: Sequence[str]) -> dict[str, str]:
    """`n=4000` items as name → text; the last one of a name counts. Raises UsageError."""
    settings: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UsageError(f"cannot read --set {item!r}", "It looks like --set n=4000.")
        settings[name.strip()] = text.strip()
    return settings
