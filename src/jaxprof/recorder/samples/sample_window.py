"""One window of a program's time: samples go in, one event comes out, and its states add up to the window's length.

It combines three sources. JAX announces the stages of compilations, which is exact. For the rest, the CPU clock gives
how long the thread ran and how long it was blocked, also exact. The samples distribute each of these two times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import CodeType
from typing import NamedTuple

from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import STAGES, CopiesSeen, LoopSite, ProgramSampled, SampledLine, StatementTime, TransfersSeen
from jaxprof.events.programs import IMPORTS
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.monitored_loop import LineTimes
from jaxprof.recorder.samples.settings import builds_on_jax
from jaxprof.recorder.samples.states import (
    CALL,
    CALLBACK,
    COMPILED,
    CONTENDED,
    DISPATCH,
    FED,
    HOST,
    INLINE,
    PREEMPTED,
    READ,
    STATES,
    SYNC,
    TRANSFER,
    UNSEEN,
    Seen,
    Site,
    Statement,
    UserLine,
)

MOST_LINES = 24
_WORTH_A_STATE = 0.02
"""A share of CPU time below this counts as blocked, if no sample saw the thread running."""


class SampleKey(NamedTuple):
    """What a sample saw: samples of the same key are summed."""

    state: str
    kind: str
    line: UserLine | None
    sites: tuple[Site, ...]
    """The loops around the line."""

    @property
    def what(self) -> _What:
        """The key without its state, which depends on whether the thread ran."""
        return self[1:]


_What = tuple[str, UserLine | None, tuple[Site, ...]]
_Path = tuple[tuple[CodeType, int], ...]
_Leaf = tuple[CodeType, int]
"""A line whose time is known, with no part of it known more closely."""
_Weights = dict[SampleKey, float]
_MAY_RUN = frozenset({COMPILED, DISPATCH, FED, TRANSFER, READ, CALL})
_PYTHON = frozenset({CALL, DISPATCH, HOST})
"""Kinds of Python that hold the interpreter's lock, for which the thread must run."""
_STANDARD_ERRORS = 2.0
"""Standard errors by which a share of samples may be off."""
_OWN_SHARE = 0.05
"""Share of a window for which the recorder's own thread may run. Beyond it, a blocked main thread may have waited for
the interpreter's lock while the recorder held it."""


@frozen
class TimedLoop:
    """A loop whose lines were timed."""

    loop: Loop
    seconds: Mapping[int, float]
    """Seconds by line, for lines that were timed often enough to represent the time between the spells."""
    at_line: Callable[[CodeType, int], tuple[str, UserLine]]
    """Returns the kind and the call of a line that no sample saw."""
    hits: Mapping[int, int] = field(default_factory=dict)
    calls: Mapping[CodeType, LineTimes] = field(default_factory=dict)
    """Times of the functions that the loop calls on its way to JAX and whose lines were timed."""
    is_shared: Callable[[CodeType, int], bool] = lambda code, line: False
    """Returns whether a line has other work besides that with JAX, so that what held the lock there is unknown."""
    holds_waits: bool = True
    """Whether the lines' seconds hold the waits for a processor; the iterations with one may have been left out."""


@dataclass(slots=True)
class SampleWindow:
    """Collects the samples of one window: call `add` for every sample, then `event`."""

    began: float
    samples: int = 0
    stage_lines: _Weights = field(default_factory=lambda: defaultdict(float))
    running: _Weights = field(default_factory=lambda: defaultdict(float))
    blocked: _Weights = field(default_factory=lambda: defaultdict(float))
    inline: bool = True
    """Whether a thread that runs inside the call of a compiled function may be computing it."""
    held: _Weights = field(default_factory=lambda: defaultdict(float))
    """Weights of those running samples that had to wait for the interpreter's lock."""
    paths: dict[_What, _Path] = field(default_factory=dict)
    largest: dict[UserLine, int] = field(default_factory=dict)
    """Bytes of the largest array that was read at a line."""
    largest_put: dict[UserLine, int] = field(default_factory=dict)
    """Bytes of the largest array that was put on a device at a line."""
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    busy: float | None = 0.0
    """Seconds outside the stages in which the thread ran; None if there is no such clock."""
    delay: float = 0.0
    """Seconds outside the stages in which the thread was ready to run, but the scheduler ran others."""
    paused: float = 0.0
    """Seconds for which the whole process was paused; they belong to no line."""
    given_away: float = 0.0
    """Seconds in which others had the program's processor; they belong to no line and no state."""
    assumed: _Weights = field(default_factory=lambda: defaultdict(float))
    """Seconds of Python that a line's measured time leaves besides its samples."""
    statements: dict[Statement, tuple[float, float]] = field(default_factory=dict)
    """Seconds below each statement, and those of them in which JAX worked."""
    copies: dict[tuple[str, str, int, str], tuple[int, float]] = field(default_factory=dict)
    """Number of samples and seconds of the implicit copies, by direction, file, line and call."""

    def add(
        self,
        seen: Seen | None,
        seconds: float,
        *,
        running: bool,
        stages: dict[str, float],
        stage: str = "",
        function: str = "",
        busy_seconds: float | None = None,
        held: bool = False,
        inline: bool = True,
        array_bytes: int | None = None,
        put_bytes: int | None = None,
    ) -> None:
        """Add a sample that represents the `seconds` before it; `stages` of them were spent compiling.

        `seen` is None if the stack does not describe the rest, because `stage` of `function` is still running.
        `held`: whether the interpreter's lock was taken when the sample was due. `inline`: whether a thread that runs
        inside the call of a compiled function may be computing it. `array_bytes`: size of the array that is being read.
        `put_bytes`: size of the array that is being put on a device.
        """
        self.samples += 1
        in_stages = sum(stages.values())
        for name, value in stages.items():
            self.stages[name] += value
        rest = max(0.0, seconds - in_stages)
        if busy_seconds is None:
            self.busy = None
        elif self.busy is not None and seconds > 0:
            self.busy += busy_seconds * rest / seconds
        if seen is None:
            return
        for statement in seen.statements:
            if statement.kind == IMPORTS:
                works = bool(stage) or seen.works
                self._add_to(statement, seconds, seconds if works else in_stages)
            elif stage == "trace":
                self._add_to(replace(statement, name=function), in_stages, in_stages)
        if array_bytes and seen.line is not None:
            self.largest[seen.line] = max(array_bytes, self.largest.get(seen.line, 0))
        if put_bytes and seen.line is not None:
            self.largest_put[seen.line] = max(put_bytes, self.largest_put.get(seen.line, 0))
        if stage:
            self.stage_lines[SampleKey(stage, stage, seen.line, seen.sites)] += in_stages
            return
        if seen.implicit and seen.line is not None:
            copy = (seen.implicit, seen.line.file, seen.line.line, seen.line.call)
            if copy in self.copies or len(self.copies) < 64:
                count, before = self.copies.get(copy, (0, 0.0))
                self.copies[copy] = count + 1, before + seconds
        if rest > 0:
            self.inline = inline
            kind = seen.kind
            if kind == COMPILED and running:
                kind = INLINE if inline else CALL
            what = (kind, seen.line, seen.sites)
            self.paths[what] = seen.path
            key = SampleKey(STATES[kind][0 if running else 1], *what)
            (self.running if running else self.blocked)[key] += rest
            if held and running:
                self.held[key] += rest

    def _add_to(self, statement: Statement, seconds: float, jax_seconds: float) -> None:
        before = self.statements.get(statement, (0.0, 0.0))
        self.statements[statement] = before[0] + seconds, before[1] + jax_seconds

    def transfers(self, now: float) -> TransfersSeen | None:
        """Return the implicit transfers in the window, which closes at `now`; None if no sample saw one."""
        rows = [
            CopiesSeen(direction=direction, count=count, seconds=seconds, file=file, line=line, call=call)
            for (direction, file, line, call), (count, seconds) in self.copies.items()
        ]
        return TransfersSeen(monotonic_seconds=now, rows=rows) if rows else None

    def note_delay(self, seconds: float, now: float) -> None:
        """Note that the thread would have run for so much longer in this window if the scheduler had let it."""
        total = now - self.began - self.paused - self.given_away
        if total > 0:
            self.delay += seconds * max(0.0, 1.0 - sum(self.stages.values()) / total)

    def event(
        self, now: float, own_seconds: float | None, least: str = "host_busy", timed: TimedLoop | None = None
    ) -> ProgramSampled:
        """Close the window at `now`. `least`: state of time without samples. `timed`: a loop with timed lines."""
        length = max(0.0, now - self.began)
        paused = min(self.paused, length)
        total = max(0.0, length - paused - self.given_away)
        in_stages = sum(self.stages.values())
        # Where both disagree, the window's own clock is the measure, so that its states add up to its length.
        if in_stages > total:  # the two clocks are not read at the same instant
            self.stages = {name: value * total / in_stages for name, value in self.stages.items()}
            in_stages = total
        own = max(0.0, (own_seconds or 0.0) - _OWN_SHARE * length)
        lines = self._distribute(total - in_stages, least, own, UNSEEN if timed is None else SYNC)
        if timed is not None:
            self._locate(lines, timed)
            self._doubt(lines, total - in_stages)
        states: dict[str, float] = defaultdict(float)
        for key, seconds in lines.items():
            states[key.state] += seconds
        for name, value in self.stages.items():
            states[name] += value
        states["paused"] = paused
        for stage, exact in self.stages.items():  # distributed over the lines in which samples saw the stage
            weights = {key: weight for key, weight in self.stage_lines.items() if key.state == stage}
            whole = sum(weights.values())
            lines.update({key: exact * weight / whole if whole > 0 else 0.0 for key, weight in weights.items()})
        rows, sites = _largest(lines, self.largest, self.largest_put)
        below = sorted(self.statements.items(), key=lambda item: -item[1][0])[:16]
        return ProgramSampled(
            monotonic_seconds=now,
            began_seconds=self.began,
            samples=self.samples,
            states={name: value for name, value in states.items() if value > 0},
            lines=rows,
            sites=sites,
            statements=[
                StatementTime(
                    kind=each.kind,
                    where=each.where,
                    name=each.name,
                    seconds=took,
                    jax_seconds=took if each.kind == IMPORTS and builds_on_jax(each.name) else jax,
                )
                for each, (took, jax) in below
            ],
            own_seconds=own_seconds,
            delay_seconds=min(self.delay, total - in_stages),
            device_wait_seconds=self._device_wait(total - in_stages),
        )

    def _distribute(self, rest: float, least: str, own: float, in_wait: str) -> _Weights:
        """Return the time outside the stages by state and line.

        Samples are fair to the lines; clocks say how long the thread ran and how long it was blocked. `own`: seconds
        for which the recorder's thread may have kept the main thread waiting. `in_wait`: kind of the time in which
        the CPU clock ran while samples showed a wait for a value. Samples come where the lock is free, so that this
        may have been anywhere, unless lines are timed.
        """
        # The numbers (1) to (4) are those of the equations in docs/attribution.md, which has a window worked out.
        on, off = sum(self.running.values()), sum(self.blocked.values())
        if not on and not off:
            return {SampleKey(least, "", None, ()): rest}
        share = off / (on + off)
        blocked = rest * share
        running, over, lost, preempted = rest - blocked, 0.0, 0.0, 0.0
        # Without a sample that found the lock held, the wait for it was where the thread was blocked.
        waited = self.held or self.blocked
        if self.busy is not None and waited:
            # (1) A thread that the scheduler keeps waiting looks blocked: delay counts only where it was seen running.
            ran = min(rest, self.busy + (self.delay if on else 0.0))
            if not on and ran < _WORTH_A_STATE * rest:
                ran = 0.0
            # (2) It waited for the interpreter's lock, which another thread held: it was blocked by its clock,
            # although fewer samples than that found the lock free. The error of so few samples is no such wait.
            error = _STANDARD_ERRORS * math.sqrt(max(share * (1 - share), 0.05) / max(1, self.samples))
            if self.held and rest - ran - blocked > error * rest:
                lost = rest - ran - blocked
            # The recorder's own thread holds the lock, too, and its time is known without samples.
            lost = max(lost, min(own, rest - ran))
            # (3) Samples saw more blocked time than the clock leaves.
            over = max(0.0, blocked - (rest - ran))
            if on:  # it was seen running for `running`; the rest of what the clock says is in `over`, too
                preempted = max(0.0, over - max(0.0, self.busy - running))
            # (4) The clock decides how much; where it contradicts what samples saw running, that part is divided below.
            if off:
                running = running if over else ran
                blocked = rest - ran - lost
            else:  # how long it was blocked without a sample is unknown
                running = rest - lost
        shared: _Weights = defaultdict(float)
        for key, weight in self.running.items():
            shared[key] += running * weight / on
        for key, weight in waited.items():
            shared[self._as_kind(key, CONTENDED)] += lost * weight / sum(waited.values())
        # Blocked samples stand for the blocked time, and for `over` seconds in which the thread ran, or was kept from
        # running. The calls that may run get these first: that others ran unseen is less likely.
        weights = {key: (blocked + over) * weight / off for key, weight in self.blocked.items()}
        may_run = sum(seconds for key, seconds in weights.items() if key.kind in _MAY_RUN)
        first = min(over, may_run)
        others = sum(weights.values()) - may_run
        for key, seconds in weights.items():
            whole, part = (may_run, first) if key.kind in _MAY_RUN else (others, over - first)
            ran = seconds * part / whole if whole else 0.0
            shared[key] += seconds - ran
            if ran:
                # After the device had blocked the thread, it may also have waited only for a processor.
                after_device = key.kind in (COMPILED, SYNC, READ)
                kept = self._as_kind(key, PREEMPTED) if after_device else self._if_running(key)
                shared[kept] += ran * preempted / over
                as_seen = self._as_kind(key, in_wait) if on and key.kind == SYNC else self._if_running(key)
                shared[as_seen] += ran * (1 - preempted / over)
        return {key: seconds for key, seconds in shared.items() if seconds > 0}

    def _if_running(self, key: SampleKey) -> SampleKey:
        """Return what a blocked sample saw, assuming that the thread ran there."""
        if key.kind == SYNC:
            return SampleKey("host_busy", "host", None, ())
        if key.kind == COMPILED:
            return self._as_kind(key, INLINE if self.inline else CALL)
        return self._as_kind(key, key.kind)

    def _as_kind(self, key: SampleKey, kind: str) -> SampleKey:
        """Return the key with another kind, for a thread that runs."""
        self.paths.setdefault((kind, key.line, key.sites), self.paths.get(key.what, ()))
        return SampleKey(STATES[kind][0], kind, key.line, key.sites)

    def _device_wait(self, rest: float) -> float | None:
        """Return how long the device blocked the thread, out of the time outside the stages.

        The clock says for how long the thread was blocked. Samples say by what: a blocked thread does not hold the
        interpreter's lock, so these samples come evenly, without a wait. A thread that runs while it waits for a value
        counts as blocked too, because some runtimes wait like this.
        """
        if self.busy is None:
            return None
        ran = min(rest, self.busy + self.delay)
        # Time that the scheduler took counts as running: the device did not block the thread meanwhile.
        waited = 0.0
        for weights, seconds in ((self.blocked, rest - ran), (self.running, ran)):
            whole = sum(weights.values())
            waits = sum(
                weight
                for key, weight in weights.items()
                if key.kind == SYNC or (weights is self.blocked and key.state == "device_busy")
            )
            waited += seconds * waits / whole if whole else 0.0
        return waited

    def _locate(self, lines: _Weights, timed: TimedLoop) -> None:
        """Correct the distribution of a loop's time over its lines by the lines' measured times.

        Samples come when the thread releases the interpreter's lock or the processor, and therefore more often at some
        lines than at others. Lines that were not timed keep the samples' share, and so do waits for a processor, which
        are a part of their line's measured time unless iterations are brief.
        """
        inside: dict[int, list[SampleKey]] = defaultdict(list)
        waiting: dict[int, list[SampleKey]] = defaultdict(list)
        around: tuple[Site, ...] = ()
        for key in lines:
            index = next((number for number, site in enumerate(key.sites) if site.loop == timed.loop), None)
            if index is not None:
                (waiting if key.kind == PREEMPTED else inside)[key.sites[index].at.line].append(key)
                # The loops outside are the same for all lines of the loop, so that one key shows them.
                around = around or key.sites[index:]
        compiling: dict[int, float] = defaultdict(float)
        for key, weight in self.stage_lines.items():
            for site in key.sites:
                if site.loop == timed.loop:
                    compiling[site.at.line] += weight
        # A timed line includes the compilations under it, which have their own exact times: they are subtracted, as far
        # as the spells cover the window.
        seen = [key for keys in (*inside.values(), *waiting.values()) for key in keys]
        everything = sum(compiling.values()) + sum(lines[key] for key in seen)
        covered = min(1.0, sum(timed.seconds.values()) / everything) if everything else 0.0
        took = {line: max(0.0, seconds - covered * compiling[line]) for line, seconds in timed.seconds.items()}
        whole = sum(took.values())
        sampled = sum(lines[key] for line in took for key in inside[line])
        if not sampled or not whole:
            return
        if not timed.holds_waits:
            waiting.clear()
        waited = sum(lines[key] for line in took for key in waiting[line])
        leaves: dict[int, dict[_Leaf, float]] = {}
        for line, seconds in took.items():
            each_hit = timed.seconds[line] / timed.hits[line] if timed.hits.get(line) else None
            wanted = (sampled + waited) * seconds / whole
            at_line = self._leaves((timed.loop.code, line), wanted, each_hit, timed, [*inside[line], *waiting[line]])
            # The measured time holds the waits for a processor; the clocks have given these their seconds already.
            for key in waiting[line]:  # a wait for a processor is part of the line's measured time, and stays one
                leaf = self._leaf(key, timed, line)
                at_line[leaf] = max(0.0, at_line.get(leaf, 0.0) - lines[key])
            leaves[line] = at_line
        left = sum(sum(at_line.values()) for at_line in leaves.values())
        if not left:
            return
        for line, at_line in leaves.items():
            at: dict[_Leaf, list[SampleKey]] = defaultdict(list)
            for key in inside[line]:
                at[self._leaf(key, timed, line)].append(key)
            sites = _with_line(around, line, "")
            above = {above for key in inside[line] for _, above in pairwise(self.paths.get(key.what, ()))}
            for leaf, wanted in at_line.items():
                called = len(at_line) > 1 and leaf in above
                self._assign(lines, at.pop(leaf, []), sampled * wanted / left, leaf, timed, sites, called=called)
            for keys in at.values():  # in a function whose time the clock puts at other lines
                for key in keys:
                    lines.pop(key)

    def _leaf(self, key: SampleKey, timed: TimedLoop, line: int) -> _Leaf:
        """Return the most closely timed line of a sample: that of the innermost timed function."""
        for code, number in self.paths.get(key.what, ()):
            if code is timed.loop.code:
                break
            if code in timed.calls and number in timed.calls[code].seconds:
                return code, number
        return timed.loop.code, line

    def _leaves(
        self,
        here: _Leaf,
        wanted: float,
        each_hit: float | None,
        timed: TimedLoop,
        keys: Sequence[SampleKey],
        outer: frozenset[CodeType] = frozenset(),
    ) -> dict[_Leaf, float]:
        """Return the seconds of a line, one execution of which takes `each_hit`, and of the lines of the timed
        functions that it calls. `outer`: functions whose lines these are, which a recursive call enters again."""
        outer |= {here[0]}
        called: set[CodeType] = set()
        for key in keys:
            path = self.paths.get(key.what, ())
            called |= {code for (code, _), above in pairwise(path) if above == here and code in timed.calls}
        called -= outer
        took = {code: timed.calls[code].each for code in called}
        if not each_hit or not sum(took.values()):
            return {here: wanted}
        # Means of several spells may say that the callees take longer than the line that calls them.
        most = max(each_hit, sum(took.values()))
        leaves: dict[_Leaf, float] = {here: wanted * (1 - sum(took.values()) / most)}
        for code, seconds in took.items():
            lines = timed.calls[code].seconds
            for line, spent in lines.items():
                share = spent / sum(lines.values())
                below = self._leaves((code, line), wanted * share * seconds / most, seconds * share, timed, keys, outer)
                leaves.update(below)
        return leaves

    def _assign(
        self,
        lines: _Weights,
        keys: list[SampleKey],
        wanted: float,
        leaf: _Leaf,
        timed: TimedLoop,
        sites: tuple[Site, ...],
        *,
        called: bool,
    ) -> None:
        """Give a line its `wanted` seconds.

        Samples that found the interpreter's lock free are fair; during the rest, Python at that line held the lock.
        `called`: the seconds are those that remain after the timed functions that the line calls."""
        found = {key: lines.pop(key) for key in keys}
        free = {key: took * (1 - self._lock_share(key)) for key, took in found.items() if key.kind != UNSEEN}
        # Fair samples never get more than the line took; they may get less.
        scale = min(1.0, wanted / sum(free.values())) if sum(free.values()) else 0.0
        for key, took in free.items():
            lines[key] = lines.get(key, 0.0) + scale * took
        rest = wanted - scale * sum(free.values())
        if rest <= 1e-9:
            return
        # What follows divides the rest: time in which no sample could come, because Python held the lock.
        kinds = {key.kind for key, took in free.items() if took > 0}
        through = (
            max(found, key=lambda key: (key.kind in (UNSEEN, COMPILED, INLINE), found[key])).line if found else None
        )
        named: _Weights = defaultdict(float)
        shared = timed.is_shared(*leaf)
        for key, took in found.items():
            # A callback is Python itself, so that each of its samples stands for time with the lock.
            waited = took if key.kind == CALLBACK else took * self._lock_share(key)
            if (key.kind == UNSEEN and not shared) or key.line is None or not waited:
                continue
            kind, where = key.kind, key.line
            if kind == DISPATCH and kinds & {COMPILED, INLINE} and DISPATCH not in kinds:
                kind = CALL  # JAX's own Python around a compiled function, such as a library's tree.map
            if (
                kind == HOST
                and kinds & {COMPILED, INLINE}
                and (where.file, where.line) == (leaf[0].co_filename, leaf[1])
            ):
                kind = CALL  # seen before it was known that this line calls one
            if kind == CALL and through is not None:
                where = replace(where, through=through.through)
            named[SampleKey(STATES[kind][0], kind, where, key.sites)] += waited
        if not named:
            code, line = leaf
            unseen = UNSEEN, UserLine(code.co_filename, line, code.co_name, "")
            kind, where = unseen if called else timed.at_line(code, line)
            kind = CALL if kind == HOST and SYNC in kinds else kind  # Python on its way to the wait
            if kind == CALL and through is not None:
                where = replace(where, through=through.through)
            at_line = _with_line(sites, sites[0].at.line, where.call)
            named[SampleKey(STATES[kind][0], kind, where, at_line)] = 1.0
        for key, weight in named.items():
            seconds = rest * weight / sum(named.values())
            lines[key] = lines.get(key, 0.0) + seconds
            if key.kind in _PYTHON:
                self.assumed[key] += seconds

    def _doubt(self, lines: _Weights, rest: float) -> None:
        """Move time `assumed` to be Python to `contended` as far as the thread's CPU clock shows less. The thread was
        blocked then, or waited for a processor, at a line at which no sample saw it so: the call of a function for
        several devices waits until each of them has begun."""
        if self.busy is None:
            return
        preempted = sum(seconds for key, seconds in lines.items() if key.kind == PREEMPTED)
        ran = sum(seconds for key, seconds in lines.items() if key.state == "host_busy" or key.kind == INLINE)
        over = ran - self.busy - max(0.0, self.delay - preempted)
        if over <= _WORTH_A_STATE * rest:
            return
        share = min(1.0, over / sum(self.assumed.values())) if self.assumed else 0.0
        for key, seconds in self.assumed.items():
            doubtful = self._as_kind(key, CONTENDED)
            lines[key] -= share * seconds
            lines[doubtful] = lines.get(doubtful, 0.0) + share * seconds

    def _lock_share(self, key: SampleKey) -> float:
        """Return the share of a line's samples that had to wait for the interpreter's lock."""
        weight = self.running.get(key, 0.0) + self.blocked.get(key, 0.0)
        return min(1.0, self.held.get(key, 0.0) / weight) if weight > 0 else 0.0


def _with_line(sites: tuple[Site, ...], line: int, call: str) -> tuple[Site, ...]:
    first, *others = sites
    return (replace(first, at=replace(first.at, line=line, call=call)), *others)


def _largest(
    lines: _Weights, read: Mapping[UserLine, int], put: Mapping[UserLine, int]
) -> tuple[list[SampledLine], list[LoopSite]]:
    """Return the lines that took the most time, and the loops around them, to which the lines refer by index."""
    named = [(*key, seconds) for key, seconds in lines.items() if key.line is not None and seconds > 0]
    named.sort(key=lambda item: -item[-1])
    sites: dict[Site, int] = {}
    largest = [
        SampledLine(
            file=line.file,
            line=line.line,
            function=line.function,
            state=state,
            seconds=seconds,
            call=line.call,
            through=line.through,
            kind=kind,
            bytes=read.get(line) if kind in (SYNC, TRANSFER) else None,
            put_bytes=put.get(line) if kind == TRANSFER else None,
            sites=[sites.setdefault(site, len(sites)) for site in around],
        )
        for state, kind, line, around, seconds in named[:MOST_LINES]
        if line is not None
    ]
    return largest, [site.at for site in sites]
