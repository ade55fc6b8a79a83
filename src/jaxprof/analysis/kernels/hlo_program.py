"""A compiled program, of a session, a dump or a profile, with what its HLO needs to be judged: its device and links;
and how one that is not compiled yet is compiled."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import MeasuredKernel, how_to_get_hlo, modules_of
from jaxprof.base.errors import JaxprofError, UsageError, unknown_name
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.memory import MemoryPicture
    from jaxprof.devices.absent import Machine
    from jaxprof.devices.absent.least_time import StepTime
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.model import Module
    from jaxprof.session import Run, Session

_LOAD_AUTOTUNED = "--xla_gpu_load_autotune_results_from"


@frozen(kw_only=True)
class CompileOptions:
    """The options that apply when jaxprof compiles, as given on the command line, by the names of their parameters."""

    variant: str = ""
    preset: str = "quick"
    settings: Sequence[str] = ()
    """Settings such as `n=4000`, as `--set` takes them."""
    arguments: Sequence[str] = ()
    for_devices: str = ""
    """The value of `--for`."""
    axes: str = ""
    """The value of `--mesh`."""
    shard: Sequence[str] = ()
    autotune_results: Path | None = None
    """A file of what XLA's autotuner chose on a GPU (`--xla_gpu_dump_autotune_results_to`, or in a dump's folder)."""
    device: str | None = None
    """The value of `--device`; once `placed`, an id."""
    python: Path | None = None
    keep_constants: bool = False
    out: Path | None = None
    force: bool = False

    def environment(self) -> dict[str, str]:
        """Variables of the process that compiles."""
        if self.autotune_results is None:
            return {}
        flags = f'{os.environ.get("XLA_FLAGS", "")} {_LOAD_AUTOTUNED}="{self.autotune_results.resolve()}"'
        return {"XLA_FLAGS": flags.strip()}


@dataclass(eq=False)
class HloProgram:
    """One compiled program. Its HLO is parsed on first use."""

    stages: ModuleStages
    session: Session | None = None
    """The session that the program is a run of; None for a module of a dump."""
    notes: list[str] = field(default_factory=list)
    """What to know of how it was compiled or found, a line each."""

    @property
    def label(self) -> str:
        """Name of the program for people, with its run's id."""
        return f"{self.stages.key} {self.stages.label}" if self.session is not None else self.stages.label

    @property
    def run(self) -> Run | None:
        """The run that compiled the program; None for a module of a dump."""
        return self.session.runs[self.stages.key] if self.session is not None else None

    @property
    def has_hlo(self) -> bool:
        """Whether the program has optimised HLO, or the closest stage to it."""
        return "hlo" in self.stages.stages

    @cached_property
    def hlo(self) -> Module:
        """The program's optimised HLO. Raises UsageError if there is none, HloError if it cannot be read."""
        if not self.has_hlo:
            raise UsageError(f"{self.label} has no HLO", "Compiled variants have it: jaxprof run NAME --variant jit.")
        return self.stages.module()

    @cached_property
    def device(self) -> DevicePeaks | None:
        """The program's device with its roofline ceilings; None if unknown."""
        if self.session is None or self.run is None:
            from jaxprof.hlo.kernels.cost.peaks import device_of_kind

            return device_of_kind(self.stages.device) if self.stages.device else None
        from jaxprof.analysis.runs.ceilings import ceilings_for

        return ceilings_for(self.session, self.run)

    @property
    def device_label(self) -> str:
        """The device that the program was compiled for, as `--for` takes it; without a run the program's label."""
        return self.run.plan.device if self.run is not None else self.label

    @cached_property
    def measured(self) -> Mapping[str, MeasuredKernel]:
        """What a capture of the program's run measured, by the kernel's name."""
        if self.session is None:
            return {}
        from jaxprof.analysis.kernels.measured import measure_kernels

        found = measure_kernels(self.session, self.stages.key)
        return found.by_name() if found is not None else {}

    @property
    def elsewhere(self) -> bool:
        """Whether the program was compiled for a device that this machine does not have."""
        if self.run is None or self.run.plan.how != "compile":
            return False
        from jaxprof.analysis.runs.ceilings import device_elsewhere

        return device_elsewhere(self.run) is not None

    @property
    def machine(self) -> Machine | None:
        """The program's device, and how several of them are connected; None if unknown."""
        if self.device is None:
            return None
        from jaxprof.analysis.runs.ceilings import machine_of_run

        return machine_of_run(self.run, self.device)

    @cached_property
    def step(self) -> StepTime | None:
        """Lower bound and estimate of one call on the device; None without a device."""
        from jaxprof.devices.absent.least_time import step_time

        return step_time(self.hlo, machine) if (machine := self.machine) is not None else None

    @property
    def memory(self) -> MemoryPicture | None:
        """What the program needs of memory: by XLA's buffer assignment if there is one, else by its schedule."""
        from jaxprof.analysis.kernels.memory import memory_of_dump, memory_of_run

        of_session = memory_of_run(self.session, self.stages.key) if self.session is not None else None
        return of_session if of_session is not None else memory_of_dump(self.stages)

    @property
    def memory_needed_bytes(self) -> int | None:
        """Peak memory as XLA planned it; None if XLA did not report it."""
        from jaxprof.analysis.kernels.memory import peak_memory

        return peak_memory(self.run)


def readable_programs(sources: Sequence[ModuleStages]) -> list[HloProgram]:
    """Return every module of every readable file, with a note on each unreadable one. If no file can be read, raises
    the last error."""
    modules: list[HloProgram] = []
    notes: list[str] = []
    failure: JaxprofError | None = None
    for stages in sources:
        try:
            modules += [HloProgram(each) for each in stages.each()]
        except JaxprofError as error:
            failure = error
            notes.append(f"left out: {error.what}")
    if failure is not None and not modules:
        raise failure
    modules[0].notes += notes
    return modules


def programs_in(session: Session, run: str | None = None) -> list[HloProgram]:
    """Return the runs of a session, or the named one. Raises UsageError."""
    if run is not None and run not in session.runs:
        raise unknown_name("run", run, session.runs)
    chosen = [stages for stages in modules_of(session) if run is None or stages.key == run]
    if not chosen:
        named = session.runs[str(run)].label
        raise UsageError(f"run {run} ({named}) has no compiled program", how_to_get_hlo(session))
    return [HloProgram(stages, session) for stages in chosen]
