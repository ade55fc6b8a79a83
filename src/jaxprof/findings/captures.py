"""Findings of captures: where the time of the devices' steps went besides kernels, and what makes them doubtful."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.measured import device_count, measure_kernels
from jaxprof.analysis.target import command
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, counted, percent, seconds
from jaxprof.events import IdleCause, SourceLocation
from jaxprof.events.finding import CatalogueEntry, Finding, Scope
from jaxprof.findings import Abstention
from jaxprof.findings.modules import SLOW_KERNEL
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.hlo.kernels.origin import HloSourceLocation

_WORTH = 0.1
"""Share of the steps, or of the kernels' time, from which a part of them is reported."""
DOUBTED_CHECKS = (
    "no_kernels", "lost_kernels", "clock", "file", "profiler_error", "dropped", "unmatched", "modules", "slowdown",
    "sum", "unrecorded", "compile", "uneven_steps", "attribution",
)  # fmt: skip
"""Trust checks about figures that are unavailable; the others qualify figures that are shown next to them."""


_IDLE_FIXES = {
    "compile": "Compile before the steps: the same shapes, dtypes and function objects from the first step on "
    "(jaxprof script FILE.py names what compiled again, and why).",
    "copy": "Place what stays the same on the device once, copy the next batch while the device works (jax.device_put "
    "ahead of the step), and fetch results less often.",
    "launch": "Give each call more to do: one function under jax.jit in place of operations outside it, several steps "
    "in lax.scan, fewer and larger arrays as arguments.",
    "wait": "Do not block in every step: keep results as arrays, and fetch them every N steps or after the loop.",
    "host": "Do it while the device works: prepare the next batch in a thread, worker processes or a queue, and log, "
    "plot or save less often.",
}
"""Fix for the longest cause."""
_OWN_WORK = ("copy", "host", "unknown")
"""Causes that count on a CPU, whose cores also call the programs and wait for them; compiles have their own finding."""
_capture = partial(CatalogueEntry, source="capture", page="traces.md#steps")
_IDLE = _capture("device_idle", "the device waits between steps or kernels",
    "For part of each step nothing ran on the device and nothing was about to: the host prepared data, waited for "
    "a value, or did other work.",
    "Record the program (jaxprof script FILE.py) to see which line the host spends this time at; prepare data "
    "ahead, fetch values less often.")  # fmt: skip
"""Only a capture of a whole program can show it: calls that are measured one by one wait on purpose. What the host did
meanwhile is its cause."""
_PARTS = (
    (_IDLE, "the device waited", "idle"),
    (_capture("launch_gaps", "gaps between kernels of one program",
            "The device was done with one kernel before the next one was launched: kernels shorter than their launch.",
            "Launch fewer, larger kernels: batch with vmap, unroll scans, leave CUDA graphs (command buffers) on."),
        "gaps between kernels", "launch_gaps"),
    (_capture("exposed_collectives", "the device waits for collectives",
            "Time in collectives during which the device computed nothing.",
            "Let them overlap with work that does not need them (XLA's latency-hiding scheduler), exchange less "
            "(another sharding), or exchange in a narrower dtype."),
        "waiting for collectives", "collectives_exposed"),
    (_capture("copies_in_steps", "copies between host and device inside the steps",
            "For part of each step the device only copied to or from the host.",
            "Place what stays the same on the device once, copy the next batch ahead, and fetch results less often."),
        "only copying to or from the host", "transfers"),
)  # fmt: skip
"""Finding, words, and field of `StepParts`."""
_COMPILES = _capture("compiles_in_profile", "the devices wait while programs are compiled",
    "For part of the profile nothing ran on any device while XLA compiled: the profile shows more of the compiler than "
    "of the program, and a loop that compiles again waits each time.",
    "Call each function once, with the shapes that it will get, before the profile or the loop begins.")  # fmt: skip
_MODULES_NAMED = 3
_SEPARATE = _capture("separate_programs", "lines run as a program each",
    "What is called outside jax.jit is a program for each operation: each has a dispatch of its own, and reads and "
    "writes its arrays whole where one program would keep them in registers.",
    "Put these lines into one function with jax.jit: XLA fuses them, and there is one dispatch.")  # fmt: skip
_LEAST_SEPARATE = 4
"""Fewest such programs: with fewer there is little to fuse."""
_LEAST_CALLS = 2
"""Calls from which a program belongs to what repeats, and not to the set-up."""
_MOST_OPS = 8
"""Most ops of one line: a mean or a softmax compiles to a few. The HLO of larger programs need not be read."""
ENTRIES = (*(entry for entry, _, _ in _PARTS), _COMPILES, _SEPARATE, SLOW_KERNEL)


def separate_programs(session: Session, runs: Iterable[Run], verify: str) -> Iterator[Finding]:
    """Yield a finding about the programs of a profile that compute one line each and are called again and again, if
    they are a large part of its kernels' time. Products and the like take as long in a larger program."""
    measured = ((run, run.measured[IMPORTED]) for run in runs if IMPORTED in run.measured)
    small = [
        run
        for run, event in measured
        if (event.calls or 0) >= _LEAST_CALLS and 0 < len({row.name for row in event.rows}) <= _MOST_OPS
    ]
    separate: list[tuple[Run, HloSourceLocation, list[MeasuredKernel]]] = []
    for run in small if len(small) >= _LEAST_SEPARATE else ():
        captured = measure_kernels(session, run.id)
        if captured is None:
            continue
        timed = [(each, each.kernel) for each in captured.kernels if each.kernel is not None]
        sources = {line for _, kernel in timed for line in kernel.sources}
        fusible = [each for each, kernel in timed if not kernel.uses_matrix_units]
        if len(sources) == 1 and fusible:
            separate.append((run, sources.pop(), fusible))
    kernels = [kernel for _, _, each in separate for kernel in each]
    share = sum(kernel.share or 0.0 for kernel in kernels)
    if len(separate) < _LEAST_SEPARATE or share < _WORTH:
        return
    longest = sorted(separate, key=lambda item: -sum(kernel.share or 0.0 for kernel in item[2]))
    lines = dict.fromkeys(SourceLocation(line.file, line.line) for _, line, _ in longest)
    names = list(dict.fromkeys(safe(run.plan.workload) for run, _, _ in longest))
    found = Finding(
        f"{counted(len(separate), 'program')} compute one line each, called one after another: "
        f"{and_more(names, _MODULES_NAMED)}",
        tuple(lines),
        scope="kernels",
        seconds=sum(kernel.self_seconds for kernel in kernels) / device_count(kernels),
        share=share,
        at_most=True,
        verify=verify,
        run=longest[0][0].id,
    )
    yield _SEPARATE.complete(found)


def compile_findings(run: Run, scope: Scope, verify: str) -> Iterator[Finding]:
    """Yield the compiles inside a profile, if the devices waited for them."""
    compiled = run.compile_passes
    whole = max((capture.wall_seconds or 0.0 for capture in run.captures.values()), default=0.0)
    if compiled is None or not compiled.idle_seconds or not whole or _idle_time_doubted(run):
        return
    waited = compiled.idle_seconds
    if not _on_cpu(run) and run.steps is not None:  # what `device_idle` counts
        waited -= max((_seconds_of(device.idle_causes, ("compile",)) for device in run.steps.devices), default=0.0)
    share = waited / whole
    if share < _WORTH:
        return
    named = [
        f"{safe(each.module) or 'modules without a name'} ({counted(each.count, 'compile')})"
        for each in compiled.modules[:_MODULES_NAMED]
    ]
    if others := sum(each.count for each in compiled.modules[_MODULES_NAMED:]):
        named.append(counted(others, "more compile"))
    again = any(each.module and each.count > 1 for each in compiled.modules)
    yield Finding(
        f"nothing ran on a device for {seconds(waited)}, {percent(share)} of the profile, while XLA "
        f"compiled: {', '.join(named)}",
        own_fix=_IDLE_FIXES["compile"] if again else _COMPILES.fix,
        scope=scope,
        seconds=waited,
        share=share,
        verify=verify,
        run=run.id,
        code=_COMPILES.code,
    )


def step_findings(run: Run, scope: Scope, verify: str, *, whole_program: bool) -> Iterator[Finding]:
    """Yield what the steps of a capture spent besides kernels. On a CPU, only the host's own work while the device was
    idle: time between two recorded ops may be an op that the runtime does not record."""
    steps = run.steps
    if steps is None or _idle_time_doubted(run):
        return
    on_cpu = _on_cpu(run)
    by_device = grouped((step.device, step) for step in steps.steps if step.complete)
    found_by = {device.device: device.found_by or steps.found_by for device in steps.devices}
    for entry, words, part in _PARTS:
        if (entry is _IDLE and not whole_program) or (entry is not _IDLE and on_cpu):
            continue
        shares = {
            device: (sum(getattr(step.parts, part) for step in own), sum(step.seconds for step in own), len(own))
            for device, own in by_device.items()
            if found_by.get(device, steps.found_by) != "whole"
        }
        if on_cpu:
            own = {
                device.device: _seconds_of(device.idle_causes, _OWN_WORK) / sum(c.seconds for c in device.idle_causes)
                for device in steps.devices
                if device.idle_causes
            }
            shares = {name: (took * own.get(name, 0.0), *rest) for name, (took, *rest) in shares.items()}
        known = {device: took / whole for device, (took, whole, _) in shares.items() if whole > 0}
        device = max(known, key=lambda name: known[name], default="")
        if not device or known[device] < _WORTH:
            continue
        took, _, count = shares[device]
        step_seconds = took / count
        others = sum(share >= _WORTH for share in known.values()) - 1
        beside = f" and {counted(others, 'more device')}" if others else ""
        causes = next((each.idle_causes for each in steps.devices if each.device == device and entry is _IDLE), ())
        if on_cpu:
            causes = tuple(cause for cause in causes if cause.cause in _OWN_WORK)
        meanwhile = f"; meanwhile the host: {causes_text(causes)}" if causes else ""
        yield Finding(
            f"{words}: {seconds(step_seconds)} of each step on {device}{beside}, {percent(known[device])} of "
            f"{counted(count, 'step')}{meanwhile}",
            own_fix=(causes and _IDLE_FIXES.get(causes[0].cause)) or entry.fix,
            scope="call" if scope == "call" else "steps",
            seconds=step_seconds if scope == "call" else took,
            share=known[device],
            verify=verify,
            run=run.id,
            code=entry.code,
        )


def _on_cpu(run: Run) -> bool:
    return all(capture.platform in ("", "cpu") for capture in run.captures.values())


def _seconds_of(causes: Iterable[IdleCause], which: Collection[str]) -> float:
    return sum(cause.seconds for cause in causes if cause.cause in which)


def _idle_time_doubted(run: Run) -> bool:
    """Return whether pauses of the device may be missing kernels, or kernels at a wrong time."""
    rows = [row for event in run.trust.values() for row in event.rows]
    lost = any(row.code == "lost_kernels" and row.verdict != "good" for row in rows)
    return lost or any(row.code == "clock" and row.verdict == "bad" for row in rows)


def capture_abstentions(run: Run, name: str) -> Iterator[Abstention]:
    """Yield the worst reason to doubt a capture, and how many more the view of its trust has."""
    doubts = [row for event in run.trust.values() for row in event.rows if row.verdict in ("bad", "doubt")]
    rows = [row for row in doubts if row.code in DOUBTED_CHECKS and (row.code, row.verdict) != ("clock", "doubt")]
    if rows:
        row = min(rows, key=lambda row: (row.verdict != "bad", DOUBTED_CHECKS.index(row.code)))
        more = f" ({counted(len(doubts) - 1, 'more doubt')})" if len(doubts) > 1 else ""
        reason = f"whether the capture of {run.id} can be trusted: {row.message}{more}"
        yield Abstention(row.code, reason, command("open", name, "--run", run.id, "--trust"))


_CAUSES = {
    "compile": "it traced or compiled",
    "copy": "it copied",
    "launch": "it was calling programs",
    "wait": "it waited for the device",
    "host": "it did other work",
    "unknown": "it did what the profile does not name",
}
"""What the host did, by `IdleCause.cause`."""


def causes_text(causes: Sequence[IdleCause]) -> str:
    """Return text such as `it copied 61 %, it did other work 39 % (mostly load_batch)`; empty if no cause is known."""
    whole = sum(cause.seconds for cause in causes)
    # A cause of less than 5 % of the idle time is not named.
    named = [
        f"{_CAUSES.get(cause.cause, cause.cause)} {percent(cause.seconds / whole)}"
        + (f" (mostly {safe(cause.name)})" if cause.name else "")
        for cause in causes
        if whole > 0 and cause.seconds >= 0.05 * whole
    ]
    return ", ".join(named)
