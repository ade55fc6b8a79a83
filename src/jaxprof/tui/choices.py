"""What the user has chosen on Home: which workloads, variants, sizes and devices. Knows no screen.

It is turned into a plan here too, so that the line that says what Enter will do and what Enter does are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError, UsageError

if TYPE_CHECKING:
    from jaxprof.worker import Planned
    from jaxprof.workloads.model import Estimate, WorkloadCard

PRESETS = ("quick", "published")


@dataclass(slots=True)
class WorkloadChoice:
    """What was chosen for one workload."""

    settings: dict[str, str] = field(default_factory=dict)
    """Parameters set by hand, as text that was read once without an error."""
    sweep: str = ""
    left_out: set[str] = field(default_factory=set)
    """Variants that are not to be run."""
    arguments: tuple[str, ...] = ()
    """For a user's function: the specs that it was described with."""


@dataclass(slots=True)
class Choices:
    """Everything that was chosen."""

    preset: str = "quick"
    budget_seconds: float = 2.0
    devices: list[str] = field(default_factory=lambda: ["cpu:0"])
    marked: set[str] = field(default_factory=set)
    """Names of workloads."""
    by_workload: dict[str, WorkloadChoice] = field(default_factory=dict)

    def of(self, workload: str) -> WorkloadChoice:
        """The choices for one workload."""
        return self.by_workload.setdefault(workload, WorkloadChoice())

    def toggle(self, workload: str) -> None:
        """Marks a workload, or takes its mark away."""
        self.marked ^= {workload}

    def toggle_all(self, workloads: Iterable[str]) -> None:
        """Marks all of these; takes all marks away when all have one."""
        names = set(workloads)
        self.marked = self.marked - names if names <= self.marked else self.marked | names

    def toggle_variant(self, card: WorkloadCard, variant: str) -> None:
        """Leaves a variant out, or takes it in again. The baseline always runs: everything is compared with it."""
        if variant != card.baseline:
            self.of(card.name).left_out ^= {variant}

    def toggle_device(self, device: str) -> None:
        """Runs on a device too, or no longer; at least one remains."""
        if device not in self.devices:
            self.devices.append(device)
        elif len(self.devices) > 1:
            self.devices.remove(device)

    def next_preset(self) -> None:
        """The other preset."""
        self.preset = PRESETS[(PRESETS.index(self.preset) + 1) % len(PRESETS)]

    def parameters(self, card: WorkloadCard) -> dict[str, object]:
        """What the workload would be run with, without its sweep."""
        return dict(card.resolve(self.preset, self.of(card.name).settings))

    def estimate(self, card: WorkloadCard) -> Estimate | None:
        """What a workload of the catalogue would need with these parameters; None for a user's own."""
        if card.origin != "built in":
            return None
        from jaxprof.workloads import built_in

        return built_in(card.name).estimate(card.resolve(self.preset, self.of(card.name).settings))

    def plan(self, cards: Sequence[WorkloadCard]) -> list[Planned]:
        """The runs of `cards`. Raises UsageError naming the workload whose choices do not hold."""
        from jaxprof.worker import Choice, plan_runs

        planned: list[Planned] = []
        for card in cards:
            chosen = self.of(card.name)
            variants = [variant.name for variant in card.variants if variant.name not in chosen.left_out]
            try:
                planned += plan_runs(
                    [card],
                    Choice(
                        preset=self.preset,
                        settings=chosen.settings,
                        variants=variants if chosen.left_out else (),
                        devices=self.devices,
                        sweep=chosen.sweep,
                        budget_seconds=self.budget_seconds,
                        arguments=chosen.arguments,
                    ),
                )
            except JaxprofError as error:
                raise UsageError(f"{card.name}: {error.what}", error.mend) from error
        return planned

    def check(self, card: WorkloadCard, settings: dict[str, str], sweep: str) -> None:
        """Whether these settings hold for `card`. Raises UsageError naming the parameter."""
        from jaxprof.worker import read_sweep

        card.resolve(self.preset, settings)
        if sweep:
            read_sweep(sweep, card.parameters)
