"""The tables of what was measured and compiled: sessions, runs, phases, samples, kernels, memory, readings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.measured import MeasuredKernel, measured
from jaxprof.analysis.memory import MemoryBuffer, MemoryPicture, buffers_of
from jaxprof.events import DeviceReading
from jaxprof.facts import (
    BYTES,
    COUNT,
    FLOPS,
    INDEX,
    LIST,
    MOMENT,
    NUMBER,
    OBJECT,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
    Fact,
    Part,
    Relation,
    Repeated,
    SessionFile,
    at,
    within,
)
from jaxprof.facts.runs import RUN
from jaxprof.report.captures import MEASURED
from jaxprof.report.kernels import DATA
from jaxprof.report.memory import BUFFERS
from jaxprof.report.runs import environment, state_of
from jaxprof.report.table import described
from jaxprof.session import Phase, Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import Ranked


def _environment(name: str) -> Any:
    def value(file: SessionFile) -> Any:
        found = environment(file.session)
        return getattr(found, name) if found is not None else None

    return value


SESSIONS: Final = Relation(
    "sessions",
    "The sessions themselves, a row each",
    (
        Fact("id", TEXT, "Identity of the session, whatever its file is called", at("session.header.session")),
        Fact("created", MOMENT, "When it was begun, in UTC", at("session.header.created")),
        Fact("path", TEXT, "Its file", lambda file: str(file.path)),
        Fact("host", TEXT, "Name of the machine", at("session.header.host")),
        Fact("command", LIST, "The command line, as a JSON list", at("session.header.command")),
        Fact(
            "state",
            TEXT,
            "complete, being written, interrupted, or the signal that ended it",
            lambda file: state_of(file.session, live=file.live),
        ),
        Fact("jaxprof", TEXT, "Version of jaxprof that wrote it", at("session.header.jaxprof")),
        Fact("jax", TEXT, "Version of jax that was measured", _environment("jax")),
        Fact("jaxlib", TEXT, "Version of jaxlib", _environment("jaxlib")),
        Fact("numpy", TEXT, "Version of numpy", _environment("numpy")),
        Fact("python", TEXT, "Version of Python that was measured", _environment("python")),
        Fact("settings", OBJECT, "Settings that change a measurement, as a JSON object", _environment("settings")),
        Fact("machine", OBJECT, "What is known of the machine, as a JSON object", at("session.header.environment")),
        Fact("process_index", COUNT, "Which process of a job it was, from 0", at("session.process_index")),
        Fact("process_count", COUNT, "Processes of that job", lambda file: file.session.process_count or None),
    ),
    lambda file: [file],
)


@dataclass(frozen=True, slots=True)
class _PhaseRow:
    run: Run
    launch: int | None
    phase: Phase


def _phases(file: SessionFile) -> Iterator[_PhaseRow]:
    for run in file.session.runs.values():
        of_launches = [(launch.number, launch.phases) for launch in run.launches]
        if not any(phases is run.phases for _, phases in of_launches):
            of_launches.insert(0, (None, run.phases))  # type: ignore[arg-type]
        for number, phases in of_launches:
            for phase in phases.values():
                yield _PhaseRow(run, number, phase)


PHASES: Final = Relation(
    "phases",
    "The phases of a run in each of its launches: import, backend_init, warm_up, trace, lower, compile, transfer_in, "
    "first_run, run, transfer_out",
    (
        RUN,
        Fact("launch", INDEX, "Which of the run's fresh processes, from 1"),
        Fact("phase", TEXT, "Name of the phase", at("phase.name")),
        Fact(
            "seconds",
            SECONDS,
            "What it took; of run and of a transfer the whole sampling, whose single times are in samples",
            at("phase.seconds"),
        ),
        Fact("bytes", BYTES, "Bytes that one transfer moves", at("phase.bytes")),
        Fact("zero_copy", TRUTH, "Whether nothing was moved: host and device share the memory", at("phase.zero_copy")),
        Fact("note", TEXT, "What else is known of it", at("phase.note")),
    ),
    _phases,
)


def _samples(file: SessionFile) -> Iterator[Part]:
    for run in file.session.runs.values():
        for name, series in run.series.items():
            count = len(series.seconds)
            turns = [(launch.number, turn) for launch in run.launches for turn in launch.turns]
            known = name == "run" and sum(len(turn.seconds) for _, turn in turns) == count
            yield {
                "run": Repeated(run.id),
                "series": Repeated(name),
                "number": range(1, count + 1),
                "launch": [number for number, turn in turns for _ in turn.seconds] if known else Repeated(None),
                "block": [turn.number for _, turn in turns for _ in turn.seconds] if known else Repeated(None),
                "seconds": series.seconds,
                "calls_per_sample": Repeated(series.calls_per_sample),
            }


SAMPLES: Final = Relation(
    "samples",
    "The raw times, a row for each sample",
    (
        RUN,
        Fact("series", TEXT, "run (blocked calls), dispatch, pipelined, transfer_in, transfer_out"),
        Fact("number", INDEX, "Its place in the series of the run, from 1, in the order of time"),
        Fact("launch", INDEX, "Which of the run's fresh processes took it, from 1"),
        Fact("block", INDEX, "Number of its turn: the blocks of all runs of a session have one order"),
        Fact("seconds", SECONDS, "Time of one call"),
        Fact("calls_per_sample", COUNT, "Calls whose mean a sample is"),
    ),
    arrays=_samples,
)


@dataclass(frozen=True, slots=True)
class _KernelRow:
    run: Run
    name: str
    static: Ranked | None
    measured: MeasuredKernel | None


def _kernels(file: SessionFile) -> Iterator[_KernelRow]:
    for run in file.session.runs.values():
        yield from _kernels_of(file.session, run)


def _kernels_of(session: Session, run: Run) -> Iterator[_KernelRow]:
    """The kernels of the HLO, each with what was measured of it; then what only the capture has."""
    found = measured(session, run.id)
    of_name = found.by_name() if found is not None else {}
    joined: set[int] = set()
    for static in _static(session, run):
        seen = of_name.get(static.kernel.name)
        joined.add(id(seen))
        yield _KernelRow(run, static.kernel.name, static, seen)
        static.kernel.release()
    for kernel in found.kernels if found is not None else ():
        if id(kernel) not in joined:
            yield _KernelRow(run, kernel.name, None, kernel)


def _static(session: Session, run: Run) -> Iterable[Ranked]:
    """The kernels of the run's HLO on its device, in the order of execution; none without HLO that can be read."""
    if "hlo" not in run.texts:
        return ()
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.measured import kernels_of
    from jaxprof.analysis.ranking import KernelCeilings

    kernels = kernels_of(session, run.id) or ()
    ceilings = KernelCeilings(machine_of_run(run, ceilings_for(session, run)))
    return (ceilings.row(number, kernel) for number, kernel in enumerate(kernels))


KERNELS: Final = Relation(
    "kernels",
    "The kernels of each run: those of its HLO, with what a capture measured of them, then those only a capture has",
    (
        RUN,
        Fact("name", TEXT, "Name of the HLO instruction"),
        *within(
            at("static"),
            [
                Fact("number", INDEX, "Its place in the order of execution, from 0"),
                *described(
                    DATA,
                    ("kind", TEXT, "loop fusion, GEMM, all-reduce, ..."),
                    ("opcode", TEXT, "The HLO operation"),
                    ("instructions", COUNT, "Instructions inside"),
                    ("count", COUNT, "Executions in one call of the program; NULL if a trip count is unknown"),
                    ("conditional", TRUTH, "Whether it is in a branch, so that count is an upper bound"),
                    ("flops", FLOPS, "FLOPs of one execution, counted from the shapes"),
                    ("bytes", BYTES, "Bytes that one execution reads and writes"),
                    ("bytes_read=read_bytes", BYTES, "Bytes that one execution reads"),
                    ("bytes_written=written_bytes", BYTES, "Bytes that one execution writes"),
                    ("intensity", NUMBER, "FLOPs for each byte"),
                    ("bound", TEXT, "What limits it on its device: memory, compute, links"),
                    ("least_seconds", SECONDS, "Least time of one execution by the device's ceilings: a lower bound"),
                    ("file", TEXT, "File of the source line that it comes from"),
                    ("line", INDEX, "That line"),
                    ("op_name", TEXT, "JAX's path: jit(f)/dot_general"),
                    ("computation", TEXT, "Its computation: the entry, a loop's body, a branch"),
                ),
            ],
        ),
        *within(
            at("measured"),
            described(
                MEASURED,
                ("module", TEXT, "Name of the module in the capture"),
                ("devices", LIST, "The devices that ran it, as a JSON list"),
                ("count=executions", COUNT, "Executions in the capture, on all devices"),
                ("calls", COUNT, "Calls of the program in the capture"),
                ("total_seconds", SECONDS, "Sum of its times in the capture; on a CPU of all threads"),
                ("self_seconds", SECONDS, "The same without what ran inside it: these add up to the whole"),
                ("wall_seconds", SECONDS, "Time in which at least one execution was running"),
                ("per_call_seconds", SECONDS, "Self time in one call of the program on one device"),
                ("median_seconds", SECONDS, "Median of one execution"),
                ("minimum_seconds", SECONDS, "Shortest execution"),
                ("maximum_seconds", SECONDS, "Longest execution"),
                ("share", SHARE, "Share of the self time of all kernels of the run, in 0..1"),
                ("of_peak", SHARE, "Reached share of the device's FLOP/s, in 0..1"),
                ("of_bandwidth", SHARE, "Reached share of the device's bandwidth; above 1 where a cache served it"),
                ("launch.registers=registers", COUNT, "Registers of a thread of the GPU kernel"),
                ("launch.occupancy=occupancy", SHARE, "Occupancy of the longest, in 0..1"),
                ("uncertain", TRUTH, "Whether some of it was matched to this name by a guess"),
            ),
        ),
    ),
    _kernels,
)


@dataclass(frozen=True, slots=True)
class _BufferRow:
    run: Run
    picture: MemoryPicture
    buffer: MemoryBuffer


def _buffers(file: SessionFile) -> Iterator[_BufferRow]:
    for run in file.session.runs.values():
        picture = buffers_of(file.session, run.id)
        if picture is not None:
            yield from (_BufferRow(run, picture, buffer) for buffer in picture.buffers)


MEMORY: Final = Relation(
    "memory",
    "The buffers of each compiled program, the largest first; its totals are in runs",
    (
        RUN,
        Fact("source", TEXT, "buffer assignment (XLA's own), or schedule (an estimate)", at("picture.source")),
        *within(
            at("buffer"),
            described(
                BUFFERS,
                ("bytes", BYTES, "Size"),
                ("kind", TEXT, "argument, output, temporary, constant"),
                ("instruction", TEXT, "The HLO instruction that makes it"),
                ("shape", TEXT, "Its type and shape"),
                ("at_peak", TRUTH, "Whether it is alive at the peak"),
                ("shared_with", COUNT, "Other values that take the same place at other times"),
                ("op_name", TEXT, "JAX's path"),
                ("source.file=file", TEXT, "File of the source line"),
                ("source.line=line", INDEX, "That line"),
            ),
        ),
    ),
    _buffers,
)


@dataclass(frozen=True, slots=True)
class _ReadingRow:
    at_seconds: float
    reading: DeviceReading


def _readings(file: SessionFile) -> Iterator[_ReadingRow]:
    zero = file.session.header.monotonic_seconds
    for reading in chain.from_iterable(file.session.readings.values()):
        yield _ReadingRow(reading.monotonic_seconds - zero, reading)


READINGS: Final = Relation(
    "readings",
    "Live readings of the devices while the session was recorded",
    (
        Fact("device", TEXT, "cpu:0, cuda:0", at("reading.device")),
        Fact("at_seconds", SECONDS, "Seconds since the session began"),
        *within(
            at("reading"),
            [
                Fact("utilisation", SHARE, "Share of the time in which it was busy, in 0..1"),
                Fact("memory_used_bytes", BYTES, "Memory in use"),
                Fact("memory_limit_bytes", BYTES, "Memory that there is"),
                Fact("power_watts", NUMBER, "Power"),
                Fact("temperature_celsius", NUMBER, "Temperature"),
                Fact("clock_hertz", NUMBER, "Clock"),
                Fact("load_average", NUMBER, "Of the host: processes that want to run"),
                Fact("throttle_reasons", LIST, "Why it is throttled, as a JSON list"),
            ],
        ),
    ),
    _readings,
)
