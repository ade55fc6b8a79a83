"""What the time of a program's hot loop goes to in its steady state, without first compilations and imports.

The hot loop holds most of the program's looping and of its work with JAX. What its time goes to comes from samples and
from its timed lines, never from names. A `Spot` is where the main thread was seen, as finely as recorded: a line, its
activity, and the loops around it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from jaxprof.analysis.programs import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, PARTS
from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.steps import StepFigures
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import field, frozen
from jaxprof.events import (
    STAGES,
    Compiled,
    EmptyCallTimed,
    LoopSite,
    ProgramSampled,
    SampledLine,
    SourceLocation,
)
from jaxprof.events.programs import hot_loop

WORKS = frozenset({"compiled", "inline", "fed", "callback", "dispatch", "transfer", "sync", *STAGES})
"""Kinds of work that JAX does."""
LoopKey = tuple[str, str, int]
"""File, function and first line of a loop."""


@frozen
class Spot:
    """Time that one line of the user's source took in one kind of work, estimated from samples."""

    location: SourceLocation
    state: str
    kind: str
    """Kind of work, as in `ProgramSampled.lines`."""
    call: str
    sites: tuple[LoopSite, ...]
    """Loops around the line, innermost first."""
    seconds: float
    samples: float
    """Number of samples that the time rests on."""
    bytes: int | None = None
    """Bytes of the largest array that was read there."""
    put_bytes: int | None = None
    """Bytes of the largest array that was put on a device there."""
    through: str = ""
    """Library or callback that the time goes through, as in `ProgramSampled.lines`."""
    delay: float = 0.0
    """Seconds for which the thread waited for a processor there, if waits are even over all lines where it ran."""

    def site_in(self, loop: LoopKey | None) -> LoopSite | None:
        """Return the site of this spot in a loop; None if the spot is outside the loop, or there is no loop."""
        return next((site for site in self.sites if site.key == loop), None)


class Spots:
    """Sums over the sample windows of one program; each window is added once. What a loop did before JAX first worked
    there, such as the start of its workers, is not in the loop."""

    __slots__ = ("_totals", "_worked", "consumed")

    def __init__(self) -> None:
        self.consumed = 0
        self._worked: set[LoopKey] = set()
        self._totals: dict[tuple[SourceLocation, str, str, str, tuple[LoopSite, ...], str, Set[LoopKey]], list[float]]
        self._totals = {}

    def take(self, sampled: Sequence[ProgramSampled]) -> None:
        """Add the sample windows that have arrived since the last call."""
        for window in sampled[self.consumed :]:
            lines = [
                (line, _kind_of(line, window), tuple(window.sites[at] for at in line.sites if at < len(window.sites)))
                for line in window.lines
            ]
            self._worked |= {site.key for _, kind, around in lines if kind in WORKS for site in around}
            length = window.monotonic_seconds - window.began_seconds - window.states.get("paused", 0.0)
            running = sum(line.seconds for line in window.lines if _may_be_delayed(line))
            delay = (window.delay_seconds or 0.0) / running if running > 0 else 0.0
            for line, kind, around in lines:
                if not line.file or line.seconds <= 0:
                    continue
                early = frozenset(site.key for site in around) - self._worked
                key = (line.location, line.state, kind, line.call, around, line.through, early)
                total = self._totals.setdefault(key, [0.0] * 5)
                total[0] += line.seconds
                total[1] += window.samples * line.seconds / length if length > 0 else 0.0
                total[2] = max(total[2], line.bytes or 0)
                total[3] += delay * line.seconds if _may_be_delayed(line) else 0.0
                total[4] = max(total[4], line.put_bytes or 0)
        self.consumed = len(sampled)

    def spots(self) -> tuple[Spot, ...]:
        """Return the spots, longest time first."""
        merged = []
        for (where, state, kind, call, around, through, early), total in self._totals.items():
            sites = tuple(site for site in around if site.key not in early & self._worked)
            took, samples, read, delay, put = total
            sizes = {"bytes": int(read) or None, "put_bytes": int(put) or None}
            merged.append(Spot(where, state, kind, call, sites, took, samples, through=through, delay=delay, **sizes))
        return tuple(sorted(merged, key=lambda spot: -spot.seconds))


def _kind_of(line: SampledLine, window: ProgramSampled) -> str:
    """Return the kind of work. In an operation outside any jit, a thread that did not run by its clock waited for the
    device: what an operation costs the host, the thread itself does."""
    if line.kind == "dispatch" and line.state == "device_busy" and window.device_wait_seconds is not None:
        return "compiled"
    return line.kind or line.state


def _may_be_delayed(line: SampledLine | Spot) -> bool:
    """Return whether the thread ran there, outside compilations, or waited only for a processor."""
    # In these states a thread does not run, unless it computes a compiled function itself.
    runs = line.kind in ("inline", PREEMPTED) or line.state not in {"device_busy", "waiting"}
    return runs and line.kind not in STAGES and line.seconds > 0


UNKNOWN = "unknown"
LAUNCH_SECONDS = (1e-6, 25e-6)
"""Least and most seconds that the calling thread needs to launch a compiled function of few arguments without the
interpreter's lock. A thread that runs for longer computes the function itself, as on a CPU. If the most is too low, a
slow launch counts as the device's work; if it is too high, the verdict of brief calls stays unknown."""
LAUNCH_SHARE = 0.5
"""Least time of a launch over the time that the same call spends with the interpreter's lock to look at its arguments.
An empty call has a ratio of 0.5 to 1.4. If it is too high, calls count as dispatch-bound that compute."""
LAUNCH_LEAF_SECONDS = 5e-6
"""Most seconds that each argument adds to a launch; this allows for as many results (2 µs for both together), or for
the copy of a number or of a small NumPy array (5 µs). If it is too low, calls of many leaves count as the device's."""
EMPTY_CALL_SHARES = (0.75, 1.3)
"""Least and most time of a call's own work over that of an empty call, measured in another process. The wider, the more
of brief calls stays unknown."""
UNCOUNTED = 1.25
"""Without a counter, at most this many times the iterations that the timed ones make up: brief iterations take up to
half as long again while their lines are timed, which makes their number too low."""
CALLBACK_CALL = 50
"""Upper bound for the Python around the call of a function with callbacks, in empty calls: measured were 17 to 19 for
one with `jax.debug.print`, and 30 to 34 for one with an ordered callback, where neither was called back. If it
is too low, a call's own Python counts as that of a callback."""
MOST_ARGUMENTS = 256
"""Most arrays, and most Python numbers, with which an empty call is timed."""
WAKE_SECONDS = 10e-6
"""Most seconds that a fetch of a result takes on the calling thread itself, besides the device's time: the call, going
to sleep and waking up (5 to 8 µs measured on a CPU). If it is too low, brief fetches count as the device's."""
PREEMPTED = "preempted"
IDLE = "idle"
OUTSIDE = frozenset({"import", IDLE, PREEMPTED})
"""Kinds of work that belong to no loop: imports, waits for input from outside (a server asleep in its event loop), and
waits for a processor that others had."""
AROUND, BEYOND = "around", "beyond"
"""Kinds of Python at the call of a compiled function that itself calls Python. `around`: it may belong to the call, or
the function may call it. `beyond`: more than the call itself can take, so the function calls it, or it makes the
arguments."""
_ASLEEP = re.compile(r"(^|\.)(sleep|select|poll|pause|sigwait|accept|recv|wait|join)\(\)$")
"""Calls in which a thread sleeps until it has something to do."""
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
    unaccounted: frozenset[int]
    """Lines at which samples saw more time than iterations like the timed ones can make up."""
    unknown: float = 0.0
    """Seconds in none of `parts`, because no clock says what they go to."""
    excluded: Mapping[str, float] = field(default_factory=dict)
    """Seconds of `unknown` that cannot belong to a part, by part: Python that held the interpreter's lock is not the
    device's, and a launch is either the device's or the calls'."""
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
        """Return the seconds of `unknown` that a part may take."""
        return self.unknown - self.excluded.get(part, 0.0)

    @property
    def where(self) -> SourceLocation | None:
        """Location of the loop's first line."""
        return SourceLocation(self.key[0], self.key[2], self.key[1]) if self.key is not None else None

    def holds(self, location: SourceLocation) -> bool:
        """Return whether a line is in the loop, in the function of the loop itself."""
        if self.key is None or self.last_line is None or (location.file, location.function) != self.key[:2]:
            return False
        return self.key[2] <= (location.line or 0) <= self.last_line

    def is_accounted_for(self, spot: Spot) -> bool:
        """Return whether iterations like the timed ones can make up what samples saw at the spot's line."""
        site = spot.site_in(self.key)
        return site is None or site.line not in self.unaccounted

    def part(self, spot: Spot) -> str:
        """Return what the time at a spot goes to; `UNKNOWN` if that is not known."""
        return part_of(spot, self.key, self.working, self.eager, self.plain)


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

    # Samples may miss calls of microseconds; the compilations in the loop then identify it.
    return of(library=False) or of(library=True) or of(library=False, first=True)


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
            kind = _kind_of(line, window)
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
    waits: dict[SourceLocation, float] = defaultdict(float)
    begun = False
    for window in windows:  # one ends where a loop first works
        inside = {at for at, site in enumerate(window.sites) if site.key == key}
        begun = begun or bool(inside)
        for line in window.lines if begun else ():
            if line.file and line.state == "device_busy" and not inside.intersection(line.sites):
                waits[line.location] += line.seconds
    return (max(waits, key=lambda location: waits[location]), sum(waits.values())) if waits else None


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
    inside = [spot for spot in spots if spot.kind not in OUTSIDE and (key is None or spot.site_in(key) is not None)]
    unstaged = tuple(spot for spot in inside if spot.kind not in STAGES)
    calls_python = _calls_python(unstaged, rows)
    steady = _assign_kinds(unstaged, unstaged, calls_python)
    staged = [spot for spot in inside if spot.kind in STAGES]
    waiting = [spot for spot in spots if spot.kind == PREEMPTED and (key is None or spot.site_in(key))]
    preempted = sum(spot.seconds for spot in waiting)
    waited = max(0.0, sum(spot.delay for spot in (*steady, *waiting)) - preempted)
    delayed = _waiting_share(steady, waited)
    idle = sum(spot.seconds for spot in spots if spot.kind == IDLE and (key is None or spot.site_in(key)))
    iterations = times.iterations_in(sum(spot.seconds for spot in steady) + preempted + idle)
    steady = _split_callbacks(steady, key, iterations, rows, empty_call, 1 / (1 - delayed))
    working, eager = working_lines(inside, key), eager_lines(steady, key)
    plain = plain_locations(steady, key, times, working)

    def part(spot: Spot) -> str:
        return part_of(spot, key, working, eager, plain)

    parts = {**dict.fromkeys((*PARTS, UNKNOWN), 0.0), **totals((part(spot), spot.seconds) for spot in steady)}
    called = _inline_functions(steady, rows)
    counted = times.per_second is not None
    launching = _launching_seconds(steady, key, iterations, called, empty_call, 1 / (1 - delayed), counted=counted)
    for other, seconds in (*launching.items(), (UNKNOWN, _wake_seconds(steady, iterations))):
        parts[other] += seconds
        parts[DEVICE] -= seconds
    unknown = parts.pop(UNKNOWN)
    locked = 0.0
    # Where no line was timed, unseen time may be a wait for the device, in which the thread ran.
    if times.count:
        locked = sum(spot.seconds for spot in steady if spot.kind in ("unseen", AROUND) and part(spot) == UNKNOWN)
    launch = 0.0 if calls_python else launching.get(UNKNOWN, 0.0)
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
        unaccounted=find_unaccounted(steady, key, times),
        unknown=unknown,
        excluded={DEVICE: locked, **dict.fromkeys((HOST, DATA, COPY, COMPILE), launch)},
        launching=launching,
        brief_call=_least_arguments(called),
        preempted=preempted,
        waited=waited,
        undelayed=_parts_without_delay(parts, steady, launching, part, delayed),
        shares_processors=shares_processors,
        calls_python=calls_python,
        asleep=tuple(spot for spot in spots if _is_asleep(spot, key)),
    )


def _waiting_share(spots: Sequence[Spot], waited: float) -> float:
    """Return the share of the running time in which the thread waited for a processor."""
    running = sum(spot.seconds for spot in spots if _may_be_delayed(spot))
    # Not all of the running time can have been waits: clocks and samples disagree by some of it.
    return min(0.9, waited / running) if running else 0.0


def _parts_without_delay(
    parts: Mapping[str, float],
    spots: Iterable[Spot],
    launching: Mapping[str, float],
    part: Callable[[Spot], str],
    delayed: float,
) -> dict[str, float]:
    """Return the parts without the waits for a processor, which are this share of the time in which the thread ran, or
    waited only for a processor, in each."""
    running = totals((part(spot), spot.seconds) for spot in spots if _may_be_delayed(spot))
    for other, seconds in launching.items():
        running[other] = running.get(other, 0.0) + seconds
        running[DEVICE] = running.get(DEVICE, 0.0) - seconds
    return {part: seconds - delayed * running.get(part, 0.0) for part, seconds in parts.items()}


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
    inside = tuple(
        spot
        for spot in spots
        if spot.kind not in OUTSIDE and spot.kind not in STAGES and (loop.key is None or spot.site_in(loop.key))
    )
    for spot in _assign_kinds(inside, loop.spots, loop.calls_python):
        part = loop.part(spot)
        parts[HOST if part == UNKNOWN else part] += spot.seconds
    return parts


def needs_empty_call(loop: HotLoop) -> bool:
    """Return whether the time of an empty call would help to say what bounds the loop."""
    if not loop.times.count:
        return False
    inline, around = ([spot for spot in loop.spots if spot.kind == kind] for kind in ("inline", AROUND))
    doubtful = 0.0 if _in_inner_loops(inline, loop.key) else loop.launching.get(UNKNOWN, 0.0)
    doubtful += 0.0 if _in_inner_loops(around, loop.key) else sum(spot.seconds for spot in around)
    # Timing an empty call starts a process, which is worth it only for a large unknown part of the loop.
    return doubtful > 0.2 * loop.own_seconds


def _in_inner_loops(spots: Iterable[Spot], key: LoopKey | None) -> bool:
    """Return whether some of these spots of the hot loop are in a loop within it, whose iterations are not counted."""
    return any(spot.sites and spot.sites[0].key != key for spot in spots)


def _inline_functions(spots: Sequence[Spot], rows: Sequence[Compiled]) -> list[Compiled]:
    """Return the compilations of functions that the calling thread may compute; all if none is known to be one."""
    inline = [spot for spot in spots if spot.kind == "inline"]
    locations = {spot.location for spot in inline}
    names = {spot.call.removesuffix("()").rpartition(".")[2] for spot in inline}
    compiled = [row for row in rows if not row.op_by_op]
    return [row for row in compiled if row.called_from in locations or row.function in names] or compiled


def _least_arguments(called: Sequence[Compiled]) -> tuple[int, int]:
    """Return the fewest arrays and Python numbers of a call of these functions, within `MOST_ARGUMENTS`."""

    def arrays(row: Compiled) -> int:
        return leaves_of(row) - row.numbers - sum(leaf.static for leaf in row.signature)

    fewest = min(map(arrays, called), default=1), min((row.numbers for row in called), default=0)
    return max(0, min(fewest[0], MOST_ARGUMENTS)), max(0, min(fewest[1], MOST_ARGUMENTS))


def _launching_seconds(
    spots: Sequence[Spot],
    key: LoopKey | None,
    iterations: float,
    called: Sequence[Compiled],
    empty_call: EmptyCallTimed | None,
    slowdown: float,
    *,
    counted: bool,
) -> dict[str, float]:
    """Return the part of the inline time of compiled functions that is not the device's. Inline means that the calling
    thread computes the function itself. A launch needs some of this time, an amount known only between two limits,
    which an empty call narrows: it is a launch and the Python around it. A thread that is blocked in these calls for at
    least as long leaves the work to others, and may need any of this time to get it into their queue. Calls in a loop
    within the hot one outnumber its iterations by an unknown factor. `slowdown`: factor by which waits for a processor
    may lengthen a launch. `counted`: whether the iterations were counted."""
    inline = [spot for spot in spots if spot.kind == "inline"]
    inline_seconds = sum(spot.seconds for spot in inline)
    if not inline_seconds or not iterations:
        return {UNKNOWN: inline_seconds}
    locations = {spot.location for spot in inline}
    leaves = max(map(leaves_of, called), default=1)
    count = iterations * len(locations)
    least, most = (count * seconds for seconds in LAUNCH_SECONDS)
    calls = sum(
        spot.seconds for spot in spots if spot.kind == "call" and spot.location in locations and not spot.through
    )
    if empty_call is not None:
        shares = (EMPTY_CALL_SHARES[0], EMPTY_CALL_SHARES[1] * (1 if counted else UNCOUNTED))
        least, most = (max(least, count * empty_call.seconds * share - calls) for share in shares)
        leaves -= min(1, empty_call.arrays) + empty_call.numbers
    launching = min(inline_seconds, max(least, min(most, LAUNCH_SHARE * calls)))
    most = max(launching, min(inline_seconds, slowdown * (most + iterations * leaves * LAUNCH_LEAF_SECONDS)))
    queued = (
        sum(spot.seconds for spot in spots if spot.kind == "compiled" and spot.location in locations) >= inline_seconds
    )
    if queued or _in_inner_loops(inline, key):
        most = inline_seconds
    return {DISPATCH: launching, UNKNOWN: most - launching}


def _wake_seconds(spots: Sequence[Spot], iterations: float) -> float:
    """Return the part of the wait for results that may be the thread's own work. Waits for a processor are left out of
    it already: by its clocks, the thread was blocked there."""
    waits = totals((spot.location, spot.seconds) for spot in spots if spot.kind == "sync")
    return sum(min(seconds, iterations * WAKE_SECONDS) for seconds in waits.values())


def leaves_of(row: Compiled) -> int:
    """Return the number of arrays and other leaves in the arguments of a compiled function."""
    return len(row.signature) + row.signature_more


def _calls_python(spots: Iterable[Spot], rows: Sequence[Compiled]) -> frozenset[SourceLocation]:
    """Return the places at which a compiled function may be called that itself calls Python: all at which no other one
    was compiled, because a function is often compiled elsewhere than in its loop."""
    by_callbacks: dict[bool, set[SourceLocation]] = {True: set(), False: set()}
    for row in rows:
        by_callbacks[row.callbacks].add(row.called_from)
    others = by_callbacks[False] - by_callbacks[True]
    return frozenset(spot.location for spot in spots if by_callbacks[True] and spot.location not in others)


def _split_callbacks(
    spots: tuple[Spot, ...],
    key: LoopKey | None,
    iterations: float,
    rows: Sequence[Compiled],
    empty_call: EmptyCallTimed | None,
    slowdown: float,
) -> tuple[Spot, ...]:
    """Split each `AROUND` spot: the part that a call's own Python takes at most, and the callback's. A callback holds
    the interpreter's lock as well, so that samples come before or after it. Calls in a loop within the hot one have no
    bound. `slowdown`: as in `_launching_seconds`."""
    around = [spot for spot in spots if spot.kind == AROUND]
    seconds = sum(spot.seconds for spot in around)
    if not seconds or not iterations or empty_call is None or _in_inner_loops(around, key):
        return spots
    leaves = max((leaves_of(row) for row in rows if row.callbacks), default=1)
    each = CALLBACK_CALL * empty_call.seconds + leaves * LAUNCH_LEAF_SECONDS
    share = 1 - slowdown * iterations * len({spot.location for spot in around}) * each / seconds
    if share <= 0:
        return spots

    def part(spot: Spot, kind: str, share: float) -> Spot:
        return replace(
            spot, kind=kind, seconds=share * spot.seconds, samples=share * spot.samples, delay=share * spot.delay
        )

    others = [spot for spot in spots if spot.kind != AROUND]
    return (
        *others,
        *(part(spot, kind, of) for spot in around for kind, of in ((BEYOND, share), (AROUND, 1 - share))),
    )


def _assign_kinds(
    spots: tuple[Spot, ...], loop: Sequence[Spot], calls_python: frozenset[SourceLocation]
) -> tuple[Spot, ...]:
    """Return the spots, with the work of JAX that a sample alone cannot tell assigned by the other spots of the loop.

    Without a clock of the thread, an operation outside any jit (`xs[i]`) next to compiled functions is taken to wait in
    the device's queue behind them, and one among single operations to run. Python at the very call of a compiled
    function enters it. Where a compiled function calls Python, that and the Python around its call look alike to a
    sample that has to wait for the interpreter's lock.
    """
    queued = any(spot.kind in ("compiled", "fed", "callback", "call") for spot in loop)
    entered = {(spot.location, spot.call) for spot in loop if spot.kind in ("compiled", "fed", "inline") and spot.call}

    def kind(spot: Spot) -> str:
        if queued and spot.kind == "dispatch" and spot.state == "device_busy":
            return "compiled"
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


def find_unaccounted(spots: Sequence[Spot], key: LoopKey | None, times: StepFigures) -> frozenset[int]:
    """Return the lines at which samples saw more time than iterations like the timed ones can make up.

    Calls that return at once only queue their work. The wait for it comes in iterations that were not timed, and
    consists of other calls.
    """
    seconds = totals((line, spot.seconds) for line, spot in _at_lines(spots, key))
    return frozenset(line for line, sampled in seconds.items() if not times.accounts_for(line, sampled))


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
