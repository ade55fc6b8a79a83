"""Facts of kernels: from HLO, from a capture, and both joined for each run of a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxprof.base.grouping import grouped
from jaxprof.base.units import UNKNOWN, percent, scaled
from jaxprof.facts import Fact, Facts, RunItems, only_if, within
from jaxprof.facts.units import (
    BYTE_RATE,
    BYTES,
    COUNT,
    FLOPS,
    INDEX,
    LIST,
    NUMBER,
    NUMBERS,
    OBJECT,
    RATE,
    ROWS,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
)

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.analysis.kernels.ranking import Ranked
    from jaxprof.hlo.kernels.kernels import Kernel
    from jaxprof.hlo.kernels.origin import HloSourceLocation
    from jaxprof.session import Run, Session

LEAST_SHARE = 0.0001
"""Smallest share that is shown as a figure; a smaller one is shown as less than this."""


def lines_text(locations: Sequence[HloSourceLocation]) -> str:
    """Return all source lines in short, `model.py:88,90 layers.py:7`; a dash for none."""
    if len(locations) == 1:  # as most kernels of a large module have
        return locations[0].short
    lines = grouped((source.file, source.line) for source in locations)
    words = (f"{file.rpartition('/')[2]}:{','.join(map(str, numbers))}" for file, numbers in lines.items())
    return " ".join(words) or UNKNOWN


NAME: Fact[Any] = Fact("name", TEXT, "Name of the HLO instruction")
KERNEL: Facts[Kernel] = (
    Fact("kind", TEXT, "loop fusion, GEMM, all-reduce, ..."),
    Fact("opcode", TEXT, "The HLO operation"),
    Fact("instructions", COUNT, "Instructions inside"),
    Fact("count", COUNT, "Executions in one call of the program; null if a trip count is unknown"),
    Fact("conditional", TRUTH, "Whether it is in a branch, so that count is an upper bound"),
    Fact("flops", FLOPS, "FLOPs of one execution, counted from the shapes"),
    Fact("bytes", BYTES, "Bytes that one execution reads and writes"),
    Fact("read_bytes", BYTES, "Bytes that one execution reads", "bytes_read"),
    Fact("written_bytes", BYTES, "Bytes that one execution writes", "bytes_written"),
    Fact("intensity", NUMBER, "FLOPs for each byte"),
    Fact("file", TEXT, "File of the source that it comes from", "source.file"),
    Fact("line", INDEX, "Line of the source", "source.line"),
    Fact("sources", ROWS, "All lines that were fused into it", inside=(
        Fact("file", TEXT, "The file"),
        Fact("line", INDEX, "The line"),
        Fact("own", TRUTH, "Whether it is outside installed packages", "is_own"),
    )),
    Fact("op_name", TEXT, "JAX's path: jit(f)/dot_general"),
    Fact("computation", TEXT, "Its computation: the entry, a loop's body, a branch"),
)  # fmt: skip
"""Facts of a kernel from HLO, except its name."""
RANKED: Facts[Ranked] = (
    *within("kernel", KERNEL),
    Fact("bound", TEXT, "What limits it on its device: memory, compute, links"),
    Fact("least_seconds", SECONDS, "Least time of one execution by the device's ceilings: a lower bound",
         "least_once"),
)  # fmt: skip
"""Facts of a kernel from HLO on a device, except its name."""
_LAUNCH: Facts[Any] = (
    Fact("grid", NUMBERS, "Blocks of the launch, x, y, z"),
    Fact("block", NUMBERS, "Threads of a block, x, y, z"),
    Fact("registers", COUNT, "Registers of a thread"),
    Fact("static_shared_bytes", BYTES, "Shared memory of a block that the compiler fixed"),
    Fact("dynamic_shared_bytes", BYTES, "Shared memory of a block that was requested at launch"),
    Fact("private_bytes", BYTES, "Private memory of a thread (AMD)"),
    Fact("group_bytes", BYTES, "Group memory (AMD)"),
    Fact("occupancy", SHARE, "Share of the threads that can be resident, in 0..1"),
)
_SHARE: Fact[Any] = Fact(
    "share",
    SHARE,
    "Share of all kernels, in 0..1: of the self time in a capture, of a whole profile or capture window; in a listing "
    "of HLO of the least time, else of the bytes",
    title="share",
    show=lambda share: percent(share) if share is None or share >= LEAST_SHARE else f"< {percent(LEAST_SHARE, 1)}",
)
MEASURED: Facts[MeasuredKernel] = (
    Fact("module", TEXT, "Name of the module in the capture"),
    Fact("devices", LIST, "The devices that ran it"),
    Fact("executions", COUNT, "Executions in the capture, on all devices", "count", "times"),
    Fact("calls", COUNT, "Calls of the program in the capture"),
    Fact("total_seconds", SECONDS, "Sum of its times in the capture; on a CPU of all threads"),
    Fact("self_seconds", SECONDS,
         "Sum of its times without what ran inside it; those of all kernels add up to the whole", title="self"),
    Fact("wall_seconds", SECONDS, "Time in which at least one execution was running"),
    Fact("median_seconds", SECONDS, "Median of one execution", title="median"),
    Fact("minimum_seconds", SECONDS, "Shortest execution", title="least"),
    Fact("maximum_seconds", SECONDS, "Longest execution", title="most"),
    _SHARE,
    Fact("of_peak", SHARE, "Share of the device's peak FLOP/s that it reaches, in 0..1",
         title="of peak FLOP/s"),
    Fact("of_bandwidth", SHARE, "Share of the device's peak bandwidth that it reaches; above 1 if served by a cache",
         title="of peak B/s"),
    Fact("in_hlo", TRUTH, "Whether the recorded HLO has it"),
    Fact("names", LIST, "Names under which it occurs in the capture"),
    Fact("launch", OBJECT, "The longest launch on a GPU", inside=_LAUNCH),
    Fact("per_call_seconds", SECONDS, "Self time in one call of the program on one device", title="per call"),
    Fact("parallelism", NUMBER, "Sum of its times over the wall time: threads that worked on it at once"),
    Fact("flops_per_second", RATE, "FLOPs over the time", title="FLOP/s"),
    Fact("bytes_per_second", BYTE_RATE, "Bytes over the time", title="B/s", show=scaled),
)  # fmt: skip
"""Facts of a kernel in a capture, except its name."""


class KernelRow(NamedTuple):
    """A kernel, from HLO, from a capture, or from both. A list may have a million: a dataclass takes longer to make."""

    name: str
    static: Ranked | None
    measured: MeasuredKernel | None

    @property
    def share(self) -> float | None:
        """Share of the self time of all kernels if it was measured, else of the weight by its HLO."""
        return self.measured.share if self.measured is not None else self.static and self.static.share


KERNELS: Facts[KernelRow] = (
    NAME,
    *within("static", (Fact("number", INDEX, "Its position in the order of execution, from 0"), *RANKED)),
    _SHARE,
    *only_if("measured", *within("measured", (fact for fact in MEASURED if fact is not _SHARE))),
)  # fmt: skip
"""Facts of a kernel wherever kernels are listed, for one execution; JSON has those of a capture if it was measured."""


def kernel_rows(session: Session, run: Run) -> Iterator[KernelRow]:
    """Yield the kernels of the HLO with what was measured of each, then those that only the capture has."""
    from jaxprof.analysis.kernels import module_of
    from jaxprof.analysis.kernels.measured import kernels_of, measure_kernels

    measured_run = measure_kernels(session, run.id)
    measured_by_name = measured_run.by_name() if measured_run is not None else {}
    joined: set[int] = set()
    module = module_of(session, run) if "hlo" in run.texts else None
    if module is not None:
        from jaxprof.analysis.kernels.ranking import KernelCeilings
        from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run

        machine = machine_of_run(run, ceilings_for(session, run))
        links = None
        if machine is not None and machine.levels:
            from jaxprof.devices.absent.least_time import exchanges  # only for a machine of several devices

            links = exchanges(module, machine)
        ceilings = KernelCeilings(machine, links)
        for number, listed in enumerate(kernels_of(session, run.id, running=True) or ()):
            static = ceilings.row(number, listed)
            counterpart = measured_by_name.get(static.kernel.name)
            joined.add(id(counterpart))
            yield KernelRow(static.kernel.name, static, counterpart)
            static.kernel.release()
    for kernel in measured_run.kernels if measured_run is not None else ():
        if id(kernel) not in joined:
            yield KernelRow(kernel.name, None, kernel)


def capture_rows(session: Session, run: Run) -> list[KernelRow] | None:
    """Return the kernels of the captures of a run, longest self time first; None without a capture."""
    from jaxprof.analysis.kernels.measured import capture_of

    if capture_of(run) is None:
        return None
    rows = ((row.measured.self_seconds, row) for row in kernel_rows(session, run) if row.measured is not None)
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


KERNELS_OF_RUNS = RunItems(KERNELS, kernel_rows).relation(
    "kernels",
    "The kernels of each run: those of its HLO, with what a capture measured of them, then those only a capture has",
)
