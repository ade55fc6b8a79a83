"""Fold the events of a session into its state.

Applying an event never fails: a file may come from a newer version, may be truncated, or may have been edited, and
jaxprof shows what it can read of it. `notices` counts what could not be used.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.files import unpack
from jaxprof.base.text import REDACTED
from jaxprof.base.units import counted, seconds
from jaxprof.events import WarningRaised
from jaxprof.events.base import session_state, with_failures
from jaxprof.session.readings import MOST_READINGS, thinned
from jaxprof.session.run import PROGRAM_EVENTS, Phase, RecordedProgram, Run, RunLaunch, Series, Turn, are_iterations


def with_text(warning: WarningRaised) -> WarningRaised:
    """Return the warning with its message and advice. Values that are missing are empty."""
    if warning.message or warning.code not in _TEXTS:
        return warning
    values = defaultdict(str, {name: _value_text(name, value) for name, value in warning.values.items()})
    values["because"] = _CAUSES.get(values["cause"], "")
    text = _TEXTS[warning.code]
    message, advice = text(values) if callable(text) else text
    return replace(warning, message=message.format_map(values), advice=advice.format_map(values))


def _value_text(name: str, value: str | int | float) -> str:
    """Return a value as text; the end of its name is its unit."""
    if isinstance(value, str):
        return value
    if name.endswith("_seconds"):
        return seconds(value)
    return f"{value:.3g}" if name.endswith("_flops") else str(value)


def _sharding(values: Mapping[str, str]) -> tuple[str, str]:
    message = "over {used} of {devices} devices, mesh {mesh}: "
    if values["used"] == values["devices"]:
        message = "over {devices} devices, mesh {mesh}: "
    if not values["split"]:
        message += "no input is split"
    elif values["others"] in ("", "0"):
        message += "{split}"
    elif values["others"] == "1":
        message += "{split}; 1 other input has no sharding"
    else:
        message += "{split}; {others} other inputs have no sharding"
    return message, "--shard ARGUMENT=SPEC splits an input, as in --shard {example}." if values["example"] else ""


_TEXTS: dict[str, tuple[str, str] | Callable[[Mapping[str, str]], tuple[str, str]]] = {
    "ledger_problem": (
        "a compilation could not be recorded: {error}",
        "the program is not affected; the ledger may miss rows",
    ),
    "ledger_folded": (
        "more than {most} compilations: later ones with the same function, line and reason are merged into one row "
        "with a count",
        "Start with the functions that have the most compilations.",
    ),
    "not_recorded": ("recording failed: {error}", ""),
    "recorder_failed": ("recording {part} failed: {error}", ""),
    "sampler_failed": ("the sampler ended: {error}", ""),
    "steps_not_counted": ("steps are not counted and lines are not timed{because}", ""),
    "function_not_kept": ("a call of {function} could not be kept: {error}", ""),
    "function_not_called": lambda values: (
        "no call of {function} was compiled, so there is nothing to measure",
        "Compiled functions include: {functions}." if values["functions"] else "Nothing was compiled.",
    ),
    "cannot_repeat": ("jaxprof run cannot repeat this run: {problem}", ""),
    "function_not_measured": ("{function} was not measured: the program was interrupted", ""),
    "values_made_up": (
        "the arguments have the shapes, dtypes and devices of a real call, but random values",
        "If the time depends on the values, keep them with --values.",
    ),
    "one_device": ("the arguments were on {devices} devices; jaxprof run repeats the call on one", ""),
    "folded_constants": (
        "XLA was given {before_flops} FLOPs and left {after_flops}: the rest was computed while compiling, or was not "
        "needed",
        "Pass the arrays as arguments instead of closing over them, and return what you want to measure.",
    ),
    "dead_code": (
        "computed but not used, so XLA removed it: {operations}",
        "Return the result if you want to measure its time.",
    ),
    "dtype_narrowed": (
        "{wide} inputs become {narrow} in JAX, but NumPy computes in {wide}: they do not do the same work",
        "Give {narrow} inputs to both, or set JAX_ENABLE_X64=1.",
    ),
    "compiled_again": lambda values: (
        (counted(int(values["count"]), "unexpected compilation") if values["count"].isdecimal() else "compilations")
        + "{because}: {functions}",
        "Look for a new shape or dtype, a Python value that changes, or a function made anew at each call.",
    ),
    "zero_copy": lambda values: (
        (
            "the transfer {directions} copied nothing: host and device share the buffer",
            "No copy happened on this CPU; a GPU or TPU would copy.",
        )
        if values["directions"]
        else (
            "a call moved no data: its result shares its argument's memory",
            "The time is only the overhead of a call, so there is no bandwidth and no speed-up. Between host and "
            "accelerator the bytes would be copied.",
        )
    ),
    "compile_cached": (
        "the program came{because}: the time shown is not a compile time",
        "Run it in a fresh process, without the compilation cache, for a cold compile.",
    ),
    "library_gemms": (
        "XLA could not emit its own matrix products ({error}), so library calls replace them",
        "On the device XLA may choose its own kernels for some of them.",
    ),
    "max_seconds_reached": lambda values: (
        f"stopped at the hard cap of {{limit_seconds}}{' in phase {phase}' if values['phase'] else ''}: "
        "later phases were not measured",
        "Give a larger --max-seconds, or choose a smaller size.",
    ),
    "over_budget": (
        "the first call took {first_seconds}, more than the budget of {budget_seconds}",
        "A smaller size or a larger --budget gives more samples; --max-seconds is the hard cap.",
    ),
    "result_not_kept": ("the result was not kept for a comparison: {error}", ""),
    "debug_calls_left_out": (
        "left out: {calls}, which JAX lowers for a GPU only where there is one",
        "What they copy to the host is not in the figures.",
    ),
    "sharding": _sharding,
}
"""Code → message and advice, or the function that makes them of the values."""
_CAUSES = {
    "unknown_python": ", because this version of jaxprof does not know the inside of this Python",
    "old_python": ", because that needs Python 3.12 or newer",
    "no_slot": ", because other tools use all monitoring slots of this Python",
    "first_call": " at the first call, although the program was compiled before",
    "steady_run": " during the steady run",
    "persistent_cache": " from the persistent compilation cache",
    "memory_cache": " from JAX's cache in memory",
}
"""Value `cause` of a warning → how its sentence goes on."""


_MOST_NOTICES = 100
"""Number of different notices kept: a file can name a million runs, or types of events, that are unknown."""


class Texts:
    """The chunks of a session's long texts, by digest, decoded only when a text is needed."""

    def __init__(self) -> None:
        self._pieces: dict[str, dict[int, str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, chunk: e.TextChunk) -> None:
        """Add one chunk. A repeated chunk replaces itself."""
        self._pieces.setdefault(chunk.digest, {})[chunk.index] = chunk.data
        self._counts[chunk.digest] = chunk.count

    def __contains__(self, digest: str) -> bool:
        """Return whether all chunks of the text have arrived."""
        return digest in self._pieces and len(self._pieces[digest]) == self._counts[digest]

    def decode(self, digest: str) -> str:
        """Return the text. Raises FileRefusedError if a chunk is missing or damaged, or beyond the limit `unpacked`."""
        if digest not in self:
            raise FileRefusedError(
                f"the text {digest[:12]} is not whole in this session",
                "The session was interrupted while it was being written; run the workload again to have it.",
            )
        pieces = self._pieces[digest]
        try:
            packed = base64.b64decode("".join(pieces[index] for index in range(len(pieces))), validate=True)
            raw = b"".join(unpack(packed, f"the text {digest[:12]} of this session", wbits=15))
        except (KeyError, ValueError, EOFError, zlib.error) as error:
            raise FileRefusedError(f"the text {digest[:12]} is damaged in this session: {error}") from error
        if hashlib.sha256(raw).hexdigest() != digest:
            raise FileRefusedError(f"the text {digest[:12]} is damaged in this session: its hash differs")
        return raw.decode("utf-8", "replace")


class Session:
    """The state of a session, changed only by `apply`. Screens and reports read it."""

    def __init__(self, header: e.Header | None = None) -> None:
        self.header = header if header is not None else e.Header()
        self.runs: dict[str, Run] = {}
        self.process_index, self.process_count = self.header.process_index, self.header.process_count
        """Index of the recorded process in its job, and their number; JAX may report them later."""
        self.family: Counter[str] = Counter()
        """Number of runs compared with each baseline: the intervals of all of them hold together."""
        self.texts = Texts()
        self.readings: dict[str, list[e.DeviceReading]] = {}
        """Device readings by device, in order of arrival; the older ones of many are folded."""
        self.closed: e.SessionClosed | None = None
        self.deserted = True
        """Whether it has no writer any more, as far as is known: then no run of it is waiting or running."""
        self.content: str | None = None
        """SHA-256 of the file as far as it was read, in hex; None for a session that this process makes."""
        self.last_seq = 0
        self.last_seconds = self.header.monotonic_seconds
        self._problems: Counter[str] = Counter()

    @property
    def complete(self) -> bool:
        """Whether the writer closed the session properly."""
        return self.closed is not None

    @property
    def seen_to_its_end(self) -> bool:
        """Whether nothing can be missing at its end: it was closed, or all its runs are over."""
        return self.complete or (bool(self.runs) and all(run.over for run in self.runs.values()))

    @property
    def state(self) -> str:
        """`complete`, `being written`, `interrupted`, or how the session ended."""
        reason = self.closed.reason if self.closed is not None else ""
        return session_state(complete=self.complete, live=not self.deserted, reason=reason)

    @property
    def state_words(self) -> str:
        """The state with the runs that failed, for people: `complete, 1 crashed`."""
        return with_failures(self.state, (run.status for run in self.runs.values()))

    @property
    def environment(self) -> e.EnvironmentRead | None:
        """The environment of the first engine with jax, or of the first engine if none has jax; None without any."""
        reported = [run.environment for run in self.runs.values() if run.environment is not None]
        return next((event for event in reported if event.jax is not None), reported[0] if reported else None)

    @property
    def is_profile(self) -> bool:
        """Whether the session holds only a profile that another tool recorded."""
        return bool(self.runs) and all(run.plan.how == "imported" for run in self.runs.values())

    @property
    def from_file(self) -> bool:
        """Whether its words come from a file that this machine did not record, as a profile's names do. A file that was
        recorded here is known by its whole content, and not by the host that it states."""
        if self.content is None:
            return self.is_profile
        from jaxprof.session.files import is_own  # not above: the log reads sessions

        return not is_own(self.content)

    @property
    def sources(self) -> dict[str, str]:
        """Digests of the source files of all runs, by path."""
        return {file: digest for run in self.runs.values() for file, digest in run.sources.items()}

    @property
    def notices(self) -> list[str]:
        """Notices of what could not be read or used, and what was not kept, a line each."""
        unread = self._unread()
        started = [run.program.started for run in self.runs.values() if run.program is not None]
        commands = [self.header.command, *(program.argv for program in started if program is not None)]
        if any(REDACTED in word for command in commands for word in command):
            unread.append(f"a possible secret in the command line was replaced by {REDACTED}")
        return unread

    @property
    def unseen(self) -> list[str]:
        """What of the session is unknown, a line each: its end unless it was closed, and what could not be read."""
        end = "its end was not recorded" if self.deserted else "it is being written"
        return [*([] if self.seen_to_its_end else [f"{end}: what it lacks may have come later"]), *self._unread()]

    def _unread(self) -> list[str]:
        return [text if count == 1 else f"{text} ({count} times)" for text, count in self._problems.items()]

    @property
    def programs(self) -> list[Run]:
        """The runs that are users' programs, in the order of the plan."""
        return [run for run in self.runs.values() if run.is_program]

    def desert(self, *, deserted: bool) -> None:
        """Note whether the session has no writer any more."""
        self.deserted = deserted
        for run in self.runs.values():
            run.deserted = deserted

    def notice(self, text: str) -> None:
        """Record that a part of the file could not be read or used."""
        known = text in self._problems or len(self._problems) < _MOST_NOTICES
        self._problems[text if known else "something else could not be used"] += 1

    def text(self, run: str, name: str) -> str | None:
        """Return the text of a run with that name (`hlo`, `jaxpr`...), decoded now; None if there is none.

        Raises KeyError for an unknown run, and FileRefusedError if the text is damaged.
        """
        recorded = self.runs[run].texts.get(name)
        if recorded is None:
            return None
        return self.texts.decode(recorded.digest) if recorded.digest else recorded.text

    def apply(self, event: e.Event) -> None:
        if event.seq:
            self.last_seq = event.seq
        if event.monotonic_seconds:
            self.last_seconds = event.monotonic_seconds
        kind = type(event)
        if step := _STEPS.get(kind):
            step(self, event)
        elif kind in _KEPT:
            setattr(self._run_of(event), _KEPT[kind], event)
        elif kind in _LISTED:
            getattr(self._run_of(event), _LISTED[kind]).append(event)
        elif kind in _BY_KEY:
            held, key = _BY_KEY[kind]
            getattr(self._run_of(event), held)[getattr(event, key)] = event

    def _identify_process(self, event: e.ProcessIdentified) -> None:
        if 0 <= event.index < event.count:
            self.process_index, self.process_count = event.index, event.count

    def extend(self, events: Iterable[e.Event]) -> None:
        """Add what the events say, in the order of the log."""
        for event in events:
            self.apply(event)

    def _run_of(self, event: e.Event) -> Run:
        """Return the run of an event. A run that was never planned is added, so that none of its events is lost."""
        run = self.runs.get(event.run)
        if run is None:
            self.notice(f"run {event.run or '(without id)'} has no plan in this file")
            plan = e.RunSpec(workload="unknown", variant="unknown", how="", device="unknown")
            run = self.runs[event.run] = Run(id=event.run, plan=plan, status="running", deserted=self.deserted)
        return run


def _plan_run(session: Session, event: e.RunPlanned) -> None:
    run = session.runs.get(event.run)
    if run is None:
        session.runs[event.run] = Run(id=event.run, plan=event.spec, batch=event.batch, deserted=session.deserted)
        if event.spec.baseline:
            session.family[event.spec.baseline] += 1
    else:
        run.plan = event.spec


def _add_warning(session: Session, event: e.WarningRaised) -> None:
    event = with_text(event)
    if event.run:
        session._run_of(event).warnings.append(event)
    else:  # a message of the file, of any length
        session.notice(event.message[:300])


def _worker_started(session: Session, event: e.WorkerStarted) -> None:
    run = session._run_of(event)
    run.status, run.pid, run.python = "running", event.pid, event.python
    if run.started_seconds is None:
        run.started_seconds = event.monotonic_seconds
    launch = RunLaunch(event.launch, event.monotonic_seconds, run.phases if event.launch == 1 else {})
    if run.launches and run.launches[-1].number == event.launch:  # begun again, because it did not fit beside others
        run.launches.pop()
        launch.phases.clear()
    run.launches.append(launch)


def _phase_started(session: Session, event: e.PhaseStarted) -> None:
    run = session._run_of(event)
    run.current_phase = event.phase
    run.present_phases[event.phase] = Phase(event.phase, started_seconds=event.monotonic_seconds)


def _phase_ended(session: Session, event: e.PhaseEnded) -> None:
    run = session._run_of(event)
    phases = run.present_phases
    phase = phases.setdefault(event.phase, Phase(event.phase))
    phase.ended_seconds = event.monotonic_seconds
    phase.seconds, phase.bytes, phase.zero_copy, phase.note = event.seconds, event.bytes, event.zero_copy, event.note
    phase.page_faults, phase.kernel_share = event.page_faults, event.kernel_share
    if run.current_phase == event.phase:
        run.current_phase = ""


def _samples(session: Session, event: e.SamplesTaken) -> None:
    """Add samples to their series and, of the steady run in turns, to the launch."""
    run = session._run_of(event)
    series = run.series.setdefault(event.series, Series())
    series.seconds += event.seconds
    series.calls_per_sample = event.calls_per_sample
    if not run.launches:
        return
    if event.series == "alone":
        run.launches[-1].alone += event.seconds
    elif event.block is not None and event.series == "run":
        run.launches[-1].turns.append(Turn(event.block, tuple(event.seconds), event.first_seconds))


def _progress(session: Session, event: e.ProgressMade) -> None:
    run = session._run_of(event)
    run.fraction, run.remaining_seconds, run.note = event.fraction, event.remaining_seconds, event.note
    run.progress_seconds = event.monotonic_seconds


def _end_run(session: Session, event: e.RunFinished | e.RunClosed) -> None:
    run = session._run_of(event)
    is_summary = isinstance(event, e.RunClosed)
    setattr(run, "closed" if is_summary else "finished", event)
    run.status, run.current_phase = event.status, ""
    if run.ended_seconds is None or not is_summary:
        run.ended_seconds = event.monotonic_seconds


def _program(session: Session, event: e.Event) -> None:
    run = session._run_of(event)
    program = run.program = run.program or RecordedProgram()
    if isinstance(event, e.StepsTaken) and not are_iterations(event):
        session.notice("iterations of a loop were left out: their times and counts do not match")
        return
    if isinstance(event, e.ProgramStopped) and event.recorder_ran is None:
        # Earlier versions noted only the readings, each of which the recording process made.
        made = (each for readings in session.readings.values() for each in readings if each.run == event.run)
        event = replace(event, recorder_ran=event.holds(each.monotonic_seconds for each in made))
    program.apply(event)


def _add_reading(session: Session, event: e.DeviceReading) -> None:
    kept = session.readings.setdefault(event.device, [])
    kept.append(event)
    if len(kept) > MOST_READINGS:
        programs = (run.program for run in session.programs)
        kept[:] = thinned(kept, [window for each in programs if each is not None for window in each.windows])


_KEPT: dict[type[e.Event], str] = {
    e.ComparisonPlanned: "comparison",
    e.ResultsCompared: "results",
    e.TrialReached: "trial",
    e.EnvironmentRead: "environment",
    e.RevisionRead: "revision",
    e.CostReported: "cost",
    e.MemoryReported: "memory",
    e.CheckReported: "check",
    e.StepsMeasured: "steps",
    e.CompilePasses: "compile_passes",
    e.BuffersReported: "buffers",
}
"""Events whose last one a run keeps, with the attribute that holds it."""
_LISTED: dict[type[e.Event], str] = {
    e.CompileObserved: "compiles",
    e.LogLine: "log",
    e.RemedyTried: "remedies",
}
"""Events that a run keeps all of, with the attribute that holds them."""
_BY_KEY: dict[type[e.Event], tuple[str, str]] = {
    e.TextRecorded: ("texts", "name"),
    e.CaptureTaken: ("captures", "kind"),
    e.KernelsMeasured: ("measured", "kind"),
    e.TrustReported: ("trust", "kind"),
}
"""Events whose last one of each kind a run keeps, with the attribute and the field that is the key."""
_STEPS: dict[type[e.Event], Callable[[Session, Any], None]] = {
    e.RunPlanned: _plan_run,
    e.WarningRaised: _add_warning,
    e.WorkerStarted: _worker_started,
    e.ProcessIdentified: Session._identify_process,
    e.PhaseStarted: _phase_started,
    e.PhaseEnded: _phase_ended,
    e.SamplesTaken: _samples,
    e.ProgressMade: _progress,
    e.DeviceReading: _add_reading,
    e.SourcesRead: lambda session, event: session._run_of(event).sources.update(
        {source.file: source.digest for source in event.files}
    ),
    **dict.fromkeys((e.RunFinished, e.RunClosed), _end_run),
    e.TextChunk: lambda session, event: session.texts.add(event),
    e.SessionClosed: lambda session, event: setattr(session, "closed", event),
    **dict.fromkeys(PROGRAM_EVENTS, _program),
}
"""Functions that fold all other events."""
