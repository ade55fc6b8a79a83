"""What belongs together in a report: the runs of one workload at one size, and the figures that others published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxprof.errors import UsageError
from jaxprof.events import EnvironmentRead, Scalar
from jaxprof.results import RunResult, results
from jaxprof.results.programs.derive import is_program
from jaxprof.session import Run, Session
from jaxprof.units import integer
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Published


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that can be compared with each other: one workload, one set of parameters."""

    workload: str
    parameters: dict[str, Scalar]
    preset: str
    runs: tuple[RunResult, ...]

    @property
    def devices(self) -> list[str]:
        """The devices of its runs, each once."""
        return list(dict.fromkeys(one.run.plan.device for one in self.runs))

    def label(self, run: Run) -> str:
        """The variant; with the device where the group has several."""
        return run.plan.variant if len(self.devices) == 1 else f"{run.plan.variant} {run.plan.device}"


def groups(session: Session) -> list[Group]:
    """All runs of a session that can be compared, in the order of the plan: those that measured something."""
    found: dict[tuple[str, tuple[tuple[str, Scalar], ...]], list[RunResult]] = {}
    for one in results(session):
        if is_program(one.run) or one.run.plan.how == "imported":
            continue
        plan = one.run.plan
        found.setdefault((plan.workload, tuple(sorted(plan.parameters.items()))), []).append(one)
    return [
        Group(workload, dict(runs[0].run.plan.parameters), runs[0].run.plan.preset, tuple(runs))
        for (workload, _), runs in found.items()
    ]


def published(workload: str, variants: Sequence[str] | None = None) -> list[Published]:
    """The published figures of a built-in workload (of these variants only); none for a user's own."""
    try:
        figures = built_in(workload).published
    except UsageError:
        return []
    return [figure for figure in figures if variants is None or figure.variant in variants]


def environment(session: Session) -> EnvironmentRead | None:
    """What the first engine with jax reported; the first without it where none has it."""
    reported = [run.environment for run in session.runs.values() if run.environment is not None]
    return next((one for one in reported if one.jax is not None), reported[0] if reported else None)


def parameters_text(parameters: dict[str, Scalar]) -> str:
    """`n = 1 000 000, k = 32`."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in parameters.items())


def _value(value: Scalar) -> str:
    return integer(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
