"""The sides of a comparison, A, B, C...: read from words (target, interpreter and environment of each), and planned as
runs. A finding's proposed change is such a side, too: the same program with one change, in a process of its own.

All of them are compared with A, so they are measured in one group, in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from jaxprof.analysis.runs.ab import difference
from jaxprof.analysis.target import Target
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.private import value_to_keep
from jaxprof.base.values import frozen
from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.events import ComparisonPlanned, RunSpec, SideSpec
from jaxprof.findings.trials import ProposedChange, trial_of
from jaxprof.runner.engine_questions import describe_inputs
from jaxprof.runner.interpreter import Interpreter, find_interpreter
from jaxprof.runner.planning import HOST, PlannedRun, find_workloads, read_settings
from jaxprof.runner.repository import Revision, check_out
from jaxprof.stats.comparison import MARGIN
from jaxprof.workloads.model import WorkloadInfo

MOST_LAUNCHES = 10
HALF_WIDTH = 0.02
"""Launches end once the speed-up is known to ± this share."""
LAUNCH_SECONDS = 1.5
"""Time for which a side is sampled in each launch, whose start takes about three seconds a side. In half a second,
beside a neighbour that works in bursts, a launch had nine pairs of blocks and was known to 5 to 20 %."""


@frozen(kw_only=True)
class ComparedSide:
    """One side of a comparison: a target with everything that it is run with."""

    label: str
    title: str
    """Description for people: `train.py:step, XLA_FLAGS=...`."""
    workload: WorkloadInfo
    interpreter: Interpreter
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    """The side's own variant; empty: that of all sides."""
    precision: str = ""
    arguments: Sequence[str] = ()
    """The side's own argument specs, in place of those of all sides."""
    tree: Mapping[str, Any] = field(default_factory=dict)
    """Git's tree of its files, where two revisions are compared: `revision`, `commit`, `repository` and `dirty`, as its
    `SideSpec` has them."""
    stays_at: str = ""
    """Target in the present tree to which the target of a checked-out revision corresponds."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that make Python import the modules of a checked-out revision."""

    def spec(self) -> SideSpec:
        return SideSpec(
            label=self.label,
            title=self.title,
            python=self.interpreter.path,
            environment={name: value_to_keep(name, value) for name, value in self.environment.items()},
            precision=self.precision,
            **self.tree,
        )


@frozen(kw_only=True)
class SideOptions:
    """Options that all sides have in common."""

    variant: str = "jit"
    device: str = "cpu:0"
    preset: str = "quick"
    launches: int | None = None
    """Number of launches; None: as many as the width of the interval needs."""
    half_width: float | None = HALF_WIDTH
    """Without `launches`: how well the time of a call has to be known, as a share. None: work that happens once in a
    process is compared, too, and only the time or `MOST_LAUNCHES` ends the launches."""
    budget_seconds: float = 60.0
    max_seconds: float | None = None
    margin: float = MARGIN
    """Sides whose times differ by less than this share count as the same."""
    arguments: Sequence[str] = ()
    capture: bool = False
    seed: int = 0
    folder: Path | None = None
    """Folder in which the engines write their results; None: none is written."""


def plan_sides(sides: Sequence[ComparedSide], options: SideOptions) -> list[PlannedRun]:
    """Plan the runs in order: A, B... Raises UsageError for a variant or parameter that a side does not have."""
    baseline = _plan_side(sides[0], options, None)
    return [baseline, *(_plan_side(side, options, baseline) for side in sides[1:])]


def _plan_side(side: ComparedSide, options: SideOptions, baseline: PlannedRun | None) -> PlannedRun:
    name = side.variant or options.variant
    variants = side.workload.variants
    chosen = next((variant for variant in variants if variant.name == name), None)
    if chosen is None and name == "jit":
        chosen = next((variant for variant in variants if variant.how == "jit"), None)
    if chosen is None:
        raise UsageError(
            f"{side.label}, {side.workload.name}, has no variant {name}",
            f"--variant takes one of: {', '.join(variant.name for variant in variants)}.",
        )
    workload, variant = side.workload, chosen
    precision = {"JAX_DEFAULT_MATMUL_PRECISION": side.precision} if side.precision else {}
    spec = RunSpec(
        target=workload.target,
        workload=workload.name,
        variant=variant.name,
        how=variant.how,
        device=HOST if variant.how == "numpy" else options.device,
        parameters=workload.resolve(options.preset, side.settings),
        preset=options.preset,
        precision=side.precision or variant.precision,
        **timing(options),
        arguments=tuple(side.arguments or options.arguments),
        inputs_from=workload.inputs_from,
        capture=options.capture,
        seed=options.seed,
        side=side.label,
    )
    return PlannedRun(
        spec=spec,
        baseline=baseline,
        interpreter=side.interpreter,
        environment={**side.variables, **side.environment, **precision},
        stays_at=side.stays_at,
        keep_output=str(options.folder / f"{side.label}.npz") if options.folder is not None else "",
        group_seconds=None if options.launches else options.budget_seconds,
    )


def timing(options: SideOptions) -> dict[str, Any]:
    """Return the fields of a run's spec that say for how long a side is measured."""
    launches = options.launches or MOST_LAUNCHES
    return {
        "launches": launches,
        "budget_seconds": LAUNCH_SECONDS * launches,
        "max_seconds": options.max_seconds or (None if options.launches else options.budget_seconds),
        "until_half_width": None if options.launches else options.half_width,
    }


def tree_note(sides: Sequence[SideSpec]) -> str:
    """Return a note on the tree of each side, if A is a git revision; empty otherwise."""
    then, now = sides[0], sides[-1]
    if not then.revision:
        return ""
    state = "with uncommitted changes" if now.dirty else "which has no uncommitted changes"
    return f"A is {then.revision} ({then.commit}), B the present tree of {now.repository}, {state}"


def same_inputs(planned: Sequence[PlannedRun]) -> tuple[list[str], bool]:
    """Return dtype and shape of each array that all sides are called with, and whether their numbers are the same, too.
    Raises UsageError if the arrays differ in number, dtype or shape. Blocks while children make them."""
    described: dict[str, list[KeptLeaf]] = {}
    for plan in planned:
        assert plan.interpreter is not None
        try:
            spec = replace(plan.spec, device=HOST)
            described[plan.spec.side] = describe_inputs(plan.interpreter, spec, plan.environment)
        except WorkerError as error:
            raise UsageError(f"{plan.spec.side}, {plan.spec.workload}: {error.what}", error.hint) from error
    (first, baseline), *others = described.items()
    for label, leaves in others:
        if unlike := difference(baseline, leaves):
            raise UsageError(
                f"{first} and {label} have different arguments: {unlike}",
                "Sides with NAME_inputs() make their own; --arg f32[1024,1024] gives all sides the same, --set (e on "
                "Start) their sizes.",
            )
    digests = {tuple(leaf.digest for leaf in leaves) for leaves in described.values()}
    return [leaf.spec for leaf in baseline], len(digests) == 1


def plan_comparison(sides: Sequence[ComparedSide], options: SideOptions, notes: Iterable[str] = ()) -> list[PlannedRun]:
    """Plan the runs in order, once their inputs are known to fit; the first run holds the record of the comparison. If
    their inputs have other numbers, no results are kept, because comparing them would mean nothing. Raises UsageError.
    Blocks while children make the inputs."""
    versions = {side.label: f"jax {side.interpreter.jax}" if side.interpreter.jax else "no jax" for side in sides}
    all_notes = list(notes)
    if len(set(versions.values())) > 1:
        has = ", ".join(f"{label} has {version}" for label, version in versions.items())
        all_notes.append(f"environments differ: {has}")
    planned = plan_sides(sides, options)
    inputs, same_numbers = same_inputs(planned)
    comparison = ComparisonPlanned(
        sides=[side.spec() for side in sides],
        margin=options.margin,
        group_seconds=planned[0].group_seconds,
        inputs=inputs,
        same_inputs=same_numbers,
        notes=all_notes,
    )
    kept = [replace(plan, keep_output=plan.keep_output if same_numbers else "") for plan in planned]
    first = replace(kept[0], comparison=comparison)
    return [first, *(replace(plan, baseline=first) for plan in kept[1:])]


LABELS = "ABCDEFGHIJ"
_OF_A_SIDE = ("environment", "python", "settings", "precision")
"""Parameters that hold for all sides; with `_b` behind its name, each holds for B in place of that."""

Sides = tuple[list[ComparedSide], list[str]]
"""The sides, and the notes to print before the measuring."""


@contextmanager
def read_sides(targets: Sequence[Target], words: Mapping[str, Any]) -> Iterator[Sides]:
    """Yield the sides at these targets, as the parameters of `compare` describe them; another revision is checked out
    until the end. Raises UsageError."""
    if words.get("revision") is not None and len(targets) > 1:
        raise UsageError("--git compares one target with another revision of it", "Name the target once.")
    if len(targets) == 1 and not _differ(words):
        word = targets[0].word
        raise UsageError(
            "compare needs two sides",
            f"Name the other: jaxprof compare {word} OTHER; or say how the sides differ, with --git REV, "
            f"--env-b K=V, --set-b, --precision-b or --python-b. "
            f"jaxprof compare {word} {word} compares it with itself.",
        )
    if len(targets) > len(LABELS):
        raise UsageError(f"compare measures at most {len(LABELS)} sides", "Compare fewer at a time.")
    targets = [*targets, *targets] if len(targets) == 1 else targets
    if words.get("revision") is None:
        yield sides_of(targets, words, None)
        return
    with check_out(targets[1].word, words["revision"]) as revision:
        yield sides_of(targets, words, revision)


def _differ(words: Mapping[str, Any]) -> bool:
    return words.get("revision") is not None or any(words.get(f"{name}_b") for name in _OF_A_SIDE)


def sides_of(targets: Sequence[Target], words: Mapping[str, Any], revision: Revision | None) -> Sides:
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
        title = [target.word]
        at_revision: dict[str, Any] = revision.side(target.word, is_then=label == "A") if revision is not None else {}
        measured = target
        if revision is not None and label == "A":
            measured = replace(target, word=revision.target(target.word))
            title = [f"{target.word} at {revision.name}" + f" ({revision.commit})" * (revision.name != revision.commit)]
        title += [f"{name}={value_to_keep(name, value)}" for name, value in own_variables.items()]
        title += own["settings"] or ()
        title += [f"{own['precision']} precision"] if own["precision"] else []
        title += [own["python"]] if own["python"] else []
        (workload,) = find_workloads(
            [measured],
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
            variant=target.variant,
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


def plan_trials(original: PlannedRun, trials: Sequence[ProposedChange], options: SideOptions) -> list[PlannedRun]:
    """Plan a run as A, and the trials beside it. Raises UsageError if its inputs cannot be made. Blocks while a child
    makes them."""
    planned: list[PlannedRun] = []
    sides: list[SideSpec] = []
    for label, trial in zip(LABELS, (None, *trials), strict=False):
        spec = replace(original.spec, **timing(options), baseline="", side=label, capture=options.capture)
        variables, title, changes_inputs = dict(original.environment), spec.workload, False
        if trial is not None:
            # Its result is compared with A's; the function op by op, of the engine's own check, would have the change.
            spec = replace(spec, trial=trial.name, trial_at=trial.line, check=False)
            variables |= trial.environment(variables)
            title, changes_inputs = trial.title, trial_of(trial.name).changes_inputs
        plan = replace(
            original,
            spec=spec,
            baseline=None,
            environment=variables,
            keep_output=f"{options.folder}/{label}.npz" if options.folder is not None and not changes_inputs else "",
            group_seconds=None if options.launches else options.budget_seconds,
        )
        planned.append(plan)
        sides.append(
            SideSpec(
                label=label,
                title=title,
                python=plan.interpreter.path if plan.interpreter is not None else "",
                environment={name: value_to_keep(name, value) for name, value in variables.items()},
                precision=spec.precision,
                finding=trial.code if trial is not None else "",
            )
        )
    inputs, _ = same_inputs(planned[:1])
    comparison = ComparisonPlanned(
        sides=sides, margin=options.margin, group_seconds=planned[0].group_seconds, inputs=inputs, same_inputs=True
    )
    first = replace(planned[0], comparison=comparison)
    return [first, *(replace(plan, baseline=first) for plan in planned[1:])]
