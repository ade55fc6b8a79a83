"""Whether a job stands still, and which of its processes the others wait for.

The processes of a job that wait for each other all stand still when one does, and nearly all of them in the collective
that the one has not reached. So a job stands still only if every process does that is not over, and those are named
that differ: by a signal, by an end of their own, by what they wait for, by their line, by their step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs.standstill import BUSY_SECONDS, DEVICE, LEAST_SECONDS, LONGER_FACTOR, STOPPED, Standstill
from jaxprof.analysis.target import command
from jaxprof.base.units import integer, seconds
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.programs import what_ends
from jaxprof.jobs.figures import ProcessFigures
from jaxprof.session.files import path_word

_FAILED = ("failed", "crashed", "interrupted")
_ENDED = ("ok", "running")
"""Statuses of a process whose program has ended by itself: the process itself may wait for others."""
STANDS = "standing still"
"""Status of a process that stands still."""


@frozen
class Standing:
    """A job that stands still, or did when it ended."""

    blamed: tuple[ProcessFigures, ...]
    """Processes that the others wait for; none if no process differs from the others."""
    waiting: tuple[ProcessFigures, ...]
    why: str
    """By what the blamed ones differ, in words; empty without any."""


def standing(processes: Sequence[ProcessFigures]) -> Standing | None:
    """Return how the job stands still; None if it goes on, if it is over, or if a failed process explains it."""
    if any(process.status in _FAILED for process in processes):
        return None
    there = _at_work(processes)
    still = [process for process in there if process.standstill is not None and process.standstill.is_long]
    # A process without a known iteration stands still only where others witness it: some wait on their device, and all
    # the rest do nothing, or do not come out of a compile. It may take its time, but not far longer than theirs did.
    early = [(each, state) for each in there if each not in still and (state := each.standstill) is not None]
    early = [(each, state) for each, state in early if state.seconds >= LEAST_SECONDS and not state.usual_seconds]
    first = [process for process, state in early if state.on_device]
    idle = [process for process, state in early if state.is_certain and state.seconds >= BUSY_SECONDS]
    least = max(BUSY_SECONDS, LONGER_FACTOR * max((process.longest_compile_seconds for process in first), default=0.0))
    late = [each for each in there if each.compiling is not None and (each.compiling.seconds or 0.0) >= least]
    late += [process for process in idle if process not in first]
    if not still and first and late and len(first) + len(late) == len(there):
        return Standing(tuple(late), tuple(first), "")
    if not still:
        return None
    still += first
    gone = [process for process in processes if process not in there and process.status in (*_ENDED, "cancelled")]
    if len(still) == len(there):
        blamed, why = _differing(still, gone)
        if blamed or all(_state(process).is_one for process in still):
            blamed_indices = {process.index for process in blamed}
            return Standing(tuple(blamed), tuple(each for each in still if each.index not in blamed_indices), why)
        return None
    # Some go on, which `find_awaited` reports. One that does nothing is standing still all the same.
    alone = [process for process in still if _state(process).is_one and not _state(process).on_device]
    return Standing(tuple(alone), (), "") if alone else None


def _at_work(processes: Sequence[ProcessFigures]) -> list[ProcessFigures]:
    """Return the processes whose programs go on, or did when they were interrupted. One whose program missed no
    iteration, and that was in its exit handlers for much longer than others, had ended by itself and waited for them.
    """
    interrupted = [process for process in processes if process.status == "cancelled"]
    least = min((process.ending_seconds for process in interrupted), default=0.0) + LEAST_SECONDS
    left = [process for process in interrupted if process.standstill is None and process.ending_seconds >= least]
    return [process for process in processes if not process.is_over or (process in interrupted and process not in left)]


def find_awaited(processes: Sequence[ProcessFigures], count: int) -> Iterator[Finding]:
    """Yield the processes that are elsewhere while the others wait, of a job in which `standing` finds no standstill.

    One that evaluates alone does the same as one that never comes out of a loop of its own: no cause is named.
    """
    there = _at_work(processes)
    waiting = [each for each in there if each.standstill is not None and each.standstill.on_device]
    elsewhere = [process for process in there if process not in waiting]
    if len(elsewhere) > len(waiting) or {process.status for process in processes} & {*_FAILED, "unknown"}:
        return
    if not all(_state(process).is_one for process in waiting):
        return
    for process in elsewhere[:_MOST_BLAMED]:
        waited, line = min(_state(each).seconds for each in waiting), process.last_line
        at = f"{line.short(process.directory)} in {line.function}()" if line else "an unknown line"
        longest = max(_state(each).longest_seconds for each in waiting)
        was, wait = ("is", "have waited") if process.status == "running" else ("was", "waited")
        message = (
            f"process {process.index} of {count} {was} at {at} while the others {wait} for {seconds(waited)}"
            f"{_where_waiting(waiting)}; no step before took them longer than {seconds(longest)}"
        )
        yield Finding(message, (line,), seconds=waited, index=process.index, code="process_awaited")


def _state(process: ProcessFigures) -> Standstill:
    assert process.standstill is not None
    return process.standstill


def _differing(still: Sequence[ProcessFigures], gone: Sequence[ProcessFigures]) -> tuple[Sequence[ProcessFigures], str]:
    """Return the processes that the others wait for, and by what they differ: the strongest witness first."""
    stopped = [process for process in still if _state(process).waits == STOPPED]
    if stopped:
        return stopped, ""
    waiting = [process for process in still if _state(process).on_device]
    if gone and waiting:
        return gone, "ended"
    hosts = [process for process in still if not _state(process).on_device]
    if hosts and (waiting or len(still) == 1):
        # one that runs or compiles may only be late
        states = map(_state, hosts)
        sure = all(state.is_certain or (state.seconds >= BUSY_SECONDS and state.is_long) for state in states)
        return (hosts, "") if sure else ((), "")
    for what, key in (
        ("another line", lambda process: _state(process).at.text or None),
        ("another step", lambda process: _state(process).step),
    ):
        counts = Counter(key(process) for process in still)
        if None in counts or len(counts) < 2:
            continue
        (most, count), (_, second) = counts.most_common(2)
        if count > second:
            return [process for process in still if key(process) != most], what
        return still, what
    return (), ""


def with_status(processes: Sequence[ProcessFigures], found: Standing | None) -> tuple[ProcessFigures, ...]:
    """Return the processes, with the status of those that stand still now."""
    still = {each.index for each in (*found.blamed, *found.waiting)} if found is not None else set()
    return tuple(
        replace(each, status=STANDS) if each.index in still and each.status == "running" else each for each in processes
    )


def standstills(found: Standing, count: int) -> Iterator[Finding]:
    """Yield the finding of a job that stands still: the processes that the others wait for, and where those wait."""
    if not found.blamed:
        first = found.waiting[0]
        every = f"all {len(found.waiting)} processes" if len(found.waiting) > 1 else f"process {first.index}"
        message = (
            f"{every} {_stands(found.waiting)} {_state(first).text(first.directory)}; none differs from the others"
        )
        yield Finding(message, (_state(first).at,), seconds=None, index=None, code="process_standstill")
        return
    rest = _where_waiting(found.waiting)
    steps = Counter(_state(process).step for process in found.waiting).most_common(1)
    usual_step = steps[0][0] if steps else None
    for process in found.blamed[:_MOST_BLAMED]:
        state = process.standstill
        if state is None and (compile_ := process.compiling) is not None:
            message = (
                f"process {process.index} of {count} {_stands([process])} in a compilation: {compile_.message}{rest}"
            )
            places, fix = compile_.places[:1], compile_.own_fix or None
            yield Finding(message, places, own_fix=fix, index=process.index, code="process_standstill")
            continue
        if found.why == "ended" or state is None:
            step = f" after step {integer(process.last_step)}" if process.last_step is not None else ""
            message = f"process {process.index} of {count} has ended by itself{step}, and the others have not{rest}"
            yield Finding(message, index=process.index, code="process_standstill")
            continue
        message = f"process {process.index} of {count} {_stands([process])} {state.text(process.directory)}"
        if found.why == "another step" and usual_step is not None:
            message += (
                f"; the others stand at step {integer(usual_step)}, and have called a different number of collectives"
            )
        elif found.why == "another line":
            message += "; the others are at another line, and so in a different collective"
        stacks = command("open", path_word(process.path))
        fix = what_ends(state)
        own_fix = f"{fix} The stacks of its threads: {stacks}" if fix else None
        yield Finding(message + rest, (state.at,), own_fix=own_fix, index=process.index, code="process_standstill")


_MOST_BLAMED = 4


def _where_waiting(waiting: Sequence[ProcessFigures]) -> str:
    """Return where most of the processes wait: `; 511 wait since step 188 in the compiled call of train.py:585`."""
    lines = Counter(
        (state.at.short(process.directory), state.step, state.waits == DEVICE)
        for process in waiting
        if (state := process.standstill) is not None and state.at
    )
    parts = []
    for (line, at_step, on_device), number in lines.most_common(3):
        since = f" since step {integer(at_step)}" if at_step is not None else ""
        where = "in the compiled call of" if on_device else "at"
        parts.append(f"{integer(number)} {'waits' if number == 1 else 'wait'}{since} {where} {line}")
    return f"; {', '.join(parts)}" if parts else ""


def _stands(processes: Sequence[ProcessFigures]) -> str:
    if all(process.status not in ("running", STANDS) for process in processes):
        return "stood still"
    return "stands still" if len(processes) == 1 else "stand still"
