"""The table of runs of a session. A run is one variant of a workload on one device, or a recorded program.

The phases of a program are the sums over all its compilations, and its warnings include the codes of its findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from jaxprof.analysis.runs.run_result import RunResult, results
from jaxprof.base.text import json_text
from jaxprof.base.units import UNKNOWN, spread
from jaxprof.events import STAGES, CheckReported, RevisionRead
from jaxprof.facts import RUN, Fact, Facts, Relation, at, columns, in_tables, only_if, optional, pick, within
from jaxprof.facts.memory import MEMORY
from jaxprof.facts.units import (
    BY_NAME,
    BYTE_RATE,
    BYTES,
    COUNT,
    FLOPS,
    LIST,
    NUMBER,
    NUMBER_BY_NAME,
    OBJECT,
    RATE,
    RATIO,
    REAL_BYTES,
    ROWS,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
)
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED
from jaxprof.stats.comparison import TimeComparison

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.memory import MemoryPicture
    from jaxprof.analysis.programs.result import ProgramResult


@dataclass(frozen=True)
class RunRow:
    label: str
    result: RunResult
    program: ProgramResult | None = None

    @property
    def run(self) -> Run:
        return self.result.run

    @cached_property
    def memory(self) -> MemoryPicture | None:
        """Peak of the run's program and its parts; None if nothing is known of it. Reads no HLO if XLA reported it."""
        from jaxprof.analysis.kernels.memory import memory_sums

        return memory_sums(self.result.session, self.run)


def run_rows(session: Session) -> Iterator[RunRow]:
    """Yield a row for each run, programs included, in the order of the plan."""
    from jaxprof.findings.program_result import program_result  # a report of measured runs alone needs none

    for result in results(session):
        run = result.run
        program = program_result(session, run.id) if run.is_program else None
        yield RunRow(run.plan.variant, result, program)


def interval_text(result: RunResult) -> str:
    """Return the interval of the median relative to it, `± 0.9 %`; both ends if it is wider than the median."""
    summary = result.summary
    return UNKNOWN if summary is None else spread(summary.relative_halfwidth, summary.low, summary.high)


def interval_beside(result: RunResult) -> str:
    """Return `interval_text` as it follows the median: ` ± 0.9 %`, ` (12 ms to 96 ms)`; empty if it is unknown."""
    text = interval_text(result)
    if text == UNKNOWN:
        return ""
    return f" {text}" if text.startswith("±") else f" ({text})"


def _phase(name: str) -> Callable[[RunRow], float | None]:
    def read(row: RunRow) -> float | None:
        if row.program is None:
            return row.result.phase_seconds.get(name)
        if name not in STAGES:
            return None
        times = [getattr(compiled, f"{name}_seconds") for compiled in row.program.compiles]
        known = [took for took in times if took is not None]
        return sum(known) if known else None

    return read


def _modes(result: RunResult) -> list[tuple[float, float]] | None:
    """Return location and share of the two modes, the faster first; None if there may be only one."""
    modes = result.modes
    return None if modes is None else [(modes.low, modes.low_share), (modes.high, 1 - modes.low_share)]


MODES: Fact[RunResult] = Fact(
    "modes", ROWS, "The two modes of the samples; null if one may be all there is", _modes, inside=(
        Fact("seconds", SECONDS, "Where it is", itemgetter(0)),
        Fact("share", SHARE, "Its share of the samples", itemgetter(1)),
    ),
)  # fmt: skip


def _interval_end(name: str, bound: str) -> Callable[[RunRow], float | None]:
    return lambda row: at(bound)(row.result.over_launches.get(name))


def _interval(name: str) -> Iterator[Fact[RunRow]]:
    for bound, word in (("low", "Lower"), ("high", "Upper")):
        meaning = f"{word} bound of the 95 % interval of {name}_seconds; null for a single launch"
        yield Fact(f"{name}_ci95_{bound}_seconds", SECONDS, meaning, _interval_end(name, bound))


def _transfer_rate(row: RunRow) -> float | None:
    moved, took = row.run.phases.get("transfer_in"), row.result.phase_seconds.get("transfer_in")
    return moved.bytes / took if moved and moved.bytes and took and not moved.zero_copy else None


def _wall_seconds(row: RunRow) -> float | None:
    if row.program is not None:
        return row.program.known_wall_seconds
    closed = row.run.closed if row.run.plan.how != IMPORTED else None  # that of a profile is of reading it
    return closed.wall_seconds if closed is not None else None


def _seconds_without_op(row: RunRow) -> dict[str, float] | None:
    from jaxprof.analysis.kernels.measured import capture_of  # only for a run that has a capture

    captured = capture_of(row.run) if row.run.measured else None
    return dict(captured.unattributed_seconds) if captured is not None else None


_WORST: Facts[CheckReported] = (
    Fact("at", TEXT, "Its index", "worst_at"),
    Fact("got", TEXT, "What it is, as text", "worst_got"),
    Fact("expected", TEXT, "What it should be, as text", "worst_expected"),
)
CHECK: Facts[CheckReported] = (
    Fact("passed", TRUTH, "Whether the result is right; null if it could not be checked"),
    Fact("max_relative_error", NUMBER, "Largest error of an array over its largest magnitude"),
    Fact("tolerance", NUMBER, "What errors were allowed"),
    Fact("against", TEXT, "What the result was compared with"),
    Fact("precision", TEXT, "The effective precision of matrix products"),
    Fact("note", TEXT, "What else is to be known"),
    Fact("elements", COUNT, "Numbers that were compared"),
    Fact("wrong_elements", COUNT, "Numbers of the result that are beyond the tolerance"),
    Fact("unstable_elements", COUNT, "Numbers of the expected result that are as far off once its inputs are rounded"),
    Fact("worst", OBJECT, "The number with the largest error; null if all are equal",
         lambda check: check if check.worst_got else None, inside=_WORST),
)  # fmt: skip
TIMES_COMPARED: Facts[TimeComparison] = (
    Fact("verdict", TEXT, "faster, slower, same or inconclusive"),
    Fact("reason", TEXT, "Why the verdict is inconclusive"),
    Fact("margin", SHARE, "Differences within it are called the same"),
    Fact(
        "speedup",
        RATIO,
        "How many times as fast as its baseline, as A or as the first side; above 1 is faster",
        "ratio",
    ),
    Fact("speedup_low", RATIO, "Lower bound of the 95 % interval of the speed-up", "low"),
    Fact("speedup_high", RATIO, "Upper bound of the 95 % interval of the speed-up", "high"),
    Fact("half_width", SHARE, "Half of the width of the interval over the ratio"),
    Fact("launches", COUNT, "Launches that were measured"),
    Fact("launches_to_decide", COUNT, "How many more launches would give a verdict"),
    Fact("unit", TEXT, "What the interval rests on: launch, or pair of blocks"),
    Fact("units", COUNT, "How many launches or pairs it rests on"),
    Fact("how_measured", TEXT, "How the sides were measured, in words", "how"),
    Fact("between_share", SHARE, "Share of the variance of a ratio that lies between launches"),
)
REVISION: Facts[RevisionRead] = (
    Fact("repository", TEXT, "Its folder"),
    Fact("commit", TEXT, "Git commit, abbreviated"),
    Fact("dirty", TRUTH, "Whether there were changes that were not committed; null if unknown"),
)
OF_RUN: Facts[Run] = (
    Fact("workload", TEXT, "Name of the workload, the function or the program", "plan.workload"),
    Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's", "plan.variant", "variant"),
    Fact("how", TEXT, "numpy, eager (op by op), jit, compile (not run), imported (a profile), program", "plan.how"),
    Fact("device", TEXT, "Where it ran: cpu:0, cuda:1", "plan.device", "device"),
    Fact("device_kind", TEXT, "Kind of the device: NVIDIA H100 80GB HBM3, cpu"),
)
PARAMETERS: Fact[Run] = Fact("parameters", BY_NAME, "Parameters of the workload", "plan.parameters")
_ALL = "; of a program all its compilations together"
RUNS = Relation(
    "runs",
    "A row for each run: one variant of a workload on one device, or a recorded program",
    (
        RUN,
        *within("run", OF_RUN),
        *in_tables(
            Fact("parameters", OBJECT, "Parameters of the workload, as a JSON object",
                 lambda row: json_text(row.run.plan.parameters)),
        ),
        Fact("preset", TEXT, "Name of the sizes", "run.plan.preset"),
        Fact("status", TEXT,
             "ok, failed, cancelled, crashed, timed out; interrupted; queued or running while it is written",
             "run.shown.status"),
        Fact("error", TEXT, "Why it failed", "run.shown.error"),
        Fact("hint", TEXT, "What to do about that", "run.shown.hint"),
        *in_tables(
            Fact("median_seconds", SECONDS, "Median time of one blocked call of the steady run",
                 "result.summary.median"),
            Fact("ci95_low_seconds", SECONDS, "Lower bound of the 95 % interval of that median", "result.summary.low"),
            Fact("ci95_high_seconds", SECONDS, "Upper bound of the 95 % interval of that median",
                 "result.summary.high"),
            Fact("mad_seconds", SECONDS, "Median absolute deviation of the samples", "result.summary.mad"),
            Fact("minimum_seconds", SECONDS, "Shortest sample", "result.summary.minimum", "minimum"),
            Fact("mean_seconds", SECONDS, "Mean of the samples", "result.summary.mean", "mean"),
            Fact("p95_seconds", SECONDS, "95th percentile of the samples", "result.summary.p95", "p95"),
            Fact("maximum_seconds", SECONDS, "Longest sample", "result.summary.maximum", "maximum"),
            Fact("samples", COUNT, "Number of samples of the steady run", "result.summary.count", "count"),
            *columns(within("result", (MODES,))),
            Fact("trace_seconds", SECONDS, f"Python to jaxpr{_ALL}", _phase("trace"), "trace"),
            Fact("lower_seconds", SECONDS, f"jaxpr to StableHLO{_ALL}", _phase("lower"), "lower"),
            Fact("compile_seconds", SECONDS, f"StableHLO to an executable{_ALL}", _phase("compile"), "compile"),
            *(fact for name in ("trace", "lower", "compile", "first_run") for fact in _interval(name)),
            Fact("transfer_in_seconds", SECONDS, "Median time of copying the inputs to the device",
                 _phase("transfer_in")),
            Fact("first_run_seconds", SECONDS, "First call of the compiled program", _phase("first_run"), "first run"),
            Fact("transfer_out_seconds", SECONDS, "Median time of copying the result to the host",
                 _phase("transfer_out")),
            Fact("dispatch_median_seconds", SECONDS, "Median time until a call returns, before its result is there",
                 "result.dispatch_median_seconds", "dispatch"),
            Fact("pipelined_median_seconds", SECONDS, "Median time per call where only the last of many is awaited",
                 "result.pipelined_median_seconds", "pipelined"),
            Fact("first_after_pause_seconds", SECONDS, "Median of the first calls after the turn of another run",
                 "result.first_after_pause_seconds", "after pause"),
            Fact("page_faults", NUMBER, "Minor page faults of one call of the steady run",
                 "result.page_faults", "page faults"),
            Fact("kernel_share", SHARE, "Share of these calls' CPU time in the operating system's kernel",
                 "result.kernel_share", "in kernel"),
        ),
        Fact("launches", COUNT, "Fresh processes that measured it", lambda row: len(row.run.launches) or None),
        *only_if(
            lambda row: row.run.plan.how == "jit" or bool(row.result.cost.source),
            Fact("flops", FLOPS,
                 "FLOPs of one call on one device: counted from its HLO, or stated by its workload; null: unknown",
                 "result.flops"),
            Fact("accessed_bytes", REAL_BYTES, "Bytes that the kernels of one call read and write, known likewise",
                 "result.bytes_accessed"),
            Fact("cost_source", TEXT, "Where FLOPs and bytes come from", "result.cost.source"),
            Fact("cost_note", TEXT, "Why they are unknown, or an upper bound", "result.cost.note"),
            Fact("flops_per_second", RATE, "FLOPs over the median", "result.flops_per_second", "FLOP/s"),
            Fact("bytes_per_second", BYTE_RATE, "Accessed bytes over the median", "result.bytes_per_second", "traffic"),
        ),
        *in_tables(
            *pick(within("memory", MEMORY), "peak_bytes", "peak_source"),
            Fact("transfer_in_bytes_per_second", BYTE_RATE, "Bytes of the inputs over the time of copying them",
                 _transfer_rate, "transfer in"),
            *pick(within("memory", MEMORY), "argument_bytes", "output_bytes", "temporary_bytes", "constant_bytes"),
            Fact("allocator_peak_bytes", BYTES, "Peak of the device's allocator, measured; null on a CPU",
                 "run.memory.allocator_peak_bytes"),
            Fact("check_passed", TRUTH, "Whether the result agrees with that of the baseline", "run.check.passed"),
            *within("run.check", pick(CHECK, "max_relative_error", "elements", "wrong_elements")),
            Fact("baseline_run", TEXT, "Id of the run that it is compared with", "run.plan.baseline"),
            *within("result.versus.speedup", pick(TIMES_COMPARED, "speedup", "speedup_low", "speedup_high", "verdict")),
            *within("result.versus.speedup", pick(TIMES_COMPARED, "reason", "launches_to_decide")),
            Fact("break_even_calls", COUNT, "Calls from which on it has taken no longer than its baseline, "
                 "the one-time costs of both included; null: never, or unknown", "result.versus.break_even_calls"),
            Fact("ahead_until_calls", COUNT, "Calls up to which it is ahead, if its one-time cost is less and a call "
                 "takes longer; null: otherwise", "result.versus.ahead_until_calls"),
            Fact("warning_codes", LIST, "Codes of its warnings, of a program also of its findings", lambda row: [
                *(warning.code for warning in row.result.warnings),
                *(finding.code for finding in (row.program.findings if row.program is not None else ())),
            ]),
        ),
        Fact("wall_seconds", SECONDS, "From the start of the run to its end; null of a profile", _wall_seconds),
        optional("side", TEXT, "Which side of a measured comparison it is: A, B...", "run.plan.side"),
        *only_if(
            "run.measured",
            Fact("unattributed_seconds", NUMBER_BY_NAME, "Time of each device on no HLO op", _seconds_without_op),
        ),
        *in_tables(
            *within("run.revision", pick(REVISION, "commit", "dirty")),
        ),
    ),
    lambda file: run_rows(file.session),
)  # fmt: skip
