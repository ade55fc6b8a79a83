"""Which process of a job is late by its own work, since when, and what makes it so.

A job is as fast as its slowest process: in every step the others wait for it in a collective, inside a compiled
function. So all processes spend the same time in the loop, and the late one is that whose own work (data, Python,
copies) takes more of its loop than of theirs. Where its loop also takes longer than theirs, nobody waits. What a slow
device costs cannot be told so, because its own work happens where the others wait (see `slow_device`).

How long the main thread worked at all is known from its CPU clock: where all have that, it decides who is late, and the
samples of the stack only what with. Without it the samples decide both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from jaxprof.analysis.jobs.blocks import (
    LEAST_BLOCKS,
    LEAST_DIFFERENCE,
    OWN_WORK,
    PARTS_OF_ITS_OWN,
    Excess,
    LoopBlocks,
    LoopComparison,
    in_blocks,
    windows_of,
)
from jaxprof.analysis.jobs.figures import ProcessFigures, share_beside
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.jobs.loop_windows import LoopWindows
from jaxprof.analysis.jobs.stretches import WHOLE, Differences, LateStretch, differences
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DISPATCH, HOST
from jaxprof.units import percent_or_less, seconds

OWN: Final = (*PARTS_OF_ITS_OWN, COMPILE)
"""The parts of a loop in which a process works itself while the others wait for it."""
PLAIN: Final = 0.5
"""Of the loop's time: by so much more of it a process works, that a short loop says it, too."""
_PLAIN_BY_CLOCK: Final = 0.25
"""The same by the CPU clock of the main threads, which must agree where all have one."""
_SAMPLES_APART: Final = 4
"""Samples that count as one: those that follow each other are alike."""
_PLAIN_ERRORS: Final = 4.0
"""Standard errors that the difference must be."""
_SHARED: Final = 0.25
"""Share of its loop (of compiling: of its wall time) that every process spends on one thing, from which it is said."""
_IN_STEP: Final = 1.15
"""Processes that wait for each other are in the loop for as long as each other, up to this factor."""
_MOST_NAMED: Final = 8
_CANNOT: Final = "whose own work makes the others wait cannot be told: "
_WORDS: Final = {
    DATA: "making or fetching its input",
    HOST: "Python on the host",
    DISPATCH: "calling JAX",
    COPY: "copies between host and device",
    OWN_WORK: "work on its main thread",
}
_ADVICE: Final = {
    DATA: "Look at its input: the shard, the disk or the network of that host. Its session has the lines.",
    HOST: "Its session has the lines: logging, checkpoints or metrics of one process, or a busy host.",
    DISPATCH: "Its session has the lines: operations outside jit, or a host with slower processors.",
    COPY: "Its session has the lines that copy.",
    OWN_WORK: "Samples do not say which of its lines that is: look at what else runs on its host.",
}


def comparable(processes: Sequence[ProcessFigures], notices: list[str]) -> list[ProcessFigures]:
    """Those that were seen in one loop for long enough; without two of them an empty list, and why in `notices`."""
    seen = [process for process in processes if len(windows_of(process)) >= LEAST_BLOCKS]
    if len(seen) < 2:
        notices.append(f"{_CANNOT}fewer than two processes were seen in a loop for 3 s or more")
        return []
    loops = Counter(process.loop.where for process in seen if process.loop is not None)
    where, most = loops.most_common(1)[0]
    if len(loops) > 1 and 2 * most <= len(seen):
        notices.append(f"{_CANNOT}their loops are at different lines: {_named(seen)}")
        return []
    elsewhere = [process for process in seen if process.loop is not None and process.loop.where != where]
    if elsewhere:
        notices.append(f"not compared, because their loop is at another line: {_named(elsewhere)}")
    return [process for process in seen if process not in elsewhere]


def _named(processes: Sequence[ProcessFigures]) -> str:
    """`0 (train.py:24), 1 (loader.py:18)`: the processes, each with the line that takes most of its own loop."""
    named = []
    for process in processes[:_MOST_NAMED]:
        lines = process.loop.lines if process.loop is not None else ()
        most = max(lines, key=lambda line: line.seconds, default=None)
        named.append(f"{process.index} ({most.where.short()})" if most is not None else str(process.index))
    more = len(processes) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def stragglers(compared: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """Those of the processes that are late by their own work; `compared` is the answer of `comparable`."""
    if len(compared) < 2:
        return
    windows = [windows_of(process) for process in compared]
    whole = _comparison(compared, windows, WHOLE, 2)
    deciding = (OWN_WORK,) if whole.knows(OWN_WORK) else PARTS_OF_ITS_OWN
    by_what = differences(windows, [_origin(process) for process in compared], deciding)
    for number in range(len(compared)):
        found = _late(compared, windows, number, whole, by_what)
        if found is not None:
            yield _finding(compared, number, *found)


def plainly_late(processes: Sequence[ProcessFigures], named: Collection[int | None]) -> Iterator[JobFinding]:
    """Processes whose loop is too short to be compared in blocks, and whose own work plainly takes most of it while the
    others, in the same loop, do none of it. `named`: who is late already."""
    for process in processes:
        others = [other for other in processes if other is not process and _of_one_loop(process, other)]
        if process.index in named or not others or len(windows_of(process)) > 2 * LEAST_BLOCKS:
            continue
        found = [(part, *_plain(process, others, part)) for part in PARTS_OF_ITS_OWN]
        part, share, usual = max(found, key=lambda each: each[1] - each[2])
        if share - usual < PLAIN or not _clock_agrees(process, others):
            continue
        assert process.loop is not None
        message = (
            f"process {process.index} on {process.host} is late: {_WORDS[part]} takes {percent_or_less(share)} of its "
            f"loop, {percent_or_less(usual)} on the others, {_waiting(process, others, part)}"
        )
        took = (share - usual) * process.loop.seconds
        where = process.loop.line_of(part)
        yield JobFinding("straggler", process.index, message, _ADVICE[part], part, took, where, since_seconds=0.0)


def _of_one_loop(process: ProcessFigures, other: ProcessFigures) -> bool:
    both = process.shares is not None and other.shares is not None
    return both and process.loop is not None and other.loop is not None and process.loop.where == other.loop.where


def _plain(process: ProcessFigures, others: Sequence[ProcessFigures], part: str) -> tuple[float, float]:
    """A part's share of its loop and of the others'; the same twice where so few samples could show it by chance."""
    share, usual = share_beside(process, others, part) or (0.0, 0.0)
    samples = min(each.loop.samples for each in (process, *others) if each.loop is not None) / _SAMPLES_APART
    error = math.sqrt((share * (1 - share) + usual * (1 - usual) + 1 / samples) / samples)
    return (share, usual) if share - usual > _PLAIN_ERRORS * error else (share, share)


def _clock_agrees(process: ProcessFigures, others: Sequence[ProcessFigures]) -> bool:
    """Whether its main thread worked, or waited for something else than its device, for more of its loop than those of
    the others: True where a clock is missing."""
    known = [_worked(each) for each in (process, *others)]
    mine, *theirs = [each for each in known if each is not None] if None not in known else [1.0, 0.0]
    return mine - median(theirs) >= _PLAIN_BY_CLOCK


def _worked(process: ProcessFigures) -> float | None:
    windows = LoopWindows.of(process.windows)
    whole, own = float(windows.seconds.sum()), float(windows.own_seconds.sum())
    return own / whole if whole > 0 and not math.isnan(own) else None


def shared(processes: Sequence[ProcessFigures]) -> list[tuple[str, float, float]]:
    """What every process of a job spends a good part of its time on: in words, the least and the largest share."""
    found = []
    compiling = [(each.compile_seconds or 0.0) / each.wall_seconds for each in processes if each.wall_seconds]
    if len(processes) == len(compiling) > 1 and min(compiling) >= _SHARED:
        found.append(("compiling, of the wall time", min(compiling), max(compiling)))
    shares = [each.shares for each in processes if each.shares is not None]
    if len(shares) == len(processes) > 1:
        for part in PARTS_OF_ITS_OWN:
            least, most = min(each[part] for each in shares), max(each[part] for each in shares)
            if least >= _SHARED:
                found.append((f"{_WORDS[part]}, of the loop", least, most))
    return found


def _late(
    compared: Sequence[ProcessFigures],
    windows: Sequence[LoopWindows],
    number: int,
    whole: LoopComparison,
    by_what: dict[str, Differences],
) -> tuple[Excess, LoopComparison, LateStretch] | None:
    """What a process is late by, and in what stretch of its loop; None if it is not late."""
    best: tuple[Excess, LoopComparison, LateStretch] | None = None
    for what, more in by_what.items():
        excess, comparison, when = whole.excess(number, what), whole, WHOLE
        most, said = more.stretch(number) or (WHOLE, WHOLE)
        tested = most if said.is_whole else said
        if not tested.is_whole:
            within = _comparison(compared, windows, tested, 2 * more.tests)
            of_stretch = within.excess_of(compared[number], what)
            if of_stretch is not None and of_stretch.is_certain:
                if said.is_whole:  # the seconds before or after are too few to say that it was not late in them
                    excess = replace(excess, is_certain=excess.difference >= LEAST_DIFFERENCE)
                else:
                    excess, comparison, when = of_stretch, within, said
        if excess.is_certain and (best is None or excess.difference > best[0].difference):
            best = excess, comparison, when
    return best


def _comparison(
    compared: Sequence[ProcessFigures],
    windows: Sequence[LoopWindows],
    stretch: LateStretch,
    tests: int,
) -> LoopComparison:
    """The loops in a stretch, without those that have too few windows in it."""
    loops: list[LoopBlocks] = []
    for process, own in zip(compared, windows, strict=True):
        blocks = in_blocks(process, stretch.windows(own, _origin(process)))
        if blocks is not None:
            loops.append(blocks)
    return LoopComparison(loops, tests)


def _origin(process: ProcessFigures) -> float:
    """When its loop was seen first."""
    return float(LoopWindows.of(process.windows).began_seconds[0])


def _finding(
    compared: Sequence[ProcessFigures], number: int, excess: Excess, comparison: LoopComparison, when: LateStretch
) -> JobFinding:
    process = compared[number]
    place = next(at for at, loop in enumerate(comparison.loops) if loop.process is process)
    by_part = [comparison.excess(place, part) for part in PARTS_OF_ITS_OWN]
    most = max(by_part, key=lambda each: each.difference)
    named = (
        most if excess.what == OWN_WORK and most.difference >= max(LEAST_DIFFERENCE, excess.difference / 3) else excess
    )
    windows = when.windows(windows_of(process), _origin(process))
    step = next((int(step) for step in windows.first_steps if step == step), None)  # NaN: not known
    others = [other for at, other in enumerate(compared) if at != number]
    of_loop = share_beside(process, others, named.what) if when.is_whole and named.what != OWN_WORK else None
    share, usual = of_loop or (named.share, named.usual)
    message = (
        f"process {process.index} on {process.host} is late{_since(when, step)}: {_WORDS[named.what]} takes "
        f"{percent_or_less(share)} of {'its loop' if when.is_whole else 'that time'}, "
        f"{percent_or_less(usual)} on the others, {_waiting(process, others, named.what)}"
    )
    where = process.loop.line_of(named.what) if process.loop is not None and named.what != OWN_WORK else None
    return JobFinding(
        "straggler",
        process.index,
        message,
        _ADVICE[named.what],
        named.what,
        excess.difference * float(windows.seconds.sum()),
        where,
        since_seconds=when.began_seconds,
        until_seconds=when.ended_seconds,
        since_step=step,
    )


def _since(when: LateStretch, step: int | None) -> str:
    if when.is_whole:
        return ""
    at = f" (step {step})" if step is not None and when.began_seconds else ""
    if when.ended_seconds is None:
        return f" since {seconds(when.began_seconds)} into its loop{at}"
    return f" from {seconds(when.began_seconds)} to {seconds(when.ended_seconds)} of its loop{at}"


def _waiting(process: ProcessFigures, others: Sequence[ProcessFigures], what: str) -> str:
    took = process.loop.seconds if process.loop is not None else 0.0
    theirs = median(other.loop.seconds for other in others if other.loop is not None)
    if took <= _IN_STEP * theirs:
        return "which wait for it" + (": the input of this host starves the job" if what == DATA else "")
    return f"whose loop takes {seconds(theirs)} where its takes {seconds(took)}"
