"""Findings about a program as data: a code, a sentence with the figures, the fix, the line, and the seconds.

Each check is one small function over the program's figures, which claims the seconds that it reports. Findings are
ranked by the estimated saving of their fix. Facts about nearly every run (the cache is off, compiling takes most of a
short run) are remarks, not findings.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import PurePath

from jaxprof.analysis.programs.pauses import SIGNAL, SUSPENDED, UNKNOWN, pause_times
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.standstill import (
    BUSY,
    COLLECTOR,
    COMPILER,
    LOCK,
    LOCKED,
    QUEUE,
    STOPPED,
    THREADS,
    Standstill,
)
from jaxprof.base.text import safe, whole_number
from jaxprof.base.units import bytes_, seconds
from jaxprof.events import DeviceReading
from jaxprof.events import ProgramSampled as ProgramSampled
from jaxprof.events import SourceLocation as SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.programs import arrays, calls, compiling, loops, recompiling, settings
from jaxprof.findings.programs.claims import Claims, check

_NO_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|MemoryError|[Oo]ut of memory|Unable to allocate")
_ERROR = "Fix what the error names, and run it again: its figures end there."
_EXITED = (
    "Run it with `python -i` and stdin from /dev/null: Python then prints the line that called sys.exit. That, or an "
    "exit handler, ended it, and no exception."
)
_LEFT = (
    "Search its files for os._exit and os.exec, which leave no traceback: it ended without Python's exit handlers. "
    "Native code can do that, too."
)
_UNSEEN = "Its end was not recorded from inside: look at what it wrote, if anything."
_SIGNALLED = "Look for what sent that signal: another process, or the program itself."
_LESS_MEMORY = (
    "Make it smaller (the batch, the sequence, the model), free what else is held, donate what is replaced "
    "(donate_argnums), or compute it again in the backward pass (jax.checkpoint). Calls return before their work is "
    "done, so a call before this line may have asked for it. jaxprof script --function NAME shows what a call holds."
)
_WAITED = " XLA's allocator waits 10 s for memory before it fails, which looks like work of the device."


@check(
    "the program failed",
    "An exception, a signal or an exit code other than 0 ended it. Its figures are those of the time until then. "
    "The line is the innermost one of the user's own code; after a signal, that of the last samples.",
    "Fix what the error names. Out of memory: smaller sizes, donated arguments, jax.checkpoint.",
)
def program_failed(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield the exception, signal or exit code that ended the program. An interrupted program has not failed."""
    run = result.run
    if run.status not in ("failed", "crashed"):
        return
    error, where, _ = result.raised
    error = error.strip()
    if _NO_MEMORY.search(error):
        # needed only for this error
        from jaxprof.analysis.kernels.out_of_memory import read_out_of_memory
        from jaxprof.findings import out_of_memory as memory

        details, arrays_then = result.memory_ran_out
        said = read_out_of_memory(f"{error}\n{details}")
        asked = said.bytes["asked"] if said is not None else None
        size = f": {bytes_(asked)} were asked for" if asked is not None else ""
        message = f"it ran out of memory{size}{_memory_then(result)} ({safe(error)})"
        remedies: list[str] = []
        if said is not None:
            remedies = [*memory.message_remedies(said, result.directory)]
            parts = message, memory.figures_text(said), memory.buffers_text(said.buffers, result.directory)
            message = "; ".join(filter(None, parts))
        if arrays_then:
            message += f"; {memory.arrays_text(arrays_then, result.directory)}"
        less = f"{memory.ON_CHIP_FIX}." if said is not None and said.on_chip else _LESS_MEMORY
        fix = ". ".join([*remedies, less]) + (_WAITED if "_bfc" in error else "")
        yield Finding(message, (where,), own_fix=fix, bytes=asked)
    elif error and (shadow := result.shadowed_by):
        path = PurePath(shadow.file)
        module = safe(path.parent.name if path.stem == "__init__" else path.stem)
        meant = "the standard library's" if module in sys.stdlib_module_names else "the package"
        yield Finding(
            f"it ended with {safe(error)}; `import {module}` finds {safe(shadow.short(result.directory))}, not {meant}",
            (where,),
            own_fix=f"Give {path.name} another name: its folder is searched first, also when a library imports "
            f"{module}.",
        )
    elif error:
        yield Finding(f"it ended with {safe(error)}", (where,), own_fix=run.hint or _ERROR)
    else:
        # an exit code may come from a line that no sample has seen
        windows = [window for window in result.sample_windows if window.samples] if run.status == "crashed" else []
        most = max(windows[-1].lines if windows else (), key=lambda line: line.seconds, default=None)
        last = most.location if most is not None and most.file else None
        seen = f"; before that it was mostly at {last.short(result.directory)}" if last else ""
        message = f"it ended: {safe(run.error or run.status)}{seen}"
        yield Finding(message, (last or where or None,), own_fix=_fix_without_error(result))


def _fix_without_error(result: ProgramResult) -> str:
    """Return what can be done about an end that no exception explains: its last words, and how it ended. Without a word
    from its exit handlers it may still have said something on a stderr that is not recorded."""
    if result.run.status == "crashed":
        return result.run.hint or _SIGNALLED
    unseen = {note.code for note in result.notes}
    how = _LEFT if "not_unwound" in unseen else _EXITED
    if not result.seen_to_its_end or "not_recorded" in unseen:
        how = _UNSEEN
    if result.raised[1]:
        how = "That line called sys.exit: look at the condition around it."
    return ". ".join(filter(None, (result.run.hint.rstrip("."), how)))


def _memory_then(result: ProgramResult) -> str:
    """Return how full the fullest device was when the error came, and what JAX may take of it; empty if unknown."""
    error, _, at = result.raised
    environment = result.run.environment
    limits = (
        {str(each.get("id")): each.get("memory_limit_bytes") for each in environment.devices} if environment else {}
    )
    seen: list[DeviceReading] = []
    for device in limits if "RESOURCE_EXHAUSTED" in error else ("cpu:0",):
        before = [
            reading
            for reading in result.readings.get(device, ())
            if reading.run == result.run.id and (at is None or reading.monotonic_seconds <= at)
        ]
        seen += before[-1:]
    full = max(seen, key=_used_share, default=None)
    if full is None or not _used_share(full):
        return ""
    limit = whole_number(str(limits.get(full.device)))
    own = f", and JAX may take {bytes_(limit)}" if limit else ""
    return f"; {full.device} had {bytes_(full.memory_used_bytes)} of {bytes_(full.memory_limit_bytes)} in use{own}"


def _used_share(reading: DeviceReading) -> float:
    used, limit = reading.memory_used_bytes, reading.memory_limit_bytes
    return used / limit if used and limit else 0.0


@check(
    "the program stands still",
    "No iteration of its loops has ended for ten usual ones and twenty seconds, and its main thread does nothing; for "
    "45 seconds where it runs, compiles or waits for a device. First compilations, evaluations and checkpoints go on; "
    "what a signal has stopped does not. What it waits for is stated where its stack and the system agree.",
    "Look at the line: what it waits for has to come, or to fail. A timeout there turns silence into an error.",
)
def standstill(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield that the program stands still, or stood still when it was ended. The time at its line is no work of the
    loop that could be done less often; if the recorder is silent, all of it is from before."""
    state = result.standstill
    if state is not None and not state.is_one and not state.usual_seconds:
        # no iteration has ended yet: the time at its line is of none, and may become a standstill
        claims.take([spot for spot in result.spots if spot.location == state.at])
    if state is not None and state.is_one:
        if state.waits not in (STOPPED, LOCKED):
            # a spot in a callback is at the line that called the compiled function
            around = state.threads[0].frames if state.threads else []
            claims.take(
                [
                    spot
                    for spot in result.spots
                    if spot.location == state.at or (spot.kind == "callback" and spot.location in around)
                ]
            )
        stands = "it stands still" if result.stands_still else "it stood still"
        fix = _PAUSES[SIGNAL][1] if state.waits == STOPPED else what_ends(state)
        compiles = state.waits == COMPILER and bool(result.running)
        if compiles:  # that finding has its seconds, too
            fix = "See unfinished_compile below for what is known of that compile."
        yield Finding(
            f"{stands} {safe(state.text(result.directory))}",
            (state.at,),
            seconds=None if compiles else state.seconds,
            own_fix=fix,
        )


def what_ends(state: Standstill) -> str | None:
    """Return what makes a program go on that stands still so; None if its check says all that is known."""
    if state.waits in (LOCK, QUEUE) and len(state.threads) == 1:
        return (
            "No other Python thread is left in this process that could end that wait: the one that was to do so has "
            "ended (an exception of it is on stderr), or none was started, or the main thread has the lock itself. "
            "With a timeout, silence becomes an error."
        )
    return _ENDS.get(state.waits)


_ENDS = {
    LOCKED: "Native code that keeps the lock stops all threads, and ctrl+c: look at what it is given (a regular "
    "expression, arguments of an extension), or call it in a process of its own, with a limit.",
    BUSY: "Look at what ends the loop at that line: a condition on NaN is never true.",
    COLLECTOR: "Make fewer objects there, or collect less often: gc.freeze() after the start, gc.disable() in loops.",
    THREADS: "Let these threads end: a flag that they look at, a last item in their queue; or make them daemons.",
    QUEUE: "Look at the thread that fills or empties it: it has ended, or waits itself. With a timeout, "
    "silence becomes an error.",
    LOCK: "Look at the thread that has it: one that waits for another lock needs the same order of locks everywhere; "
    "a pool whose tasks wait for tasks of the same pool needs a second pool.",
}
"""Fix by what a program that stands still waits for; else that of the check."""
_PAUSES = {
    SIGNAL: (
        "paused for {} by a signal, {}",
        "Look for what sends SIGSTOP or SIGTSTP (ctrl+z, a batch system). No line of it takes this time.",
    ),
    UNKNOWN: (
        "paused for {}, {}: together with its recorder, or by a cause that leaves no trace",
        "Look for ctrl+z, a container that was frozen, or a virtual machine. No line of it takes this time.",
    ),
    SUSPENDED: (
        "the machine was suspended for {}, {}",
        "A machine that sleeps computes nothing. No other time of this program holds these seconds.",
    ),
}
"""Message and fix by the cause of a pause."""


@check(
    "the program was paused",
    "A signal (SIGSTOP, ctrl+z, a read from the terminal in the background) paused the process until SIGCONT, or "
    "its container was frozen, or the machine slept. That time belongs to no line, and is left out of every share.",
    "Look for what paused it. Processes of a job that exchange data with it wait all that time.",
)
def paused(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield the pauses of each cause together. Only a pause by a signal was observed; others are inferred. The one in
    which the program stands still is that finding's."""
    state, until = result.standstill, math.inf
    if state is not None and state.is_one and state.waits == STOPPED:
        until = state.since_seconds - result.began_seconds
    for cause, (message, fix) in _PAUSES.items():
        pauses = [pause for pause in result.pauses if pause.cause == cause and pause.began_seconds < until]
        if not pauses:
            continue
        took = sum(pause.seconds for pause in pauses)
        cost = None if cause == SUSPENDED else took
        yield Finding(
            message.format(seconds(took), pause_times(pauses)),
            own_fix=fix,
            seconds=cost,
            saves_seconds=cost,
            estimate=cause == UNKNOWN,
        )


CHECKS = (
    program_failed,
    standstill,
    compiling.unfinished_compile,
    paused,
    settings.debug_settings,
    settings.profiler_on,
    recompiling.caches_cleared,
    recompiling.closure_varies,
    recompiling.recompile_in_loop,
    compiling.iterated_array,
    recompiling.varying_shapes,
    recompiling.static_argument_varies,
    recompiling.weak_type_flips,
    recompiling.arguments_vary,
    compiling.large_program,
    loops.callback_in_loop,
    loops.repeated_fetch,
    loops.host_sync,
    loops.unchanging_transfer,
    arrays.numpy_argument,
    arrays.batch_copies,
    calls.op_by_op_loop,
    calls.large_operations,
    arrays.implicit_transfers,
    loops.lock_held,
    loops.data_waits,
    loops.host_between,
    loops.host_waits,
    loops.host_work,
    calls.dispatch_bound,
    compiling.many_tiny_jits,
    compiling.slow_tracing,
    compiling.captured_constants,
    settings.cache_never_found,
    settings.slow_import,
    arrays.arrays_grow,
    arrays.programs_grow,
    arrays.unused_donation,
)
"""All checks, in the order in which they claim seconds: more specific ones first."""
FAULTS = ("program_failed", "standstill", "unfinished_compile", "debug_settings", "profiler_on")
"""Findings after which the other figures describe another program, or part of the program; first things first."""
REMARKS = (compiling.compile_dominates, settings.cache_off)


def findings(result: ProgramResult, factor: float = 1.0) -> tuple[Finding, ...]:
    """Return the findings of a program: its faults, then by saving, the unknown ones last. `factor`: as in `Claims`."""
    claims = Claims(result, factor)
    checks = [check for check in CHECKS if not (result.other_thread and check.sampled)]
    every = claims.limit_savings([check.complete(found) for check in checks for found in check.find(result, claims)])
    order = {code: at for at, code in enumerate(FAULTS)}
    return tuple(sorted(every, key=lambda found: (order.get(found.code, len(FAULTS)), -(found.saves_seconds or 0.0))))


def remarks(result: ProgramResult) -> tuple[Finding, ...]:
    """Return remarks about the run as a whole, which no line of the program can change."""
    claims = Claims(result)
    return tuple(check.complete(remark) for check in REMARKS for remark in check.find(result, claims))
