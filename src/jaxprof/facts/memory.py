"""Facts of the memory of a program: the peak and its parts, the buffers, and what is alive at the peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter, methodcaller
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from jaxprof.base.grouping import thin_out
from jaxprof.facts import Fact, Facts, RunItems, column, within
from jaxprof.facts.units import BYTES, COUNT, INDEX, NUMBERS, OBJECT, ROWS, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.memory import MemoryPicture
    from jaxprof.hlo.kernels.liveness import Liveness, LiveValue, SchedulePoint
    from jaxprof.session import Run, Session

_LIVE_IN_JSON = 512


def source_line(value: LiveValue | SchedulePoint) -> str | None:
    """Return the source line of a value, `model.py:12`; None if unknown."""
    return f"{PurePath(value.file).name}:{value.line}" if value.file else None


_SOURCE: Facts[Any] = (
    Fact("op_name", TEXT, "JAX's path", title="op", widest=40),
    Fact("file", TEXT, "File of the source line"),
    Fact("line", INDEX, "Line of the source", lambda value: value.line if value.file else None),
)
_VALUE: Facts[Any] = (
    Fact("bytes", BYTES, "Size of the buffer", title="bytes"),
    Fact("kind", TEXT, "argument, output, temporary, constant", title="kind"),
    Fact("instruction", TEXT, "The HLO instruction that makes it", title="instruction", widest=40),
    Fact("shape", TEXT, "Its type and shape", title="shape", widest=40),
    *_SOURCE,
    column("source", source_line, widest=40),
)
ALIVE: Facts[LiveValue] = _VALUE
BUFFERS: Facts[LiveValue] = (
    *_VALUE,
    Fact("at_peak", TRUTH, "Whether it is alive at the peak", title="at peak"),
    Fact("shared_with", COUNT, "Other values that use the same memory at other times"),
)


def _at_peak(key: str) -> Callable[[Liveness], Any]:
    return lambda schedule: getattr(schedule.points[schedule.peak_at], key)


_PEAK: Facts[Liveness] = (
    Fact("instruction", TEXT, "The HLO instruction", _at_peak("instruction")),
    Fact("position", INDEX, "Its position in the order of the entry, from 0", _at_peak("position")),
    Fact("instructions", COUNT, "Instructions of the entry", "length"),
    Fact("bytes", BYTES, "Size of what is alive there", _at_peak("bytes")),
    *within(lambda schedule: schedule.points[schedule.peak_at], _SOURCE),
    Fact("alive", ROWS, "What is alive there, the largest first: an estimate",
         lambda schedule: schedule.alive(schedule.peak_at), inside=ALIVE),
)  # fmt: skip
MEMORY: Facts[MemoryPicture] = (
    Fact("peak_source", TEXT, "Where the peak comes from: buffer assignment, memory analysis (sums), schedule, request",
         "source"),
    Fact("peak_bytes", BYTES, "Peak memory: what XLA planned that the program holds; from a schedule an estimate",
         title="peak memory"),
    Fact("argument_bytes", BYTES, "Memory of the arguments", methodcaller("part", "argument")),
    Fact("output_bytes", BYTES, "Memory of the results; those in the place of donated arguments do not count",
         methodcaller("part", "output")),
    Fact("temporary_bytes", BYTES, "Memory of the temporaries", methodcaller("part", "temporary")),
    Fact("constant_bytes", BYTES, "Memory of the constants", methodcaller("part", "constant")),
    Fact("asked_bytes", BYTES, "What was requested when memory ran out"),
    Fact("buffers", ROWS, "Buffers of the executable, the largest first", inside=BUFFERS),
    Fact("live_bytes", NUMBERS, "Bytes that are live over the schedule: an estimate",
         lambda picture: thin_out(picture.live_bytes, _LIVE_IN_JSON)),
    Fact("peak_at", OBJECT, "Where in the order of the instructions the live size is highest: an estimate",
         "schedule", inside=_PEAK),
)  # fmt: skip


def _buffers(session: Session, run: Run) -> Iterator[tuple[str, LiveValue]]:
    from jaxprof.analysis.kernels.memory import memory_of_run

    picture = memory_of_run(session, run.id)
    if picture is not None:
        yield from ((picture.source, buffer) for buffer in picture.buffers)


RELATION = RunItems(
    (
        Fact("peak_source", TEXT, "buffer assignment (XLA's own), or schedule (an estimate)", itemgetter(0)),
        *within(itemgetter(1), BUFFERS),
    ),
    _buffers,
).relation("memory", "The buffers of each compiled program, the largest first; its totals are in runs")
