"""What the time of a program's hot loop goes to in its steady state, without first compilations and imports.

The hot loop holds most of the program's looping and of its work with JAX. What its time goes to comes from samples and
from its timed lines, never from names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, PARTS
from jaxprof.analysis.programs.call_bounds import UNKNOWN, CallBounds, in_inner_loops, inline_functions, least_arguments
from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.spots import (
    AROUND,
    IDLE,
    OUTSIDE,
    PREEMPTED,
    WORKS,
    LoopKey,
    Spot,
    kind_of,
    may_be_delayed,
)
from jaxprof.analysis.programs.steps import StepFigures
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import field, frozen
from jaxprof.events import STAGES, Compiled, EmptyCallTimed, ProgramSampled, SampledLine, SourceLocation
from jaxprof.events.programs import hot_loop

_ASLEEP = re.compile(r"(^|\.)(sleep|select|poll|pause|sigwait|accept|recv|wait|join)\(\)$")
"""Calls in which a thread sleeps until it has something to do."""
_LEAST_RAN = 0.1
"""Least share of the running time that was no wait for a processor, whatever the clocks say."""
_PLAIN_SAMPLES = 3
"""Fewest samples of the host's calls at a location from which its other Python is the host's as well."""
_PARTS = {
    "compiled": DEVICE,
    "inline": DEVICE,
    "sync": DEVICE,
    "dispatch": DISPATCH,
    "call": DISPATCH,
    "transfer": COPY,
    "fed": COPY,
    "callback": HOST,
    "data": DATA,
    "host": HOST,
    "unseen": UNKNOWN,
    "around": UNKNOWN,
    "beyond": HOST,
    "contended": UNKNOWN,
}


@frozen
class HotLoop:
    """Figures of the hot loop; findings about the loop use the same ones."""

    key: LoopKey | None
    spots: tuple[Spot, ...]
    """Spots seen in the loop, without compilation stages."""
    times: StepFigures
    parts: Mapping[str, float]
    samples: float
    """Number of samples that `parts` rest on, plus timed iterations if those decide."""
    last_line: int | None
    library: bool
    """Whether the loop is outside the user's code."""
    working: frozenset[int]
    """Lines of the loop under which JAX was at work."""
    eager: frozenset[int]
    """Lines that mostly run operations outside any jit; the Python code around these belongs to them."""
    unknown: float = 0.0
    """Seconds in none of `parts`, because no clock says what they go to."""
    launching: Mapping[str, float] = field(default_factory=dict)
    """Seconds inside compiled functions that the calling thread computes itself: those that launching them takes
    (`DISPATCH`), and those that it may take (`UNKNOWN`). The rest of the time inside is the device's work."""
    brief_call: tuple[int, int] = (1, 0)
    """Fewest arrays and fewest Python numbers with which such a function is called."""
    preempted: float = 0.0
    """Seconds in which the thread waited for a processor, in a call in which it may have waited for the device before;
    they are in none of the parts, nor in `unknown`."""
    waited: float = 0.0
    """Seconds for which the thread waited for a processor elsewhere, in the parts and in `unknown`."""
    undelayed: Mapping[str, float] = field(default_factory=dict)
    """`parts` without the time for which the thread waited for a processor."""
    shares_processors: bool = False
    """Whether the device is this machine's processors, so that it was kept waiting for them as the thread was."""
    calls_python: frozenset[SourceLocation] = frozenset()
    """Places at which a compiled function may be called that itself calls Python."""
    plain: frozenset[SourceLocation] = frozenset()
    """Locations at which nothing but the host's own Python runs, so that what no sample saw there is that, too."""
    asleep: tuple[Spot, ...] = ()
    """Spots at which the thread waited for something to do, inside the loop (also in `spots`) or outside."""

    @property
    def seconds(self) -> float:
        """Seconds of the loop's steady state."""
        return self.own_seconds + self.preempted

    @property
    def own_seconds(self) -> float:
        """`seconds` without the waits for a processor."""
        return sum(self.parts.values()) + self.unknown

    def doubt(self, part: str) -> float:
        """Return the seconds of `unknown` that a part may take. Python that held the interpreter's lock is not the
        device's, and a launch is either the device's or the calls'."""
        if part == DISPATCH:
            return self.unknown
        if part != DEVICE:
            return self.unknown - (0.0 if self.calls_python else self.launching.get(UNKNOWN, 0.0))
        if not self.times.count:  # what no sample saw may be a wait for the device, in which the thread ran
            return self.unknown
        held = (spot.seconds for spot in self.spots if spot.kind in ("unseen", AROUND) and self.part(spot) == UNKNOWN)
        return self.unknown - sum(held)

    @property
    def waits(self) -> tuple[Spot, ...]:
        """Spots of the host's part at which the thread was blocked, as in a sleep, longest first."""
        return tuple(spot for spot in self.spots if spot.state == "waiting" and self.part(spot) == HOST)

    @property
    def where(self) -> SourceLocation | None:
        """Location of the loop's first line."""
        return SourceLocation(self.key[0], self.key[2], self.key[1]) if self.key is not None else None

    def holds(self, location: SourceLocation) -> bool:
        """Return whether a line is in the loop, in the function of the loop itself."""
        if self.key is None or self.last_line is None or (location.file, location.function) != self.key[:2]:
            return False
        return self.key[2] <= (location.line or 0) <= self.last_line

    def spots_accounted_for(self, spots: Sequence[Spot]) -> list[Spot]:
        """Return those of these spots whose lines iterations like the timed ones can make up. Calls that return at once
        only queue their work; the wait for it, of other calls, comes in iterations that were not timed."""
        seconds = totals((line, spot.seconds) for line, spot in _at_lines(self.spots, self.key))
        doubted = {line for line, sampled in seconds.items() if not self.times.accounts_for(line, sampled)}
        return [spot for spot in spots if (site := spot.site_in(self.key)) is None or site.line not in doubted]

    def part(self, spot: Spot) -> str:
        """Return what the time at a spot goes to; `UNKNOWN` if that is not known."""
        return part_of(spot, self.key, self.working, self.eager, self.plain)


LIBRARY_SHARE = 0.2
"""Least share of JAX's work, if it works in no loop of the user's, that makes a library's loop the hot one."""


def find_hot_loop(spots: Sequence[Spot], rows: Sequence[Compiled]) -> LoopKey | None:
    """Return the hot loop; None if JAX works in no loop. First compilations in a loop do not count."""
    lines = {(where.file, where.line) for row in recompilations(rows) if (where := row.called_from)}

    def counts(spot: Spot, first: bool) -> bool:
        return first or spot.kind not in STAGES or bool(lines & _lines_of(spot))

    def of(library: bool, first: bool = False) -> LoopKey | None:
        return hot_loop(
            (
                tuple(dict.fromkeys(site.key for site in spot.sites if site.library == library)),
                spot.seconds,
                spot.kind in WORKS,
            )
            for spot in spots
            if counts(spot, first)
        )

    def is_much(key: LoopKey | None) -> bool:
        work = [spot for spot in spots if spot.kind in WORKS and spot.kind not in STAGES]
        inside = sum(spot.seconds for spot in work if spot.site_in(key))
        return inside >= LIBRARY_SHARE * sum(spot.seconds for spot in work)

    # A brief loop in a call of a library is no loop of the program. Samples may miss calls of microseconds; the
    # compilations in the loop then identify it.
    library = of(library=True)
    return of(library=False) or (library if is_much(library) else None) or of(library=False, first=True)


@frozen
class OutsideLoop:
    """Time that the main thread spent on the host outside the hot loop, without imports and compilations."""

    states: Mapping[str, float]
    """Seconds by state."""
    where: SourceLocation
    """The line that took most, in the function that took most."""
    before: bool
    """Whether nearly all of it lies before the loop."""


def outside_loop(windows: Sequence[ProgramSampled], key: LoopKey) -> OutsideLoop | None:
    """Return the host's time outside the hot loop `key`; None if no sample saw any."""
    states: dict[str, float] = defaultdict(float)
    lines: dict[SourceLocation, float] = defaultdict(float)
    early, begun = 0.0, False
    for window in windows:
        inside = {at for at, site in enumerate(window.sites) if site.key == key}
        for line in window.lines:
            kind = kind_of(line)
            if not line.file or inside.intersection(line.sites) or kind in (*STAGES, *OUTSIDE, "unseen"):
                continue
            if line.state in {"host_busy", "waiting", "data", "transfer"}:
                states[line.state] += line.seconds
                lines[line.location] += line.seconds
                early += 0.0 if begun else line.seconds
        begun = begun or bool(inside)
    if not lines:
        return None
    functions = totals((replace(location, line=None), took) for location, took in lines.items())
    most = max(functions, key=lambda function: functions[function])
    where = max((location for location in lines if replace(location, line=None) == most), key=lambda line: lines[line])
    # It lies before the loop if nearly all of it is over when the loop is first seen.
    return OutsideLoop(states, where, early >= 0.9 * sum(states.values()))


def wait_after(windows: Sequence[ProgramSampled], key: LoopKey) -> tuple[SourceLocation, float] | None:
    """Return the line outside a loop that waited longest for the device once the loop had begun, and the seconds of
    all such lines; None if no sample saw one."""
    waits = totals((line.location, line.seconds) for _, line in _waits_after(windows, key))
    return (max(waits, key=lambda location: waits[location]), sum(waits.values())) if waits else None


def queued_after(windows: Sequence[ProgramSampled], key: LoopKey) -> tuple[float, float]:
    """Return the seconds for which the program waited for values once the loop had begun, outside of all loops, and the
    number of samples that they rest on."""
    took, samples = 0.0, 0.0
    for window, line in _waits_after(windows, key):
        lasted = window.monotonic_seconds - window.began_seconds
        if kind_of(line) == "sync" and not line.sites and lasted > 0:
            took += line.seconds
            samples += window.samples * line.seconds / lasted
    return took, samples


def _waits_after(windows: Sequence[ProgramSampled], key: LoopKey) -> Iterator[tuple[ProgramSampled, SampledLine]]:
    """Yield the lines outside a loop that waited for the device once the loop had begun, with their window."""
    begun = False
    for window in windows:  # one ends where a loop first works
        inside = {at for at, site in enumerate(window.sites) if site.key == key}
        begun = begun or bool(inside)
        for line in window.lines if begun else ():
            if line.file and line.state == "device_busy" and not inside.intersection(line.sites):
                yield window, line


def loop_figures(
    spots: Sequence[Spot],
    key: LoopKey | None,
    times: StepFigures,
    rows: Sequence[Compiled],
    empty_call: EmptyCallTimed | None = None,
    *,
    shares_processors: bool = False,
) -> HotLoop:
    """Return the figures of a loop; with `key` None, those of the whole program.

    `empty_call`: what an empty call of a compiled function takes here; None if unknown. `shares_processors`: as the
    field.
    """
    within = [spot for spot in spots if spot.is_in(key)]
    inside = [spot for spot in within if spot.kind not in OUTSIDE]
    staged = [spot for spot in inside if spot.kind in STAGES]
    unstaged = tuple(spot for spot in inside if spot.kind not in STAGES)
    calls_python = _calls_python(unstaged, rows)
    steady = _assign_kinds(unstaged, unstaged, calls_python)
    waited = sum(spot.delay for spot in steady)
    running = sum(spot.seconds for spot in steady if may_be_delayed(spot))
    iterations = times.iterations_in(sum(spot.seconds for spot in within if spot.kind not in (*STAGES, "import")))
    slowdown = running / max(running - waited, _LEAST_RAN * running) if running else 1.0
    bounds = CallBounds(key, iterations, times.per_second is not None, slowdown, empty_call)
    steady = bounds.split_callbacks(steady, rows)
    working, eager = working_lines(inside, key), eager_lines(steady, key)
    plain = plain_locations(steady, key, times, working)

    def part(spot: Spot) -> str:
        return part_of(spot, key, working, eager, plain)

    called = inline_functions(steady, rows)
    launching, waking = bounds.launching_seconds(steady, called), bounds.wake_seconds(steady)
    parts, delays = _sums_by_part(steady, part, launching, waking)
    unknown = parts.pop(UNKNOWN)
    compiling = sum(spot.seconds for spot in staged)
    parts[COMPILE] = min(compiling, _recompile_seconds(staged, rows))
    samples = sum(spot.samples for spot in steady)
    # With fewer samples, timed iterations do not count like samples.
    if samples >= 4 and _has_pure_lines(steady, key, times, part):
        samples += times.count
    samples += sum(spot.samples for spot in staged) * parts[COMPILE] / compiling if compiling else 0.0
    sites = [site for spot in inside if (site := spot.site_in(key)) is not None]
    return HotLoop(
        key=key,
        spots=steady,
        times=times,
        parts=parts,
        samples=samples,
        last_line=max((site.last_line for site in sites), default=None),
        library=any(site.library for site in sites),
        working=working,
        plain=plain,
        eager=eager,
        unknown=unknown,
        launching=launching,
        brief_call=least_arguments(called),
        preempted=sum(spot.seconds for spot in within if spot.kind == PREEMPTED),
        waited=waited,
        undelayed={name: max(seconds - delays[name], _LEAST_RAN * seconds) for name, seconds in parts.items()},
        shares_processors=shares_processors,
        calls_python=calls_python,
        asleep=tuple(spot for spot in spots if _is_asleep(spot, key)),
    )


def _sums_by_part(
    spots: Sequence[Spot], part: Callable[[Spot], str], launching: Mapping[str, float], waking: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the seconds of each part, and those of them for which the thread waited for a processor. Launching is
    apart from the device's, as inline time in which the thread ran, and so is waking up, before which it was blocked.
    """
    parts = dict.fromkeys((*PARTS, UNKNOWN), 0.0)
    delays = dict(parts)
    for spot in spots:
        parts[part(spot)] += spot.seconds
        delays[part(spot)] += spot.delay
    inline = [spot for spot in spots if spot.kind == "inline"]
    delayed = sum(spot.delay for spot in inline) / sum(spot.seconds for spot in inline) if inline else 0.0
    for other, seconds in launching.items():
        for sums, share in ((parts, 1.0), (delays, delayed)):
            sums[other] += share * seconds
            sums[DEVICE] -= share * seconds
    parts[UNKNOWN] += waking
    parts[DEVICE] -= waking
    return parts, delays


def _is_asleep(spot: Spot, key: LoopKey | None) -> bool:
    """Return whether the thread waits until it has something to do.

    A sleep in every iteration is part of the loop's time. A sleep under a condition, or in a program whose work with
    JAX is in no loop, lies between two pieces of work.
    """
    if spot.kind == IDLE:
        return True
    if spot.kind != "host" or spot.state != "waiting" or not _ASLEEP.search(spot.call):
        return False
    loop_site = spot.site_in(key)
    return key is None or (loop_site is not None and loop_site.conditional)


def parts_in(loop: HotLoop, spots: Sequence[Spot]) -> dict[str, float]:
    """Return what the time at some spots of a loop goes to, in seconds by `PARTS`. The rules are those of
    `HotLoop.parts`, which covers the whole loop. Compilation stages and imports are left out."""
    parts = dict.fromkeys(PARTS, 0.0)
    inside = tuple(spot for spot in spots if spot.kind not in (*OUTSIDE, *STAGES) and spot.is_in(loop.key))
    for spot in _assign_kinds(inside, loop.spots, loop.calls_python):
        part = loop.part(spot)
        parts[HOST if part == UNKNOWN else part] += spot.seconds
    return parts


def needs_empty_call(loop: HotLoop) -> bool:
    """Return whether the time of an empty call would help to say what bounds the loop."""
    if not loop.times.count:
        return False
    inline, around = ([spot for spot in loop.spots if spot.kind == kind] for kind in ("inline", AROUND))
    doubtful = 0.0 if in_inner_loops(inline, loop.key) else loop.launching.get(UNKNOWN, 0.0)
    doubtful += 0.0 if in_inner_loops(around, loop.key) else sum(spot.seconds for spot in around)
    # Timing an empty call starts a process, which is worth it only for a large unknown part of the loop.
    return doubtful > 0.2 * loop.own_seconds


def _calls_python(spots: Iterable[Spot], rows: Sequence[Compiled]) -> frozenset[SourceLocation]:
    """Return the places at which a compiled function may be called that itself calls Python: all at which no other one
    was compiled, because a function is often compiled elsewhere than in its loop."""
    by_callbacks: dict[bool, set[SourceLocation]] = {True: set(), False: set()}
    for row in rows:
        by_callbacks[row.callbacks].add(row.called_from)
    others = by_callbacks[False] - by_callbacks[True]
    return frozenset(spot.location for spot in spots if by_callbacks[True] and spot.location not in others)


def _assign_kinds(
    spots: tuple[Spot, ...], loop: Sequence[Spot], calls_python: frozenset[SourceLocation]
) -> tuple[Spot, ...]:
    """Return the spots, with the work of JAX that a sample alone cannot tell assigned by the other spots of the loop.

    Python at the very call of a compiled function enters it. Where a compiled function calls Python, that and the
    Python around its call look alike to a sample that has to wait for the interpreter's lock.
    """
    entered = {(spot.location, spot.call) for spot in loop if spot.kind in ("compiled", "fed", "inline") and spot.call}

    def kind(spot: Spot) -> str:
        if spot.kind == "call" and not spot.through and spot.location in calls_python:
            return AROUND
        at_call = spot.kind == "host" and spot.state == "host_busy" and (spot.location, spot.call) in entered
        return "call" if at_call else spot.kind

    return tuple(replace(spot, kind=kind(spot)) for spot in spots)


def _has_pure_lines(
    spots: Sequence[Spot],
    key: LoopKey | None,
    times: StepFigures,
    part: Callable[[Spot], str],
) -> bool:
    """Return whether the time of each line goes to one part; the timed iterations then count like samples."""
    at = totals(((line, part(spot)), spot.seconds) for line, spot in _at_lines(spots, key))
    by_line = grouped((line, took) for (line, _), took in at.items())
    pure = sum(max(parts) for line, parts in by_line.items() if line in times.by_line)
    # Timed lines with a single part must hold nearly all of the loop's time.
    return pure >= 0.95 * sum(at.values()) > 0


def working_lines(spots: Sequence[Spot], key: LoopKey | None) -> frozenset[int]:
    """Return the lines of a loop under which JAX was at work."""
    return frozenset(line for line, spot in _at_lines(spots, key) if spot.kind in WORKS)


def _at_lines(spots: Sequence[Spot], key: LoopKey | None) -> Iterator[tuple[int, Spot]]:
    """Yield the spots inside a loop, each with the line of the loop that leads to it."""
    for spot in spots:
        site = spot.site_in(key)
        if site is not None:
            yield site.line, spot


def eager_lines(spots: Sequence[Spot], key: LoopKey | None) -> frozenset[int]:
    """Return the lines of a loop at which operations outside any jit take more time than anything else on the host."""
    signs = {"dispatch": 1, "host": -1, "data": -1}
    more = totals((line, signs[spot.kind] * spot.seconds) for line, spot in _at_lines(spots, key) if spot.kind in signs)
    return frozenset(line for line, seconds in more.items() if seconds > 0)


def plain_locations(
    spots: Sequence[Spot], key: LoopKey | None, times: StepFigures, working: frozenset[int]
) -> frozenset[SourceLocation]:
    """Return the locations at which samples saw the host's calls, below lines of the loop that were timed, and under
    which JAX was never at work. Without these times, Python that no sample saw may have run at any line."""
    seen = totals(
        (spot.location, spot.samples)
        for line, spot in _at_lines(spots, key)
        if spot.kind == "host" and spot.call and line in times.by_line and line not in working
    )
    return frozenset(location for location, samples in seen.items() if samples >= _PLAIN_SAMPLES)


def part_of(
    spot: Spot,
    key: LoopKey | None,
    working: frozenset[int],
    eager: frozenset[int],
    plain: frozenset[SourceLocation] = frozenset(),
) -> str:
    site = spot.site_in(key)
    if spot.kind == "unseen" and spot.location in plain and site is not None and site.line not in working:
        return HOST
    if site is not None and site.line in eager and spot.kind in ("host", "data"):
        return DISPATCH
    if spot.kind == "read":
        return DEVICE if spot.state == "device_busy" else HOST
    is_python = spot.kind == "host" and not spot.call
    in_loop = site is not None and site.line in working and (spot.location.file, spot.location.function) == site.key[:2]
    if is_python and in_loop:
        return DISPATCH  # on its way into a JAX call; a function that is called beside it is host work
    return _PARTS.get(spot.kind, HOST)


def _recompile_seconds(staged: Sequence[Spot], rows: Sequence[Compiled]) -> float:
    """Return the seconds of the main thread's recompilations that were called from these spots."""
    lines = {line for spot in staged for line in _lines_of(spot)}
    return sum(
        row_seconds(row)
        for row in recompilations(rows)
        if (where := row.called_from) and (where.file, where.line) in lines
    )


def _lines_of(spot: Spot) -> set[tuple[str, int | None]]:
    return {(spot.location.file, spot.location.line), *((site.file, site.line) for site in spot.sites)}


def recompilations(rows: Sequence[Compiled]) -> list[Compiled]:
    """Return the main thread's compilations that were not the first of their function. Recompilations of JAX's own
    functions, which every set-up calls with a few shapes, count only if there are many."""
    again = [row for row in rows if row.reason_code != "first" and not row.thread]
    counted = Counter[str]()
    for row in again:
        counted[row.function] += row.count
    # Fewer compilations of one of JAX's own functions for other shapes are a set-up.
    return [row for row in again if not (row.op_by_op or row.library) or counted[row.function] >= 8]
