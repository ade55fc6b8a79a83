"""The memory of a run: from the executable's own buffer assignment, else from its schedule.

*Peak memory* is one figure, the same wherever it is shown (`peak_memory`): the bytes that the program holds while it
runs. XLA's buffer assignment lists it buffer by buffer, and its memory analysis has the sums. Three other figures have
their own names. The *live size* is the bytes that the schedule needs at once, an estimate, and smaller. *XLA's own
peak* (`peak_memory_in_bytes`) leaves out what loops need, and on a CPU all intermediates. The *allocator's peak* is
measured, for the whole process. If XLA reported nothing (an HLO text alone), the peak is an estimate from the live
size, and `source` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import module_of
from jaxprof.base.values import frozen
from jaxprof.events import BuffersReported, MemoryReported
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.out_of_memory import OutOfMemory
    from jaxprof.hlo.kernels.liveness import Liveness, LiveValue
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.model import Module

ASSIGNMENT = "buffer assignment"
SCHEDULE = "schedule"
TOTALS = "memory analysis"
"""XLA reported the sums; buffers, if any, are derived from the HLO."""
REQUEST = "request"
"""Only the requested size is known."""

KINDS = ("argument", "output", "temporary", "constant")


@frozen
class MemoryPicture:
    source: str
    """`ASSIGNMENT`, `SCHEDULE` (an estimate), `TOTALS` or `REQUEST`."""
    peak_bytes: int | None
    """Sum of the parts: what XLA planned that the program holds (`peak_memory`). From a schedule, it is what must be
    alive at once, which is less. None if only a request is known."""
    parts: Mapping[str, int]
    """Bytes of the known parts that are not empty, by one of `KINDS`, largest first."""
    buffers: tuple[LiveValue, ...]
    """Buffers, largest first, only the first few hundred of a large program; those of an out-of-memory message if
    nothing else is known."""
    live_bytes: tuple[int, ...]
    """Live bytes after each instruction of the schedule, with loops at their body's peak; an estimate of at most 4096
    values."""
    asked_bytes: int | None
    """Bytes that a failed allocation, or a refused program, requested."""
    schedule: Liveness | None = None
    """What is alive at which instruction, an estimate; None without the program's HLO."""
    device_bytes: int | None = None
    """Memory of the device that the program was compiled for; None if neither a reading nor the table of devices says
    so."""

    def part(self, kind: str) -> int | None:
        """Return the bytes of one of `KINDS` at the peak: 0 if it is empty; None if it is unknown, as the sums do not
        have the constants."""
        if self.peak_bytes is None:
            return None
        return self.parts.get(kind, None if self.source == TOTALS and kind == "constant" else 0)

    @property
    def is_estimate(self) -> bool:
        """Whether the peak was derived from the schedule."""
        return self.source == SCHEDULE


def peak_memory(run: Run | None) -> int | None:
    """Return the peak memory of a run's program in bytes, as XLA planned it; None if XLA did not report it."""
    if run is None:
        return None
    if run.buffers is not None and run.buffers.peak_bytes is not None:
        return run.buffers.peak_bytes
    return program_bytes(run.memory)


def program_bytes(memory: MemoryReported | None) -> int | None:
    """Return the sum of a program's arguments, results and temporaries; None if XLA did not report it. Constants are
    not in it, so a peak by the buffer assignment may be more."""
    parts = _totals(memory)
    return sum(parts.values()) if parts else None


def device_memory(session: Session, device: str) -> int | None:
    """Return the bytes of memory that a device has, by the last reading that says so; None if none does."""
    limits = [reading.memory_limit_bytes for reading in session.readings.get(device, ())]
    return next(filter(None, reversed(limits)), None)


def memory_of_run(session: Session, run_id: str) -> MemoryPicture | None:
    """Return the memory of a run; None without a program and without an out-of-memory failure. The schedule is read
    once for each text, in a few milliseconds. Raises KeyError for an unknown run."""
    run = session.runs[run_id]
    message = message_of(run)
    asked = run.buffers.asked_bytes if run.buffers is not None else None
    asked = message.bytes["asked"] if asked is None and message is not None else asked
    module = module_of(session, run)
    estimate = module.once(memory_of) if module is not None else None
    reported, parts = run.buffers, _totals(run.memory)
    if reported is not None and reported.peak_bytes is not None:
        picture = _picture_from_report(reported, estimate, asked)
    elif parts:
        derived = estimate or MemoryPicture(TOTALS, None, {}, (), (), None)
        picture = replace(derived, source=TOTALS, peak_bytes=sum(parts.values()), parts=parts, asked_bytes=asked)
    elif estimate is not None:
        picture = replace(estimate, asked_bytes=asked)
    elif asked is not None:
        picture = MemoryPicture(REQUEST, None, {}, message.buffers if message is not None else (), (), asked)
    else:
        return None
    from jaxprof.analysis.runs.ceilings import device_elsewhere

    absent = device_elsewhere(run)
    device_bytes = absent.memory_bytes if absent is not None else device_memory(session, run.plan.device)
    return replace(picture, device_bytes=device_bytes)


def memory_sums(session: Session, run: Run) -> MemoryPicture | None:
    """Return the peak of a run and its parts without what lives when: as XLA reported them, else by the schedule."""
    if run.buffers is not None and run.buffers.peak_bytes is not None:
        return MemoryPicture(run.buffers.source, run.buffers.peak_bytes, _parts(run.buffers), (), (), None)
    if totals := _totals(run.memory):
        return MemoryPicture(TOTALS, sum(totals.values()), totals, (), (), None)
    return memory_of_run(session, run.id)


def message_of(run: Run) -> OutOfMemory | None:
    """Return what the out-of-memory message that ended a run says (its traceback has all of it); None if it ended in
    another way."""
    end = run.finished
    if end is None or run.status not in ("failed", "crashed"):
        return None
    from jaxprof.analysis.kernels.out_of_memory import read_out_of_memory

    return read_out_of_memory(end.traceback) or read_out_of_memory(end.error)


def _totals(memory: MemoryReported | None) -> Mapping[str, int]:
    """Return the sums that XLA reported; empty if one is missing. A donated argument does not count as an output
    too."""
    if memory is None:
        return {}
    argument, output, temporary = memory.argument_bytes, memory.output_bytes, memory.temporary_bytes
    if argument is None or output is None or temporary is None:
        return {}
    return _largest_first({"argument": argument, "output": output - (memory.alias_bytes or 0), "temporary": temporary})


def _largest_first(sizes: Mapping[str, int]) -> Mapping[str, int]:
    return {kind: size for kind, size in sorted(sizes.items(), key=lambda item: -item[1]) if size > 0}


def _parts(event: BuffersReported) -> Mapping[str, int]:
    return _largest_first({kind: size for kind, size in event.parts.items() if kind in KINDS})


def _picture_from_report(event: BuffersReported, estimate: MemoryPicture | None, asked: int | None) -> MemoryPicture:
    from jaxprof.hlo.kernels.liveness import LiveValue

    alive = {buffer.instruction for buffer in estimate.buffers if buffer.at_peak} if estimate is not None else None
    buffers: list[LiveValue] = []
    for row in event.buffers:
        at_peak: bool | None = False
        if row.kind in ("argument", "constant") or (alive is not None and row.instruction in alive):
            at_peak = True
        elif alive is None or row.shared_with:
            # Memory that several values use in turn has the name of one of them; at the peak it may hold another.
            at_peak = None
        buffers.append(LiveValue(**asdict(row), at_peak=at_peak))
    return MemoryPicture(
        source=event.source,
        peak_bytes=event.peak_bytes,
        parts=_parts(event),
        buffers=tuple(buffers),
        live_bytes=estimate.live_bytes if estimate is not None else tuple(event.live_bytes),
        asked_bytes=asked,
        schedule=estimate.schedule if estimate is not None else None,
    )


def memory_of_dump(stages: ModuleStages) -> MemoryPicture | None:
    """Return the memory of a module in its stages: by the buffer assignment that XLA dumped next to it, else by its
    schedule. Raises JaxprofError if its text cannot be read."""
    from jaxprof.hlo.kernels.cost.peaks import device_of_kind

    module = stages.module()
    picture = module.once(memory_of)
    if stages.assignment is not None:
        from jaxprof.trace.buffers import buffers_in_dump

        reported = buffers_in_dump(stages.assignment(), module)
        picture = _picture_from_report(reported, picture, None) if reported is not None else picture
    device = device_of_kind(stages.device) if stages.device else None
    return picture and replace(picture, device_bytes=device.memory_bytes if device is not None else None)


def memory_of(module: Module) -> MemoryPicture | None:
    """Return the memory of a module by its schedule, an estimate; None if it has no schedule."""
    from jaxprof.hlo.kernels.liveness import liveness

    live = liveness(module)
    if live is None:
        return None
    parts = _largest_first(live.parts)
    return MemoryPicture(SCHEDULE, live.peak_bytes, parts, live.values, live.live_bytes, None, live)
