"""Plan the sides of a comparison as runs: A, B, C...

All of them are compared with A, so they are measured in one group, in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxprof.analysis.ab import difference
from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.errors import UsageError, WorkerError
from jaxprof.events import ComparisonPlanned, RunSpec, SideSpec
from jaxprof.private import kept_value
from jaxprof.runner.engine_process import describe_inputs
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import HOST, PlannedRun
from jaxprof.stats.comparison import MARGIN
from jaxprof.workloads.model import VariantInfo, WorkloadInfo

MOST_LAUNCHES = 10
HALF_WIDTH = 0.02
"""Launches end once the speed-up is known to ± this share."""
LAUNCH_SECONDS = 1.5
"""Time for which a side is sampled in each launch, whose start takes about three seconds a side. In half a second,
beside a neighbour that works in bursts, a launch had nine pairs of blocks and was known to 5 to 20 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison: a target with everything that it is run with."""

    label: str
    """Letter of the side: `A`, `B`..."""
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
        """Return the record of the side that the session keeps."""
        return SideSpec(
            label=self.label,
            title=self.title,
            python=self.interpreter.path,
            environment={name: kept_value(name, value) for name, value in self.environment.items()},
            precision=self.precision,
            **self.tree,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
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
    baseline = _planned(sides[0], options, None)
    return [baseline, *(_planned(side, options, baseline) for side in sides[1:])]


def _planned(side: ComparedSide, options: SideOptions, baseline: PlannedRun | None) -> PlannedRun:
    workload, variant = side.workload, _variant(side, side.variant or options.variant)
    launches = options.launches or MOST_LAUNCHES
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
        launches=launches,
        budget_seconds=LAUNCH_SECONDS * launches,
        max_seconds=options.max_seconds or (None if options.launches else options.budget_seconds),
        until_half_width=None if options.launches else options.half_width,
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


def _variant(side: ComparedSide, name: str) -> VariantInfo:
    variants = side.workload.variants
    chosen = next((variant for variant in variants if variant.name == name), None)
    if chosen is None and name == "jit":
        chosen = next((variant for variant in variants if variant.how == "jit"), None)
    if chosen is None:
        raise UsageError(
            f"{side.label}, {side.workload.name}, has no variant {name}",
            f"--variant takes one of: {', '.join(variant.name for variant in variants)}.",
        )
    return chosen
