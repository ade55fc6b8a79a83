"""Facts of a whole session as one tree, as its JSON has it: the environment, and each run with its phases, kernels,
captures and memory.

A key that does not apply to a variant is absent; a value that could not be measured is null. Times are in seconds,
sizes in bytes. Within one major version of `schema`, keys are only added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jaxprof.analysis.kernels.memory import MemoryPicture, memory_of_run
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.analysis.runs.run_result import RunResult
from jaxprof.analysis.runs.speedup import steady_samples
from jaxprof.events import PHASES, SCHEMA_MAJOR, SCHEMA_MINOR, STARTUP_PHASES
from jaxprof.facts import SENTENCE, Fact, Facts, at, for_json, only_if, optional, pick, recorder, within
from jaxprof.facts.captures import COPIES, DEVICE_STEPS, TRUST, device_steps_of, trust_rows
from jaxprof.facts.kernels import KERNELS, kernel_rows
from jaxprof.facts.memory import MEMORY
from jaxprof.facts.programs import ASKED, COMPILES, FINDINGS, PROGRAM, TRANSFERS, rows_of
from jaxprof.facts.runs import CHECK, MODES, PARAMETERS, REVISION, RUNS, TIMES_COMPARED, RunRow, run_rows
from jaxprof.facts.sessions import PHASE, SESSIONS, TOTAL_MEANING
from jaxprof.facts.sides import KEPT
from jaxprof.facts.units import BY_NAME, BYTE_RATE, BYTES, COUNT, NUMBERS, OBJECT, ROWS, SECONDS, TEXT, TRUTH
from jaxprof.findings.program_result import RequestedFunction, function_request
from jaxprof.session import Phase, Session
from jaxprof.stats.summary import MedianTime, Summary

_PHASES_OF = {
    "numpy": ("run",),
    "eager": ("first_run", "run"),
    "jit": ("trace", "lower", "compile", "first_run", "run"),
}
"""Phases that the JSON of a run of this kind always has, null if the run ended before. Other phases are present if they
happened."""


@dataclass(frozen=True)
class _RunRow(RunRow):
    """A run of a session, with what is derived of it on demand."""

    session: Session = field(kw_only=True)

    @cached_property
    def memory(self) -> MemoryPicture | None:
        return memory_of_run(self.session, self.run.id)

    @property
    def has_memory(self) -> bool:
        return self.run.memory is not None or self.memory is not None

    @property
    def asked(self) -> RequestedFunction | None:
        return function_request(self.session, self.run)

    @property
    def measured(self) -> Any:
        from jaxprof.analysis.kernels.measured import measure_kernels

        return measure_kernels(self.session, self.run.id)

    @property
    def is_jit(self) -> bool:
        return self.run.plan.how == "jit"


@dataclass(frozen=True)
class _PhaseRow:
    """A phase of a run. The phase `startup` is what a fresh process spends before the first one."""

    result: RunResult
    name: str

    @property
    def recorded(self) -> Phase | None:
        return self.result.run.phases.get(self.name)

    @property
    def seconds(self) -> float | None:
        seconds = self.result.phase_seconds
        if self.name != "startup":
            return seconds.get(self.name)
        parts = [seconds[name] for name in STARTUP_PHASES if name in seconds]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def is_run(self) -> bool:
        return self.name == "run"

    @property
    def is_transfer(self) -> bool:
        return self.name in ("transfer_in", "transfer_out")

    @property
    def is_sampled(self) -> bool:
        return self.is_run or self.is_transfer

    @property
    def summary(self) -> Summary | None:
        """Distribution of the phase's times; None if it has a single one."""
        return self.result.summary if self.is_run else self.result.transfers.get(self.name)

    @property
    def interval(self) -> MedianTime | Summary | None:
        """The median of the phase with its interval; None if a single launch had it once."""
        return self.result.over_launches.get(self.name) or self.summary

    @property
    def rate(self) -> float | None:
        recorded, seconds = self.recorded, self.seconds
        if recorded is None or not recorded.bytes or not seconds or recorded.zero_copy:
            return None
        return recorded.bytes / seconds


def _startup_part(name: str, meaning: str) -> Fact[_PhaseRow]:
    def applies(phase: _PhaseRow) -> bool:
        return phase.name == "startup" and name in phase.result.phase_seconds

    return Fact(name, SECONDS, meaning, lambda phase: phase.result.phase_seconds[name], when=applies)


_PHASE: Facts[_PhaseRow] = (
    Fact("seconds", SECONDS, "Duration; for run and transfers the median of a call"),
    _startup_part("import", "Time to import jax"),
    _startup_part("backend_init", "Time to start the backend"),
    _startup_part("warm_up", "Time of the first tiny program"),
    *only_if(
        "is_sampled",
        Fact("median_seconds", SECONDS, "The median", "summary.median"),
        Fact("mad_seconds", SECONDS, "Median absolute deviation", "summary.mad"),
        Fact("minimum_seconds", SECONDS, "The shortest", "summary.minimum"),
        Fact("mean_seconds", SECONDS, "The mean", "summary.mean"),
        Fact("p95_seconds", SECONDS, "The 95th percentile; null for under twenty samples", "summary.p95"),
        Fact("maximum_seconds", SECONDS, "The longest", "summary.maximum"),
    ),
    *only_if(
        lambda phase: phase.is_sampled or phase.name in phase.result.over_launches,
        Fact("ci95_low_seconds", SECONDS, "Lower bound of the 95 % interval of the median", "interval.low"),
        Fact("ci95_high_seconds", SECONDS, "Upper bound of the 95 % interval of the median", "interval.high"),
    ),
    *only_if(
        "is_sampled",
        Fact("samples", COUNT, "How many samples", "summary.count"),
        Fact("calls_per_sample", COUNT, "Calls whose mean a sample is",
             lambda phase: at("calls_per_sample")(phase.result.run.series.get(phase.name))),
    ),
    *only_if(
        "is_transfer",
        Fact("bytes", BYTES, "Bytes that one transfer moves", "recorded.bytes"),
        Fact("bytes_per_second", BYTE_RATE, "Bytes over the time", "rate"),
    ),
    *only_if(
        lambda phase: phase.is_run and phase.result.run.plan.how != "numpy",
        *pick(RUNS.facts, "dispatch_median_seconds", "pipelined_median_seconds"),
    ),
    *only_if(
        "is_run",
        *pick(RUNS.facts, "first_after_pause_seconds", "page_faults", "kernel_share"),
    ),
    *only_if("is_sampled", Fact("total_seconds", SECONDS, TOTAL_MEANING, "recorded.seconds"), Fact(
        "zero_copy", TRUTH, "Whether nothing was moved: there is then no bandwidth and no speed-up",
        "recorded.zero_copy")),
    *only_if("is_run", *within("result", (MODES,))),
    Fact("launches_seconds", NUMBERS, "What it took in each launch",
         lambda phase: [launch.phases[phase.name].seconds for launch in phase.result.run.launches
                        if phase.name in launch.phases],
         when=lambda phase: phase.name in phase.result.over_launches),
    *within("recorded", for_json(PHASE)),
)  # fmt: skip


def _phases(row: _RunRow) -> dict[str, _PhaseRow]:
    seconds = row.result.phase_seconds
    names = ["startup"] if any(name in seconds for name in STARTUP_PHASES) else []
    names += [name for name in PHASES if name in seconds or name in _PHASES_OF.get(row.run.plan.how, ())]
    return {name: _PhaseRow(row.result, name) for name in names}


_MEMORY: Facts[_RunRow] = (
    *pick(RUNS.facts, "allocator_peak_bytes"),
    *within("run.memory", (
        Fact("alias_bytes", BYTES, "Memory of outputs that take the place of donated arguments"),
        Fact("generated_code_bytes", BYTES, "The machine code"),
        Fact("allocator_limit_bytes", BYTES, "What the allocator may take"),
        Fact("xla_peak_bytes", BYTES, "XLA's own peak, without what loops and, on a CPU, intermediates need",
             "peak_bytes"),
    )),
    *within("memory", MEMORY),
)  # fmt: skip


_VERSUS: Facts[_RunRow] = (
    *pick(RUNS.facts, "baseline_run", "speedup", "speedup_low", "speedup_high", "break_even_calls", "ahead_until_calls",
          "verdict"),
    *within("result.versus.speedup", (
        Fact("basis", TEXT, "What the interval rests on, in words"),
        *pick(TIMES_COMPARED, "reason", "launches", "launches_to_decide", "between_share"),
    )),
)  # fmt: skip
_CAPTURE: Facts[Any] = (
    Fact("kind", TEXT, "kernels, compile, ...", lambda capture: capture[0]),
    *within(lambda capture: capture[1], (
        Fact("platform", TEXT, "cpu, gpu, tpu"),
        Fact("calls", COUNT, "Calls that were captured"),
        Fact("seconds_with", SECONDS, "Median of a call while the profiler was on"),
        Fact("wall_seconds", SECONDS, "How long it took"),
        Fact("events", COUNT, "Events of the profile"),
        Fact("bytes", BYTES, "Its size"),
        Fact("path", TEXT, "Where it is"),
    )),
)  # fmt: skip


_IS_PROGRAM = "run.is_program"


def _program_rows(key: str, meaning: str, facts: Facts[Any]) -> Fact[_RunRow]:
    return Fact(key, ROWS, meaning, lambda row: row.program and rows_of(row.program, getattr(row.program, key)),
                inside=facts, when=_IS_PROGRAM)  # fmt: skip


_OF_PROGRAM: Facts[_RunRow] = (
    Fact("program", OBJECT, "The recorded program", lambda row: row, when=_IS_PROGRAM, inside=(
        *within("program", PROGRAM),
        Fact("requested_function", OBJECT, "The function that --function named", "asked", inside=ASKED),
    )),
    _program_rows("compiles", "The compile ledger, a row for each compilation", COMPILES),
    _program_rows("findings", "What is worth changing", FINDINGS),
    _program_rows("transfers", "Implicit copies between host and device", TRANSFERS),
)  # fmt: skip
_RUN: Facts[_RunRow] = (
    *for_json(RUNS.facts),
    *within("run", (PARAMETERS,)),
    Fact("phases", BY_NAME, "Its phases", _phases, inside=_PHASE),
    Fact("samples_seconds", NUMBERS,
         "Time of a call in each sample, in the order taken; of a disturbed run those of it alone",
         lambda row: list(steady_samples(row.run))),
    Fact("memory", OBJECT, "What the executable takes", lambda row: row if row.has_memory else None, inside=_MEMORY,
         when=lambda row: row.is_jit or row.has_memory),
    optional("check", OBJECT, "Whether the result is right", "run.check", inside=CHECK),
    Fact("versus", OBJECT, "The run beside its baseline", lambda row: row, inside=_VERSUS,
         when="run.plan.baseline"),
    Fact("kernels", ROWS, "Kernels: what the device launches",
         lambda row: list(kernel_rows(row.session, row.run)) or None, inside=KERNELS,
         when=lambda row: row.is_jit or row.run.measured or "hlo" in row.run.texts),
    Fact("captures", ROWS, "What was captured by the profiler", lambda row: list(row.run.captures.items()),
         inside=_CAPTURE, when="run.captures"),
    Fact("copies", ROWS, "Copies of the capture", "measured.transfers", inside=COPIES, when="measured"),
    Fact("device_steps", ROWS, "The steps of each device as a whole", lambda row: device_steps_of(row.run),
         inside=DEVICE_STEPS, when="run.steps"),
    Fact("trust", ROWS, "Whether the captures can be trusted, check by check", lambda row: trust_rows(row.run),
         inside=TRUST, when="run.trust"),
    Fact("settings", BY_NAME, "Settings that change a measurement", "run.environment.settings",
         when="run.environment"),
    optional("revision", OBJECT, "Git revision of the measured file", "run.revision", inside=REVISION),
    Fact("warnings", ROWS, "Warnings: why the figures are less certain than they look", "result.warnings",
         inside=(*SENTENCE[:2], Fact("fix", TEXT, "What to do about it", "advice"))),
)  # fmt: skip


@dataclass(frozen=True)
class SessionTree:
    """A session, with what is derived of the whole on demand."""

    session: Session

    @cached_property
    def runs(self) -> list[_RunRow]:
        return [_RunRow(row.label, row.result, row.program, session=self.session) for row in run_rows(self.session)]

    @cached_property
    def first_program(self) -> _RunRow | None:
        return next((row for row in self.runs if row.run.is_program), None)

    @cached_property
    def comparisons(self) -> list[AbResult]:
        return ab_results(self.session)


def _devices(session: Session) -> list[dict[str, Any]]:
    devices: dict[str, dict[str, Any]] = {}
    for run in session.runs.values():
        for device in run.environment.devices if run.environment is not None else []:
            devices.setdefault(str(device.get("id")), dict(device))
    return list(devices.values())


_ENVIRONMENT: Facts[SessionTree] = (
    *pick(SESSIONS.facts, "jax", "jaxlib", "numpy", "python"),
    Fact("devices", ROWS, "The devices that JAX saw", lambda row: _devices(row.session)),
    Fact("settings", BY_NAME, "Settings that change a measurement",
         "session.environment.settings"),
    Fact("machine", BY_NAME, "What is known of the machine", lambda row: dict(row.session.header.environment)),
)  # fmt: skip
SESSION: Facts[SessionTree] = (
    Fact("schema", TEXT, "Version of the session file's schema", lambda _: f"{SCHEMA_MAJOR}.{SCHEMA_MINOR}"),
    *pick(SESSIONS.facts, "jaxprof"),
    Fact("session", OBJECT, "The session itself", lambda row: row, inside=tuple(for_json(SESSIONS.facts))),
    Fact("environment", OBJECT, "Versions, devices, machine and settings", lambda row: row, inside=_ENVIRONMENT),
    *within("first_program", _OF_PROGRAM),
    Fact("runs", ROWS, "Runs: one variant of a workload, or a program", inside=_RUN),
    optional("comparisons", ROWS, "Measured comparisons that it holds", inside=KEPT),
)  # fmt: skip


def to_dict(session: Session) -> dict[str, Any]:
    """Return the documented form as plain dicts, lists, texts and numbers."""
    return recorder(SESSION)(SessionTree(session))
