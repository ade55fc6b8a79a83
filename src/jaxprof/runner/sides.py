"""The sides of a comparison as runs: A, A' (the control: A once more, in processes of its own), B, C...

All of them are compared with A, so they are measured in one group, in turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxprof.errors import UsageError
from jaxprof.events import RunSpec
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.workloads.model import VariantInfo, WorkloadInfo

MOST_LAUNCHES = 10
HALF_WIDTH = 0.02
"""Launches end once the speed-up is known to ± this share."""
LAUNCH_SECONDS = 0.5
"""How long a side is sampled in each launch: some 50 blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side: a target with everything that it is run with."""

    label: str
    """`A`, `B`..."""
    title: str
    """What it is, for people: `train.py:step, XLA_FLAGS=...`."""
    workload: WorkloadInfo
    interpreter: Interpreter
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    precision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOptions:
    """What all sides have in common."""

    variant: str = "jit"
    device: str = "cpu:0"
    preset: str = "quick"
    launches: int | None = None
    """None: as many as the width of the interval needs."""
    budget_seconds: float = 60.0
    max_seconds: float | None = None
    arguments: Sequence[str] = ()
    check: bool = True
    capture: bool = False
    seed: int = 0
    folder: Path | None = None
    """Where the engines write their results; None: nowhere."""


def plan_sides(sides: Sequence[ComparedSide], options: SideOptions) -> list[PlannedRun]:
    """The runs in order: A, A', B... Raises UsageError for a variant or parameter that a side does not have."""
    baseline = _planned(sides[0], options, None)
    control = _planned(sides[0], options, baseline, label=f"{sides[0].label}'")
    return [baseline, control, *(_planned(side, options, baseline) for side in sides[1:])]


def _planned(side: ComparedSide, options: SideOptions, baseline: PlannedRun | None, label: str = "") -> PlannedRun:
    label = label or side.label
    workload, variant = side.workload, _variant(side, options.variant)
    launches = options.launches or MOST_LAUNCHES
    is_control = label != side.label
    spec = RunSpec(
        target=workload.target,
        workload=workload.name,
        variant=variant.name,
        how=variant.how,
        device=options.device,
        parameters=workload.resolve(options.preset, side.settings),
        preset=options.preset,
        precision=side.precision or variant.precision,
        budget_seconds=LAUNCH_SECONDS * launches,
        max_seconds=options.max_seconds or (None if options.launches else options.budget_seconds),
        arguments=tuple(options.arguments),
        check=options.check and not is_control,
        capture=options.capture and not is_control,
        seed=options.seed,
        launches=launches,
        side=label,
        until_half_width=None if options.launches else HALF_WIDTH,
    )
    environment = dict(side.environment)
    if side.precision:
        environment["JAX_DEFAULT_MATMUL_PRECISION"] = side.precision
    return PlannedRun(
        spec=spec,
        baseline=baseline,
        interpreter=side.interpreter,
        environment=environment,
        keep_output=str(options.folder / f"{len(label)}{label[0]}.npz") if options.folder else "",
        group_seconds=None if options.launches else options.budget_seconds,
    )


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
