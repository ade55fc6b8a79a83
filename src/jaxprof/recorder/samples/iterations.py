"""Turns what was seen of a loop's iterations into events: how long each iteration took, by its number.

Two sources give the same entries: a moment at the end of each iteration (`MomentLog`), or the loop's counter, read now
and then (`NumberLog`). The counter is a local variable that counts the iterations.

Counters are not read from `frame.f_locals` where that copies all locals (up to Python 3.12): the copy would keep the
program's arrays alive, and changes the dict that the program got from an earlier `locals()`. Python 3.13 has a view
instead, 3.12 has `PyFrame_GetVarString`, 3.11 has nothing. Only values that are exactly `int` are taken, so that no
code of the program is called.

The amount of data is bounded: iterations shorter than `LEAST_ENTRY_SECONDS` are merged, and after `YOUNG_SECONDS` the
entries grow with the program's age, so that a day has some 600 000 of them, and the first minutes have all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from types import FrameType

from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import StepsTaken
from jaxprof.recorder.cpython import instructions, local_reader
from jaxprof.recorder.frame_owner import outwards
from jaxprof.recorder.guest import raised_by_program
from jaxprof.recorder.samples.loops import Loop, loops_of
from jaxprof.recorder.samples.stack import DEEPEST

LEFT = -1.0
"""Replaces a moment where the loop was left; what follows begins anew."""
LEAST_ENTRY_SECONDS = 0.005
"""Iterations shorter than this are merged into one entry."""
YOUNG_SECONDS = 500.0
"""Age of a program from which entries become longer in proportion to it."""
PROOFS = 3
"""Number of consecutive rises by exactly one that prove a counter."""
_TRIES_AT_MOST = 12
"""Number of iterations whose counters are read before the search is given up."""
_ENDLESS = 1 << 60
FEWEST_LOOKS = 4
"""A loop that begins again after this many looks at its counter, or fewer, may run from begin to end between two looks,
so that how often it ran is unknown."""
_ENTRIES_AT_MOST = 2000
_SERIES_AT_MOST = 100
"""Limit for the series of one window, after which times are dropped: an inner loop may begin very often."""

Values = Sequence[int | None]

_OPTIMIZED = 0x1
"""Flag in `co_flags` for the code of a function, whose locals have slots and no dict."""
_BETWEEN = ("UNPACK_SEQUENCE", "UNPACK_EX", "EXTENDED_ARG", "NOP", "CACHE", "COPY", "SWAP")
_LARGEST = 1 << 52


@frozen
class LoopCounter:
    """A variable that the body of a loop stores."""

    name: str
    offset: int
    """Offset of the instruction that stores the variable first in an iteration."""
    target: bool = False
    """Whether the head of a `for` stores the variable, and so every iteration does."""
    is_global: bool = False


@lru_cache(maxsize=64)
def counters_of(loop: Loop) -> tuple[LoopCounter, ...]:
    """Return the variables that may count the iterations of a loop, most credible first. The order follows from the
    code alone, so that all processes of a job choose the same one.

    In a loop within a loop, the targets of `for` come last: they begin again with each iteration of the outer loop.
    """
    code = loop.code
    inner = [other for other in loops_of(code) if loop.begins < other.begins and other.ends <= loop.ends]
    nested = any(other.begins < loop.begins and loop.ends <= other.ends for other in loops_of(code))
    found: dict[str, LoopCounter] = {}
    head = False
    for instruction in instructions(code):
        at, operation = instruction.offset, instruction.opname
        if at < loop.begins or at > loop.ends or any(other.begins <= at <= other.ends for other in inner):
            continue
        if operation.startswith("STORE_") and (names := _stores(operation, instruction.argval)):
            for name in names:
                is_global = operation == "STORE_GLOBAL"
                found.setdefault(name, LoopCounter(name, at, head, is_global))
            head = head and "LOAD" not in operation
        elif at == loop.begins and operation.startswith("FOR_ITER"):
            head = True
        elif operation not in _BETWEEN:
            head = False
    chosen = sorted(found.values(), key=lambda counter: (counter.target == nested, counter.offset))
    return tuple(chosen[:16])


def _stores(operation: str, argument: object) -> tuple[str, ...]:
    if operation in ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF") or operation.startswith("STORE_FAST"):
        names = argument if isinstance(argument, tuple) else (argument,)
        if operation == "STORE_FAST_LOAD_FAST":
            names = names[:1]
        return tuple(name for name in names if isinstance(name, str))
    return ()


def read_counter(frame: FrameType, counter: LoopCounter) -> int | None:
    """Return the counter's value in a frame; None if it has none, or one that is no plain integer. Raises nothing.

    Where `cpython.READS_ANYWHERE` is false, only the thread that runs the frame may call it.
    """
    try:
        code = frame.f_code
        if counter.is_global:
            value = frame.f_globals.get(counter.name)
        elif code.co_flags & _OPTIMIZED:
            value = None if _read_local is None else _read_local(frame, counter.name)
        else:  # the code of a module, whose locals are the namespace itself
            names = frame.f_locals
            value = names.get(counter.name) if type(names) is dict else None
    except Exception as error:  # unbound, or an old frame: the program comes first
        if raised_by_program(error):
            raise
        return None
    return value if type(value) is int and -_LARGEST < value < _LARGEST else None


_read_local = local_reader()


@dataclass(slots=True)
class _Series:
    """Consecutive iterations: an event in the making."""

    began: float
    first: int
    name: str
    seconds: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    waiting: float = 0.0
    """Seconds of the iterations that are not an entry yet."""
    _iterations: int = 0

    def add(self, seconds: float, count: int, least_seconds: float) -> None:
        """Add iterations, which are merged until they take `least_seconds`."""
        self.waiting += seconds
        self._iterations += count
        if self.waiting >= least_seconds:
            self.close()

    def close(self) -> None:
        if self._iterations:
            self.seconds.append(self.waiting)
            self.counts.append(self._iterations)
            self.waiting, self._iterations = 0.0, 0

    def take(self) -> _Series:
        """Return the entries so far; later ones follow them."""
        taken = _Series(self.began, self.first, self.name, self.seconds, self.counts)
        self.began += sum(self.seconds)
        self.first += sum(self.counts)
        self.seconds, self.counts = [], []
        return taken


class SeriesLog:
    """The series of one loop until they are sent."""

    def __init__(self, loop: Loop, found_by: str) -> None:
        self._loop, self._found_by = loop, found_by
        self._closed: list[_Series] = []
        self._open: _Series | None = None
        self.least_seconds = LEAST_ENTRY_SECONDS

    @property
    def missing_seconds(self) -> float:
        """Seconds that the entry in the making lacks until it is complete."""
        return self.least_seconds - (self._open.waiting if self._open is not None else 0.0)

    def add(self, began: float, seconds: float, count: int, first: int, name: str) -> None:
        """Add `count` iterations from number `first` on, right after those before unless the loop was left."""
        if self._open is not None and self._open.name != name:
            self.leave()
        if self._open is None:
            self._open = _Series(began, first, name)
        self._open.add(seconds, count, self.least_seconds)

    def leave(self) -> None:
        """End the series: the next iteration does not follow the last one, by time or by number."""
        if self._open is not None:
            self._open.close()
            if self._open.seconds and len(self._closed) < _SERIES_AT_MOST:
                self._closed.append(self._open)
            self._open = None

    def number(self, shift: int, name: str) -> None:
        """Add `shift` to the numbers of the iterations that were not sent yet, now that their numbers are known."""
        for series in (*self._closed, *([self._open] if self._open is not None else [])):
            series.first += shift
            series.name = name

    def events(self, now: float, age_seconds: float, *, final: bool = False) -> list[StepsTaken]:
        """Return the iterations since the last call; in the `final` one with those that wait for others."""
        if final:
            self.leave()
        self.least_seconds = LEAST_ENTRY_SECONDS * max(1.0, age_seconds / YOUNG_SECONDS)
        ready, self._closed = self._closed, []
        if self._open is not None and self._open.seconds:
            ready.append(self._open.take())
        events = []
        for series in ready:
            began, first = series.began, series.first
            for start in range(0, len(series.seconds), _ENTRIES_AT_MOST):
                seconds = series.seconds[start : start + _ENTRIES_AT_MOST]
                counts = series.counts[start : start + _ENTRIES_AT_MOST]
                events.append(
                    StepsTaken(
                        monotonic_seconds=now,
                        where=self._loop.location,
                        found_by=self._found_by,
                        first=first,
                        numbered_by=series.name,
                        began_seconds=round(began, 6),
                        seconds=[round(entry, 7) for entry in seconds],
                        counts=counts if any(count != 1 for count in counts) else [],
                    )
                )
                began += sum(seconds)
                first += sum(counts)
        return events


class CounterSearch:
    """Finds the counter of a loop. Given the values of all candidates at the ends of consecutive iterations, it chooses
    the first one that rose by exactly one each time."""

    def __init__(self, counters: Sequence[LoopCounter]) -> None:
        self.counters = tuple(counters)
        self.found: LoopCounter | None = None
        self.over = not counters
        """Whether it needs no more iterations: a counter was found, or there is none."""
        self._tries = 0
        self._last: tuple[int, Values] | None = None
        self._rises = [0] * len(counters)

    def saw(self, ordinal: int, values: Values) -> int | None:
        """Take the values at the end of the iteration with this ordinal. Return the index of the counter once it is
        found; from then on it is the only one of `counters`."""
        if self.over or len(values) != len(self.counters):
            return None
        last, self._last = self._last, (ordinal, values)
        self._tries += 1
        if last is not None and last[0] == ordinal - 1:
            for index, (before, value) in enumerate(zip(last[1], values, strict=True)):
                rose = before is not None and value == before + 1
                self._rises[index] = self._rises[index] + 1 if rose else 0
        else:
            self._rises = [0] * len(self.counters)
        found = next((index for index, rises in enumerate(self._rises) if rises >= PROOFS), None)
        if found is not None:
            self.found = self.counters[found]
            self.counters = (self.found,)
        self.over = found is not None or self._tries >= _TRIES_AT_MOST
        return found


class MomentLog:
    """The iterations of a loop, from the moments at which they ended."""

    def __init__(self, loop: Loop, counters: Sequence[LoopCounter], seen_before: int = 0) -> None:
        """`seen_before`: number of iterations of this loop that were counted before."""
        self.search = CounterSearch(counters)
        self._series = SeriesLog(loop, "monitoring")
        self._ordinal = seen_before
        self._last: float | None = None
        self._shift = 0
        self._name = ""
        self._read: dict[float, Values] = {}

    @property
    def seen(self) -> int:
        """Number of iterations that ended, timed or not, including those of earlier logs."""
        return self._ordinal

    @property
    def last_number(self) -> int | None:
        """Number of the last iteration that ended, by the counter of the loop; None without one."""
        return self._ordinal + self._shift - 1 if self._name else None

    def take(self, moments: Sequence[float], read: Mapping[float, Values]) -> None:
        """Take the ends of iterations in order, with `LEFT` where the loop was left; `read`: the values of the counters
        at some of these moments. The cost grows with the entries, not with the iterations."""
        self._read |= read
        newest = max(moments, default=LEFT)
        reads, start = deque(sorted(self._read)), 0
        for end in (*_exits(moments), len(moments)):
            if start < end:
                # In ranges that begin where counters were read.
                bounds = [start]
                while reads and reads[0] <= moments[end - 1]:
                    mark = bisect_left(moments, reads.popleft(), start, end)
                    if mark > bounds[-1]:
                        bounds.append(mark)
                for first, last in pairwise([*bounds, end]):
                    values = self._read.pop(moments[first], None)
                    if values is not None:
                        self._check(self._ordinal, values)
                    self._follow(moments, first, last)
            if end < len(moments):
                self._series.leave()
                self._last = None
            start = end + 1
        self._read = {at: values for at, values in self._read.items() if at > newest}  # their moments were dropped

    def _follow(self, moments: Sequence[float], start: int, end: int) -> None:
        """Add the iterations that end at these moments and follow the one before, as many at once as make an entry."""
        if self._last is None:
            self._last = moments[start]
            self._ordinal += 1
            start += 1
        while start < end:
            full = self._last + self._series.missing_seconds
            stop = min(bisect_left(moments, full, start, end) + 1, end)
            seconds = max(0.0, moments[stop - 1] - self._last)
            self._series.add(self._last, seconds, stop - start, self._ordinal + self._shift, self._name)
            self._ordinal += stop - start
            self._last = moments[stop - 1]
            start = stop

    def _check(self, ordinal: int, values: Values) -> None:
        """Take the values of the candidates, or of the counter found, at the end of iteration `ordinal`: search on, or
        notice that the counter has skipped numbers or begun again."""
        search = self.search
        if not search.over:
            index = search.saw(ordinal, values)
            if search.found is not None and index is not None:
                self._name, self._shift = search.found.name, (values[index] or 0) - ordinal
                self._series.number(self._shift, self._name)
            return
        if search.found is None or not self._name or len(values) != 1:
            return
        value, expected = values[0], ordinal + self._shift
        if value == expected:
            return
        self._series.leave()
        if value is not None and value > expected and self._last is None:  # iterations that were not seen
            self._shift = value - ordinal
        else:  # the counter begins again, or is none: the iterations are counted on from here
            self._name = ""

    def events(self, now: float, age_seconds: float, *, final: bool = False) -> list[StepsTaken]:
        """Return the iterations since the last call; none while unnumbered, unless the call is `final`."""
        if not self.search.over and not final:
            return []
        return self._series.events(now, age_seconds, final=final)


def _exits(moments: Sequence[float]) -> Iterator[int]:
    at = -1
    with suppress(ValueError):
        while True:
            at = moments.index(LEFT, at + 1)
            yield at


class NumberLog:
    """The iterations of a loop, from its counter, which is read now and then."""

    def __init__(self, loop: Loop, counter: LoopCounter) -> None:
        self._loop, self._counter, self._name = loop, counter, counter.name
        self._series = SeriesLog(loop, "number")
        self._since: float | None = None
        """When the last number was first seen; None outside the loop."""
        self._number = -_ENDLESS
        self._shift = 0
        self._looks = FEWEST_LOOKS
        self._is_unknown = False
        """Whether the loop may have run unseen, so that its counter shows nothing."""

    @property
    def number(self) -> int:
        """Number of the iteration in progress."""
        return self._number

    @property
    def last_number(self) -> int | None:
        """Number of the last iteration that ended, by the counter of the loop; None if it began again."""
        return self._number - 1 if self._name else None

    def sample(self, at: float, frame: FrameType | None) -> None:
        """Take a sample of the thread's innermost frame at this moment, in which the counter is read."""
        # The number of the iteration in progress is the value of the counter at its end.
        number = None
        frame = next((caller for caller in outwards(frame, DEEPEST) if caller.f_code is self._loop.code), None)
        if frame is not None:
            offset, value = frame.f_lasti, read_counter(frame, self._counter)
            inside = self._loop.begins <= offset <= self._loop.ends and frame.f_lasti == offset
            if value is not None and inside:
                number = value + 1 if offset < self._counter.offset or offset == self._loop.ends else value
        self.saw(at, number)

    def saw(self, at: float, number: int | None) -> None:
        """Take the `number` of the iteration in progress at this moment; None if the loop is not running."""
        if number is None or self._is_unknown:
            self._series.leave()
            self._since = None
            return
        number += self._shift
        self._looks += 1
        if number < self._number:  # the counter begins again: the iterations are counted on from here
            self._series.leave()
            if self._looks <= FEWEST_LOOKS:
                self._is_unknown, self._series = True, SeriesLog(self._loop, "number")
            self._looks = 0
            self._shift += self._number + 1 - number
            self._name, self._number, self._since = "", self._number + 1, at
            return
        if self._since is not None and number > self._number:
            count = number - self._number
            self._series.add(self._since, at - self._since, count, self._number, self._name)
        if self._since is None or number > self._number:
            self._since, self._number = at, number

    def events(self, now: float, age_seconds: float, *, final: bool = False) -> list[StepsTaken]:
        """Return the iterations since the last call; `final`: there is no later call."""
        return self._series.events(now, age_seconds, final=final)
