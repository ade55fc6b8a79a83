"""Somebody's profile as the runs of a session: one for the whole, and one for each program that ran.

The run of the whole has the capture, the steps, the timeline, the trust, and the times of what belongs to no program of
its own. A program's run has its HLO and the times of its ops, so that every view of a measured run serves it as well.
Runs that are made here are named `program:N`; the client gives them their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jaxprof.events import (
    CaptureTaken,
    EnvironmentRead,
    Event,
    KernelsMeasured,
    ProgressMade,
    RunFinished,
    RunPlanned,
    TextRecorded,
    WarningRaised,
)
from jaxprof.trace.executions import executions_on
from jaxprof.trace.folders import choose
from jaxprof.trace.model import Trace
from jaxprof.trace.ops import OpTime, op_times
from jaxprof.trace.programs import Program, program_of, text_of
from jaxprof.trace.sources import read_chosen
from jaxprof.trace.summary import events_of, kernel_rows

KIND: Final = "imported"
VARIANT: Final = "profile"
PROGRAMS_KEPT: Final = 64
"""Programs that get a run of their own, the longest first; a session of eager ops can have thousands."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that ran, with the rows that are its own."""

    name: Program
    rows: list[OpTime]

    @property
    def seconds(self) -> float:
        return sum(row.self_seconds for row in self.rows)

    @property
    def devices(self) -> list[str]:
        return sorted({row.device for row in self.rows})


def import_profile(
    path: Path,
    run: str,
    emit: Callable[[Event], None],
    check: Callable[[], None] = lambda: None,
    *,
    profile_run: str = "",
    hosts: Sequence[str] = (),
) -> None:
    """Reads what was chosen at `path` and emits it as runs; that of the whole has the id `run`, and is not ended here.

    `check` is called now and then, and raises where the work must stop. Raises FileRefusedError and UsageError.
    """
    chosen = choose(path, profile_run, hosts)
    emit(ProgressMade(fraction=0.0, note=f"reading {', '.join(one.path.name for one in chosen.hosts[:3])}"))
    trace = read_chosen(chosen, check)
    check()
    emit(ProgressMade(fraction=0.4, note=f"{trace.events} events: adding up"))
    table = op_times(trace)
    programs = _programs(table)
    own, rest = programs[:PROGRAMS_KEPT], programs[PROGRAMS_KEPT:]
    emit(_plan(run, chosen.name, table))
    emit(_environment(trace))
    check()
    rows = [row for program in rest for row in program.rows]
    for event in events_of(trace, KIND, path=str(path), table=rows):
        check()
        emit(replace(event, run=run))
    if rest:
        emit(
            WarningRaised(
                code="many_programs",
                message=f"{len(programs)} programs ran: the {PROGRAMS_KEPT} longest have a run of their own here",
                advice="The times of the others stand with the whole profile.",
            )
        )
    for number, program in enumerate(own):
        check()
        emit(ProgressMade(fraction=0.6 + 0.4 * number / len(own), note=f"the HLO of {program.name[0]}"))
        _emit_program(trace, program, f"program:{number + 1}", str(path), emit)


def _programs(table: list[OpTime]) -> list[_Program]:
    groups: dict[Program, list[OpTime]] = {}
    for row in table:
        groups.setdefault(program_of(row.op), []).append(row)
    return sorted((_Program(name, rows) for name, rows in groups.items()), key=lambda one: -one.seconds)


def _plan(run: str, name: str, table: list[OpTime]) -> RunPlanned:
    """The run of the whole again, now that its devices are known."""
    return RunPlanned(
        run=run,
        workload=name,
        variant=VARIANT,
        how=KIND,
        device=_label(sorted({row.device for row in table})) or "no device",
    )


def _label(devices: list[str]) -> str:
    """`gpu:0`, or `gpu:0 and 7 more`."""
    return f"{devices[0]} and {len(devices) - 1} more" if len(devices) > 1 else "".join(devices)


def _environment(trace: Trace) -> EnvironmentRead:
    """What the profile says of the process and the devices that it was recorded in."""
    return EnvironmentRead(
        python="",
        numpy="",
        jax=trace.notes.get("jax_version"),
        jaxlib=trace.notes.get("jaxlib_version"),
        devices=[
            {"id": device, "platform": device.rpartition("/")[2].partition(":")[0], **_facts(facts)}
            for device, facts in trace.devices.items()
        ],
    )


_FACTS: Final = {
    "device_type_string": "kind",
    "device_vendor": "vendor",
    "core_count": "core_count",
    "memory_size": "memory_limit_bytes",
    "memory_bandwidth": "memory_bytes_per_second",
}
"""The profiler's names of what is worth keeping of a device, and ours."""


def _facts(facts: dict[str, int | float | str]) -> dict[str, Any]:
    found: dict[str, Any] = {ours: facts[theirs] for theirs, ours in _FACTS.items() if facts.get(theirs)}
    if isinstance(clock := facts.get("clock_rate"), int) and clock > 0:
        found["clock_hertz"] = clock * 1000
    if isinstance(peak := facts.get("peak_teraflops_per_second"), float) and peak > 0:
        found["flops_per_second"] = peak * 1e12
    if isinstance(peak := facts.get("peak_hbm_bw_gigabytes_per_second"), float) and peak > 0:
        found["memory_bytes_per_second"] = peak * 1e9
    return found


def _emit_program(trace: Trace, program: _Program, run: str, path: str, emit: Callable[[Event], None]) -> None:
    module, identity = program.name
    emit(
        RunPlanned(
            run=run,
            workload=module or "program without a name",
            variant=VARIANT,
            how=KIND,
            device=_label(program.devices),
            parameters={} if identity is None else {"program": str(identity)},
        )
    )
    text, problem = text_of(trace, program.name)
    if text is not None:
        emit(TextRecorded(run=run, name="hlo", text=text))
    else:
        emit(WarningRaised(run=run, code="no_hlo", message=f"the kernels of {module} have times only: {problem}"))
    calls = _calls(trace, program)
    emit(CaptureTaken(run=run, kind=KIND, platform=trace.platform, calls=calls, path=path))
    emit(KernelsMeasured(run=run, kind=KIND, calls=calls, rows=kernel_rows(trace, program.rows)))
    emit(RunFinished(run=run, status="ok"))


def _calls(trace: Trace, program: _Program) -> int | None:
    """Executions of the program on the first of its devices; None where they cannot be told apart."""
    for one in executions_on(trace, program.devices[0]):
        if one.program == program.name or (one.program[1] is not None and one.program[1] == program.name[1]):
            return len(one.starts)
    return None
