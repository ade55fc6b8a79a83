"""The user's choices on the Start screen (workloads, variants, sizes, devices), and the line that says what Enter does.

The same module makes the plan, so that Enter does what the line says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from textual.content import Content

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.text import columns, safe
from jaxprof.base.units import counted
from jaxprof.events import DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES
from jaxprof.tui.keys import key_of

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun, PlanOptions
    from jaxprof.tui.shell.profiler import PlanSides
    from jaxprof.workloads.model import VariantInfo, WorkloadInfo


@dataclass(slots=True)
class HomeOptions:
    """What the user has chosen on the screen Start: for all runs, and for single workloads."""

    preset: str = "quick"
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    launches: int = DEFAULT_LAUNCHES
    devices: list[str] = field(default_factory=lambda: ["cpu:0"])
    by_workload: dict[str, PlanOptions] = field(default_factory=dict)
    """Options that the user changed for one workload: parameters as valid text, sweep, variants, arguments."""

    def of(self, workload: str) -> PlanOptions:
        """Return the options of a workload's runs: its own, and those of all runs."""
        from jaxprof.runner.planning import PlanOptions  # not needed for the first frame

        return replace(
            self.by_workload.get(workload) or PlanOptions(),
            preset=self.preset,
            devices=tuple(self.devices),
            budget_seconds=self.budget_seconds,
            launches=self.launches,
        )

    def change(self, workload: str, **changes: Any) -> None:
        self.by_workload[workload] = replace(self.of(workload), **changes)

    def is_changed(self, workload: str) -> bool:
        chosen = self.by_workload.get(workload)
        return chosen is not None and bool(chosen.settings or chosen.sweep or chosen.variants)

    def toggle_device(self, device: str) -> None:
        """Add or remove a device; at least one remains."""
        if device not in self.devices:
            self.devices.append(device)
        elif len(self.devices) > 1:
            self.devices.remove(device)

    def take_usable(self, usable: Iterable[str]) -> None:
        """Leave out the chosen devices that are not `usable`, unless none is: a run says why."""
        from jaxprof.devices.inventory.machine import parse_device

        known = list(usable)
        there: list[str] = []
        for name in self.devices:
            with suppress(UsageError):
                there.append(parse_device(name, known))
        self.devices[:] = there or self.devices

    def parameters(self, info: WorkloadInfo) -> dict[str, object]:
        """Return the parameters of the workload, without its sweep."""
        return dict(info.resolve(self.preset, self.of(info.name).settings))

    def plan(self, infos: Sequence[WorkloadInfo]) -> list[PlannedRun]:
        """Return the runs of `infos`. Raises UsageError, which names the workload with invalid options."""
        from jaxprof.runner.planning import plan_runs

        planned: list[PlannedRun] = []
        for info in infos:
            try:
                planned += plan_runs(info, self.of(info.name))
            except JaxprofError as error:
                raise UsageError(f"{info.name}: {error.what}", error.hint) from error
        return planned

    def comparison(self, infos: Sequence[WorkloadInfo]) -> PlanSides:
        """Return the function that plans the comparison of `infos`, A first, as `jaxprof compare` does: each with its
        compiled variant, on the chosen device. Call that function in a thread, because child processes make the inputs;
        it raises UsageError if they do not fit. Raises UsageError for options that a comparison cannot have."""
        if len(self.devices) > 1:
            raise UsageError(
                f"{len(self.devices)} devices are chosen: a comparison has one",
                f"{key_of('home.devices')} goes to them; Space unmarks one.",
            )
        for info in infos:
            compiled = any(variant.how == "jit" for variant in self.variants_of(info))
            problem = "" if compiled else "has no compiled variant to compare"
            problem = "has a sweep: a comparison has one size" if self.of(info.name).sweep else problem
            if problem:
                hint = f"{key_of('home.edit')} on it opens its parameters, which have sweep and variants."
                raise UsageError(f"{info.name} {problem}", hint)
        device, preset = self.devices[0], self.preset
        options = [(info, self.of(info.name), self.variants_of(info)) for info in infos]

        def plan(interpreter: Interpreter, folder: Path) -> list[PlannedRun]:
            from jaxprof.runner.sides import ComparedSide, SideOptions, plan_comparison

            sides = [
                ComparedSide(
                    label=label,
                    title=", ".join([info.name, *(f"{name}={value}" for name, value in chosen.settings.items())]),
                    workload=replace(info, variants=variants),
                    interpreter=interpreter,
                    settings=chosen.settings,
                    arguments=chosen.arguments,
                )
                for label, (info, chosen, variants) in zip("AB", options, strict=True)
            ]
            return plan_comparison(sides, SideOptions(device=device, preset=preset, folder=folder))

        return plan

    def variants_of(self, info: WorkloadInfo) -> tuple[VariantInfo, ...]:
        named = self.of(info.name).variants
        return tuple(variant for variant in info.variants if not named or variant.name in named)


def plan_line(chosen: Sequence[WorkloadInfo], choices: HomeOptions, width: int) -> Content:
    """Return what Enter would run and how long it will take, or the error in the options."""
    from jaxprof.runner.planning import estimate_time

    try:
        planned = choices.plan(chosen)
    except JaxprofError as error:
        return Content.styled(f" {safe(error.what)}", "$error")
    what = chosen[0].name if len(chosen) == 1 else f"{len(chosen)} workloads"
    runs = counted(len(planned), "run")
    launches = counted(choices.launches, "launch")
    lasts = estimate_time(planned)
    where = f"on {', '.join(choices.devices)}"
    forms = (f" · {runs} × {launches} · {choices.preset}{sizes} · {where} · {lasts}" for sizes in (" sizes", ""))
    room = width - columns(safe(what)) - 3
    rest = next((form for form in forms if columns(form) <= room), f" · {runs} × {launches} · {lasts} · {where}")
    return Content.assemble((" ⏎ ", "bold $footer-key-foreground"), (safe(what), "bold"), (rest, "$text-muted"))
