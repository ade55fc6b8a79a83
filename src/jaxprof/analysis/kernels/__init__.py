"""The kernels of a compiled program: ranked, measured, and the memory that they need; and the modules of a session, and
of whatever else holds HLO. Reading a profile takes a process of its own, which belongs to the runner above this module,
so the caller passes the function that reads it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.target import Kind, kind_of
from jaxprof.base.errors import FileRefusedError, JaxprofError
from jaxprof.base.text import REDACTED
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.events import KernelLaunch
    from jaxprof.hlo.kernels.kernels import Kernel
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.model import Module
    from jaxprof.session import Run, Session


@frozen
class MeasuredKernel:
    """One HLO op as measured. Times are in seconds."""

    name: str
    """Name of the instruction, as in `Kernel.name`."""
    module: str
    devices: tuple[str, ...]
    count: int
    """Number of executions on all devices."""
    calls: int | None
    """Number of calls of the program in the capture; None if unknown."""
    total_seconds: float
    """Sum of the op's intervals: CPU time on a CPU, where one op may run on several threads."""
    self_seconds: float
    """Sum of the intervals without the ops that ran inside them."""
    wall_seconds: float
    """Union of the intervals on a device, summed over devices."""
    median_seconds: float
    """Median time of one execution; with several devices, on the one that took the longest."""
    minimum_seconds: float
    maximum_seconds: float
    share: float | None
    """Share of the self time of all ops of the run, from 0 to 1; in a profile or a capture window, of all its
    programs."""
    flops_per_second: float | None
    """FLOP/s from the HLO's count; None if the count is unknown, or the kernel took no time."""
    bytes_per_second: float | None
    of_peak: float | None
    """`flops_per_second` over the device's ceiling for the kernel's dtype; None if either is unknown."""
    of_bandwidth: float | None
    """`bytes_per_second` over the device's bandwidth; above 1 if a cache served the data."""
    kernel: Kernel | None
    """The kernel of the run's HLO, or the loop, branch or call; None if the HLO lacks it, or without HLO."""
    in_hlo: bool | None
    """Whether the run's HLO has the op; None without HLO."""
    names: tuple[str, ...]
    launch: KernelLaunch | None
    """Launch configuration and occupancy of the longest kernel; None if the capture does not have it."""

    @property
    def parallelism(self) -> float | None:
        """Mean number of threads that worked on the op at once."""
        return self.total_seconds / self.wall_seconds if self.wall_seconds > 0 else None

    @property
    def per_call_seconds(self) -> float | None:
        """Self time in one call of the program, on one device."""
        return self.self_seconds / self.calls / len(self.devices) if self.calls else None


HOW_TO_COMPILE = "Compiled variants have one: jaxprof run NAME --variant jit."


def how_to_get_hlo(session: Session) -> str:
    """Return how to record what this session did with compiled programs in it."""
    started = next((run.program.started for run in session.programs if run.program is not None), None)
    if started is None:
        return HOW_TO_COMPILE
    if started.how not in ("script", "module"):
        return "The capture of a program has them: pass capture_steps=5 to jaxprof.record."
    argv = ["FILE.py"] if REDACTED in " ".join(started.argv) else started.argv
    return f"The capture of a program has them: {shlex.join(('jaxprof', 'script', '--capture-steps', '5', *argv))}"


def modules_of(session: Session) -> list[ModuleStages]:
    """Return the modules of all runs with a text of one of the stages, in the order of the session."""
    from jaxprof.hlo.stages import STAGES, ModuleStages

    return [
        ModuleStages(
            key=run.id,
            label=run.label,
            stages={name: partial(_text, session, run.id, name) for name in names},
            device=run.plan.device,
            sources=session.sources,
        )
        for run in session.runs.values()
        if (names := [stage.name for stage in STAGES if stage.name in run.texts])
    ]


def _text(session: Session, run: str, name: str) -> str:
    return session.text(run, name) or ""


def module_of(session: Session, run: Run) -> Module | None:
    """Return the optimised HLO of a run; None if it has none, or it cannot be read: the HLO view says why."""
    try:
        return read_module(session, run)
    except JaxprofError:
        return None


def read_module(session: Session, run: Run, stage: str = "hlo") -> Module | None:
    """Return what `module_of` does, for any stage. Raises FileRefusedError if the text is damaged in the session."""
    text = session.text(run.id, stage) if stage in run.texts else None
    if not text:
        return None
    from jaxprof.hlo.stages import modules

    try:
        return modules(text, run.plan.device)[0]
    except JaxprofError:
        return None


def open_hlo(path: Path, read_profile: Callable[[Path], Session]) -> tuple[list[ModuleStages], Session | None]:
    """Return the modules at `path`, and the session that they are runs of; for a profile, the one made from it by
    `read_profile`. Blocks. Raises FileRefusedError if there are none, and whatever `read_profile` raises."""
    kind = kind_of(path)
    if kind not in (Kind.SESSION, Kind.JOB, Kind.PROFILE):
        from jaxprof.hlo.paths import modules_at

        return modules_at(path), None
    if kind is Kind.PROFILE:
        session, problem = read_profile(path), f"{path} holds no HLO"
        hint = "An .xplane.pb holds HLO where enable_hlo_proto was on (the default)."
    else:  # loading a job raises the error that names the session of a process
        from jaxprof.session import Session, load

        session, problem = load(path, Session), f"no run of {path} has a compiled program"
        hint = how_to_get_hlo(session)
    modules = modules_of(session)
    if not modules:
        raise FileRefusedError(problem, hint)
    return modules, session
