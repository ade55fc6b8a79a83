"""From what a user chose to the list of runs: every variant on every device at every size, the baseline first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxprof.engine.request import DEFAULT_BUDGET_SECONDS
from jaxprof.errors import UsageError
from jaxprof.events import Scalar
from jaxprof.targets import Target
from jaxprof.workloads.model import Parameter, VariantCard, WorkloadCard, worth_running

HOST = "cpu:0"
SWEEP_POINTS = 9
SWEEP_LIMIT = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """One run to be made."""

    target: str
    """What the engine is asked for: a built-in workload's name, or where the user's own was found."""
    workload: str
    variant: str
    how: str
    device: str
    parameters: dict[str, Scalar]
    preset: str
    baseline: Planned | None = None
    """The run that this one is compared with; None for the baseline itself."""
    precision: str = ""
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    max_seconds: float | None = None
    arguments: tuple[str, ...] = ()
    keep_constants: bool = False
    compilation_cache: bool = False
    check: bool = True
    capture: bool = True
    """Whether kernels and compile passes are captured, in a pass of their own."""
    keep_trace: bool = False
    """Whether the raw profile is kept beside the session."""
    seed: int = 0
    compile_only: bool = False
    """Lowered and compiled, and not run."""
    elsewhere: Target | None = None
    """Compiled for devices that are not here; `device` is then their label."""
    shard: tuple[str, ...] = ()
    """`ARGUMENT=AXIS`: what is split over several devices elsewhere."""
    profile: ProfileChoice | None = None
    """A profile that was recorded elsewhere, to be read; nothing is run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChoice:
    """Which profile of a file or folder."""

    path: str
    run: str = ""
    """Empty for the newest."""
    hosts: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A range of sizes: one parameter, its values in ascending order."""

    parameter: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What applies to all runs of a plan."""

    preset: str = "quick"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Parameters set by hand, as text."""
    variants: Sequence[str] = ()
    """Just these; empty for all. The baseline is always timed."""
    devices: Sequence[str] = (HOST,)
    sweep: str = ""
    """`n=1e3..1e7` or `n=1e3..1e7:12` (points) or `n=100,200,400`."""
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    max_seconds: float | None = None
    arguments: Sequence[str] = ()
    keep_constants: bool = False
    compilation_cache: bool = False
    check: bool = True
    capture: bool = True
    """Whether kernels and compile passes are captured, in a pass of their own."""
    keep_trace: bool = False
    """Whether the raw profile is kept beside the session."""
    seed: int = 0


def plan_runs(cards: Sequence[WorkloadCard], choice: Choice | None = None) -> list[Planned]:
    """The runs, in order: workload, size, baseline, then device by device. Raises UsageError for a wrong name or value.

    A NumPy variant runs on the host whatever the devices are, and is planned once.
    """
    choice = choice or Choice()
    if choice.budget_seconds <= 0 or (choice.max_seconds is not None and choice.max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "--budget 2 is the default.")
    if not choice.devices:
        raise UsageError("no device is chosen", "jaxprof devices lists them.")
    plans: list[Planned] = []
    for card in cards:
        chosen = _chosen_variants(card, choice.variants)
        settings = _settings_of(card, choice.settings, alone=len(cards) == 1)
        for parameters in _sizes(card, settings, choice):
            plans += _one_size(card, chosen, parameters, choice)
    return plans


def plan_compiles(
    card: WorkloadCard,
    variant: str = "",
    choice: Choice | None = None,
    targets: Sequence[Target] = (),
    shard: Sequence[str] = (),
) -> list[Planned]:
    """Compiles of one variant (by default the first that is compiled as a whole): here, or for each of `targets`.

    Raises UsageError for a wrong name, value, or a variant that NumPy runs.
    """
    choice = choice or Choice()
    chosen = card.variant(variant) if variant else _compiled_variant(card)
    if chosen.how == "numpy":
        raise UsageError(f"{card.name} {chosen.name} is NumPy: there is nothing to compile", "Choose a jit variant.")
    common: dict[str, Any] = {
        "target": card.target,
        "workload": card.name,
        "variant": chosen.name,
        "how": "compile",
        "parameters": card.resolve(choice.preset, choice.settings),
        "preset": choice.preset,
        "precision": chosen.precision,
        "arguments": tuple(choice.arguments),
        "keep_constants": choice.keep_constants,
        "seed": choice.seed,
        "compile_only": True,
    }
    if not targets:
        return [Planned(device=choice.devices[0], **common)]
    return [Planned(device=target.label, elsewhere=target, shard=tuple(shard), **common) for target in targets]


def _compiled_variant(card: WorkloadCard) -> VariantCard:
    for variant in card.variants:
        if variant.how == "jit":
            return variant
    for variant in card.variants:
        if variant.how == "eager":
            return variant
    raise UsageError(f"{card.name} has no JAX variant to compile", "Its variants are all NumPy.")


def read_sweep(text: str, parameters: Sequence[Parameter]) -> Sweep:
    """The sweep that `text` says, for a workload's parameters. Raises UsageError naming what is wrong."""
    name, equals, span = text.partition("=")
    known = {parameter.name: parameter for parameter in parameters}
    example = "A sweep looks like n=1e3..1e7, n=1e3..1e7:12 (points) or n=100,200,400."
    if not equals or not span:
        raise UsageError(f"cannot read the sweep {text!r}", example)
    if name not in known:
        raise UsageError(f"no parameter {name!r} to sweep", f"There are: {', '.join(known) or 'none'}.")
    parameter = known[name]
    if ".." not in span:
        listed = {parameter.read(item.strip()) for item in span.split(",")}
        values = sorted(listed, key=lambda value: (isinstance(value, str), value))
        return Sweep(parameter=name, values=tuple(values))
    low_text, _, rest = span.partition("..")
    high_text, _, points_text = rest.partition(":")
    low, high = parameter.read(low_text), parameter.read(high_text)
    if isinstance(low, str) or isinstance(high, str):
        raise UsageError(f"{name} has no range to sweep", f"Name the values: {name}={','.join(parameter.choices)}.")
    try:
        points = int(points_text) if points_text else SWEEP_POINTS
    except ValueError:
        raise UsageError(f"{points_text!r} is not a number of points", example) from None
    if not 2 <= points <= SWEEP_LIMIT or low <= 0 or high <= low:
        raise UsageError(f"cannot sweep {span!r}", f"It wants 0 < low < high and 2 to {SWEEP_LIMIT} points. {example}")
    steps = [low * (high / low) ** (index / (points - 1)) for index in range(points)]
    swept = sorted({round(step) for step in steps} if parameter.kind == "int" else set(steps))
    return Sweep(parameter=name, values=tuple(swept))


def _chosen_variants(card: WorkloadCard, names: Sequence[str]) -> list[VariantCard]:
    """The baseline first, then the chosen ones in the card's order."""
    baseline = card.variant(card.baseline)
    wanted = [card.variant(name) for name in names] if names else list(card.variants)
    return [baseline, *(variant for variant in card.variants if variant in wanted and variant is not baseline)]


def _settings_of(card: WorkloadCard, settings: Mapping[str, str], *, alone: bool) -> dict[str, str]:
    """The settings that concern this workload; with several workloads each takes those that it knows."""
    if alone:
        return dict(settings)
    known = {parameter.name for parameter in card.parameters}
    return {name: text for name, text in settings.items() if name in known}


def _sizes(card: WorkloadCard, settings: Mapping[str, str], choice: Choice) -> list[dict[str, Scalar]]:
    base = card.resolve(choice.preset, settings)
    if not choice.sweep:
        return [base]
    sweep = read_sweep(choice.sweep, card.parameters)
    return [{**base, sweep.parameter: value} for value in sweep.values]


def _one_size(
    card: WorkloadCard, variants: Sequence[VariantCard], parameters: dict[str, Scalar], choice: Choice
) -> list[Planned]:
    baseline: Planned | None = None
    plans: list[Planned] = []
    for variant in variants:
        devices = [HOST] if variant.how == "numpy" else list(dict.fromkeys(choice.devices))
        for device in devices:
            if variant.name not in choice.variants and not worth_running(variant, device.partition(":")[0]):
                continue
            planned = Planned(
                target=card.target,
                workload=card.name,
                variant=variant.name,
                how=variant.how,
                device=device,
                parameters=dict(parameters),
                preset=choice.preset,
                baseline=baseline,
                precision=variant.precision,
                budget_seconds=choice.budget_seconds,
                max_seconds=choice.max_seconds,
                arguments=tuple(choice.arguments),
                keep_constants=choice.keep_constants,
                compilation_cache=choice.compilation_cache,
                check=choice.check,
                capture=choice.capture,
                keep_trace=choice.keep_trace,
                seed=choice.seed,
            )
            plans.append(planned)
            if baseline is None:
                baseline = planned
    return plans


def expected_seconds(plans: Sequence[Planned]) -> float:
    """A rough lower bound of what the plan takes: start-up and time budget of each run. An estimate."""
    return math.fsum(1.0 + min(plan.budget_seconds, plan.max_seconds or plan.budget_seconds) for plan in plans)
