"""One window of a program's time: samples come in, one event comes out, and its states add up to the window's length.

It combines three sources. JAX announces the stages of compilations, which is exact. The CPU clock says for how long of
the rest the thread ran and for how long it was blocked, also exact. The samples distribute each of the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from jaxprof.events import STAGES, CopiesSeen, LoopSite, ProgramSampled, SampledLine, TransfersSeen
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.states import STATES, SYNC, TRANSFER, Seen, Site, UserLine

MOST_LINES: Final = 24
_WORTH_A_STATE: Final = 0.02
"""If no sample saw the thread running, a share of CPU time below this counts as blocked."""
_Key = tuple[str, str, UserLine | None, tuple[Site, ...]]
"""State, kind, the user's line, the loops around it."""
_Weights = dict[_Key, float]
_NOTHING: Final = ("host_busy", "host", None, ())
MOST_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class TimedLoop:
    """A loop whose lines were timed."""

    loop: Loop
    seconds: Mapping[int, float]
    """Seconds by line, for lines that were timed often enough to stand for the time between the spells."""
    at_line: Callable[[int], tuple[str, UserLine]]
    """For a line that no sample saw: its kind, and what it calls."""


@dataclass(slots=True)
class SampleWindow:
    """Call `add` for every sample, then `event`."""

    began: float
    samples: int = 0
    stage_lines: _Weights = field(default_factory=lambda: defaultdict(float))
    running: _Weights = field(default_factory=lambda: defaultdict(float))
    blocked: _Weights = field(default_factory=lambda: defaultdict(float))
    if_running: _Weights = field(default_factory=lambda: defaultdict(float))
    """The blocked samples again, by the state that they would have as CPU time."""
    blind: _Weights = field(default_factory=lambda: defaultdict(float))
    """Those of the running samples whose line may be wrong."""
    largest: dict[UserLine, int] = field(default_factory=dict)
    """Bytes of the largest array that was read at a line."""
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    busy: float | None = 0.0
    """Seconds outside the stages in which the thread ran; None if there is no such clock."""
    delay: float = 0.0
    """Seconds outside the stages in which it was ready to run while the scheduler ran others."""
    stopped: float = 0.0
    """Seconds in which the whole process stood still: no line's."""
    given_away: float = 0.0
    """Seconds in which others had its processor: no line's, and of no state."""

    def add(
        self,
        seen: Seen | None,
        seconds: float,
        *,
        running: bool,
        stages: dict[str, float],
        stage: str = "",
        busy_seconds: float | None = None,
        blind: bool = False,
        array_bytes: int | None = None,
    ) -> None:
        """Adds a sample that stands for the `seconds` before it, of which `stages` were spent compiling.

        `seen` is None if the stack does not describe the rest, because the stage `stage` is still running. `blind`: the
        thread held the interpreter's lock when the sample was due, at a line that the sample did not see.
        `array_bytes`: the size of the array that is being read.
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
        if array_bytes and seen.line is not None:
            self.largest[seen.line] = max(array_bytes, self.largest.get(seen.line, 0))
        if stage:
            self.stage_lines[stage, stage, seen.line, seen.sites] += in_stages
        elif rest > 0:
            what = (seen.kind, seen.line, seen.sites)
            (self.running if running else self.blocked)[seen.state(running), *what] += rest
            if blind and running:
                self.blind[seen.state(running), *what] += rest
            if not running:
                self.if_running[_NOTHING if seen.kind == SYNC else (seen.state(True), *what)] += rest

    def delayed(self, seconds: float, now: float) -> None:
        """The thread would have run for so much longer in this window if the scheduler had let it."""
        total = now - self.began - self.stopped - self.given_away
        if total > 0:
            self.delay += seconds * max(0.0, 1.0 - sum(self.stages.values()) / total)

    def event(
        self, now: float, own_seconds: float | None, least: str = "host_busy", timed: TimedLoop | None = None
    ) -> ProgramSampled:
        """Closes the window at `now`. `least`: the state for time that no sample accounts for. `timed`: a loop whose
        lines were timed."""
        length = max(0.0, now - self.began)
        stopped = min(self.stopped, length)
        total = max(0.0, length - stopped - self.given_away)
        in_stages = sum(self.stages.values())
        if in_stages > total:  # the two clocks are not read at the same instant
            self.stages = {name: value * total / in_stages for name, value in self.stages.items()}
            in_stages = total
        lines = self._shared_out(total - in_stages, least)
        if timed is not None:
            self._locate(lines, timed)
        states: dict[str, float] = defaultdict(float)
        for (state, *_), seconds in lines.items():
            states[state] += seconds
        for name, value in self.stages.items():
            states[name] += value
        states["stopped"] = stopped
        lines.update(self._stage_seconds_of_lines())
        rows, sites = _largest(lines, self.largest)
        return ProgramSampled(
            monotonic_seconds=now,
            began_seconds=self.began,
            samples=self.samples,
            states={name: value for name, value in states.items() if value > 0},
            lines=rows,
            sites=sites,
            own_seconds=own_seconds,
            device_wait_seconds=self._device_wait(total - in_stages),
        )

    def _shared_out(self, rest: float, least: str) -> _Weights:
        """The time outside the stages, by state and line."""
        on, off = sum(self.running.values()), sum(self.blocked.values())
        if not on and not off:
            return {(least, "", None, ()): rest}
        ran = rest * on / (on + off)
        if self.busy is not None:
            # A thread that the scheduler keeps waiting looks blocked: delay counts only if it was also seen running.
            ran = min(rest, self.busy + (self.delay if on else 0.0))
            if not off:  # never seen blocked
                ran = rest
            elif not on and ran < _WORTH_A_STATE * rest:
                ran = 0.0
        shared: _Weights = defaultdict(float)
        for weights, seconds in ((self.running if on else self.if_running, ran), (self.blocked, rest - ran)):
            whole = sum(weights.values())
            for key, weight in weights.items():
                shared[key] += seconds * weight / whole
        return shared

    def _device_wait(self, rest: float) -> float | None:
        """Of the time outside the stages: how long the thread was blocked by the device.

        The clock says for how long it was blocked at all. Samples say by what: a blocked thread does not hold the
        interpreter's lock, so these come without a wait, evenly. A thread that runs while it waits for a value counts
        as blocked too: some runtimes wait so.
        """
        if self.busy is None:
            return None
        ran = min(rest, self.busy + self.delay)
        waited = 0.0
        for weights, seconds in ((self.blocked, rest - ran), (self.running, ran)):
            whole = sum(weights.values())
            waits = sum(
                weight
                for (state, kind, *_), weight in weights.items()
                if kind == SYNC or (weights is self.blocked and state == "device_busy")
            )
            waited += seconds * waits / whole if whole else 0.0
        return waited

    def _locate(self, lines: _Weights, timed: TimedLoop) -> None:
        """Corrects the distribution of a loop's time over its lines by the lines' measured times.

        Samples come when the thread releases the interpreter's lock or the processor, and therefore more often at some
        lines than at others. Lines that were not timed keep the samples' share.
        """
        inside: dict[int, list[_Key]] = defaultdict(list)
        around: tuple[Site, ...] = ()
        for key in lines:
            index = next((number for number, site in enumerate(key[3]) if site.loop == timed.loop), None)
            if index is not None:
                inside[key[3][index].line].append(key)
                around = around or key[3][index:]
        compiling: dict[int, float] = defaultdict(float)
        for key, weight in self.stage_lines.items():
            for site in key[3]:
                if site.loop == timed.loop:
                    compiling[site.line] += weight
        everything = sum(compiling.values()) + sum(lines[key] for keys in inside.values() for key in keys)
        covered = min(1.0, sum(timed.seconds.values()) / everything) if everything else 0.0
        took = {line: max(0.0, seconds - covered * compiling[line]) for line, seconds in timed.seconds.items()}
        whole = sum(took.values())
        sampled = sum(lines[key] for line in took for key in inside[line])
        if not sampled or not whole:
            return
        for line, seconds in took.items():
            wanted = sampled * seconds / whole
            keys = {key: lines.pop(key) for key in inside[line]}
            sure = {key: share * took for key, took in keys.items() if (share := self._sure(key)) > 0} or keys
            if not sum(sure.values()):  # all of its samples saw it blocked, which the clock contradicts
                sure = {
                    (STATES[kind][0], kind, where, sites): self._weight((state, kind, where, sites))
                    for state, kind, where, sites in keys
                }
            total = sum(sure.values())
            for key, share in sure.items():
                lines[key] = lines.get(key, 0.0) + wanted * share / total if total else 0.0
            if not total and wanted > 0:
                kind, where = timed.at_line(line)
                sites = (replace(around[0], line=line, call=where.call), *around[1:])
                lines[STATES[kind][0], kind, where, sites] = wanted

    def _sure(self, key: _Key) -> float:
        """The share of a line's samples that are not blind."""
        weight = self._weight(key)
        return 1.0 - self.blind.get(key, 0.0) / weight if weight > 0 else 0.0

    def _weight(self, key: _Key) -> float:
        return self.running.get(key, 0.0) + self.blocked.get(key, 0.0)

    def _stage_seconds_of_lines(self) -> _Weights:
        """The stages' exact seconds, distributed over the lines that samples saw in them."""
        shared: _Weights = {}
        for stage, seconds in self.stages.items():
            weights = {key: weight for key, weight in self.stage_lines.items() if key[0] == stage}
            whole = sum(weights.values())
            for key, weight in weights.items():
                shared[key] = seconds * weight / whole if whole > 0 else 0.0
        return shared


def _largest(lines: _Weights, read: Mapping[UserLine, int]) -> tuple[list[SampledLine], list[LoopSite | None]]:
    """The lines that took the most time, and the loops around them, to which the lines refer by number."""
    named = [(*key, seconds) for key, seconds in lines.items() if key[2] is not None and seconds > 0]
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
            kind=kind,
            bytes=read.get(line) if kind in (SYNC, TRANSFER) else None,
            sites=[sites.setdefault(site, len(sites)) for site in around],
        )
        for state, kind, line, around, seconds in named[:MOST_LINES]
        if line is not None
    ]
    return largest, [
        LoopSite(
            file=site.file,
            function=site.function,
            loop_line=site.loop_line,
            last_line=site.last_line,
            line=site.line,
            call=site.call,
            library=site.library,
            conditional=site.conditional,
        )
        for site in sites
    ]


@dataclass(slots=True)
class _Row:
    count: int = 0
    seconds: float = 0.0
    bytes: int | None = None


class SampledTransfers:
    """Call `saw` for each sample in an implicit transfer, and `collect` at the end of a window."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int, str], _Row] = {}

    def saw(self, direction: str, line: UserLine, seconds: float, size: int | None) -> None:
        """A sample; `size`: bytes of the copied array, if known."""
        key = (direction, line.file, line.line, line.call)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                return
            row = self._rows[key] = _Row()
        row.count += 1
        row.seconds += seconds
        if size is not None:
            row.bytes = size + (row.bytes or 0)

    def collect(self, now: float) -> TransfersSeen | None:
        """The rows since the last call; None if there are none."""
        rows = [
            CopiesSeen(
                direction=direction,
                source="samples",
                count=row.count,
                bytes=row.bytes,
                seconds=row.seconds,
                file=file,
                line=line,
                call=call,
            )
            for (direction, file, line, call), row in self._rows.items()
        ]
        self._rows.clear()
        return TransfersSeen(monotonic_seconds=now, rows=rows) if rows else None
