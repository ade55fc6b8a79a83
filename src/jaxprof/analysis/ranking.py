"""The kernels of a program as rows of a table: the weight of each, its origins, and which rows are shown, and how
sorted.

The weight is the measured time where there is one, else the least time under the device's ceilings, else the bytes
moved; a share is of the sum of the known weights. A program may have half a million kernels, and rows are selected
while somebody waits for a key: figures and origins are columns of numbers, and a row is made when it is shown. Reading
the columns of origins may take seconds; `needs_origins`, `GROUPED_BY_ORIGINS` and `SORTED_BY_ORIGINS` say what has to
wait for them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.hlo.analysis.cost.roofline import roofline
from jaxprof.hlo.analysis.kernels import Kernel
from jaxprof.hlo.analysis.origin import op_path

if TYPE_CHECKING:
    from jaxprof.devices.targets import Exchange, Machine, StepTime
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks
    from jaxprof.hlo.analysis.cost.roofline import Roofline
    from jaxprof.hlo.analysis.origin import HloSourceLocation, OpPath
    from jaxprof.hlo.analysis.origin_columns import OriginColumns
    from jaxprof.hlo.model import Module

BASES = {
    "measured": "measured time",
    "least": "least time (a lower bound)",
    "bytes": "bytes moved (estimate)",
}
"""The quantities that shares can be of, in words."""
_MOST_STEPPED: Final = 20_000
"""Number of kernels up to which one run is estimated: a screen does this in the thread that draws."""
FEW: Final = 5_000
"""Number of kernels whose origins are read in a twentieth of a second. A screen reads more in a thread."""


class Ranked(NamedTuple):
    """A kernel with its place among the others. Figures cover all its executions; None is unknown."""

    number: int
    """Its place in the order of execution, from 0."""
    kernel: Kernel
    weight: float | None = None
    share: float | None = None
    """Share of the sum of all weights, in 0..1."""
    least_once: float | None = None
    """Least seconds of one execution."""
    measured_seconds: float | None = None
    roof: Roofline | None = None
    bound: str = ""
    """What bounds it: `memory`, `compute`, `links`; empty if unknown."""
    over: Exchange | None = None
    """For a collective: one execution over the links."""

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it in its module: computation and name."""
        return self.kernel.computation, self.kernel.name

    @property
    def least_seconds(self) -> float | None:
        """Least seconds of all executions."""
        count = self.kernel.count
        return None if self.least_once is None or count is None else self.least_once * count

    @property
    def source(self) -> str:
        """`model.py:88`, or empty."""
        return short_place(self.kernel.source)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The functions and named scopes that it came from, outermost first."""
        return scopes_of(self.kernel.path)


def short_place(place: HloSourceLocation | None) -> str:
    """`model.py:88`, or empty."""
    return f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""


def scopes_of(path: OpPath) -> tuple[str, ...]:
    """The functions and named scopes of a path, outermost first."""
    return (*path.functions[:1], *path.scopes)


class KernelCeilings:
    """A machine's ceilings over kernels, looked up once for kernels that are alike."""

    def __init__(self, machine: Machine | None, over: Mapping[tuple[str, str], Exchange] | None = None) -> None:
        self.machine = machine
        self._over = over or {}
        self._known: dict[int, tuple[Roofline, float | None, str]] = {}

    def exchange(self, kernel: Kernel) -> Exchange | None:
        """For a collective: one execution over the machine's links."""
        return self._over.get((kernel.computation, kernel.name)) if self._over else None

    def of(self, kernel: Kernel) -> tuple[Roofline | None, float | None, str]:
        """A kernel's roofline, the least seconds of one execution, and what bounds it."""
        if self.machine is None:
            return None, None, ""
        over = self.exchange(kernel)
        cached = self._known.get(kernel.likeness) if over is None else None
        if cached is None:
            from jaxprof.devices.targets import bound_of, least_kernel_seconds

            cached = (
                roofline(kernel, self.machine.device),
                least_kernel_seconds(kernel, self.machine, over),
                bound_of(kernel, self.machine, over),
            )
            if over is None:
                self._known[kernel.likeness] = cached
        return cached

    def row(self, number: int, kernel: Kernel) -> Ranked:
        """The row of a kernel whose place among the others is not known."""
        roof, least, bound = self.of(kernel)
        return Ranked(number, kernel, least_once=least, roof=roof, bound=bound, over=self.exchange(kernel))


class Ranking:
    """All kernels of a program, in the order of execution, and the figure that their shares are of."""

    def __init__(
        self,
        kernels: Sequence[Kernel] = (),
        machine: Machine | None = None,
        measured: Mapping[str, float] | None = None,
        over: Mapping[tuple[str, str], Exchange] | None = None,
        step: StepTime | None = None,
    ) -> None:
        """`measured` is seconds of one run of the program, by the kernel's name; `over` the collectives on the
        machine's links, by computation and name; `step` one run of the program there."""
        self.kernels = kernels
        self.device: DevicePeaks | None = machine.device if machine is not None else None
        self._ceilings = KernelCeilings(machine, over)
        self._measured = measured or {}
        self._columns: dict[str, array[float]] = {}
        self._origins: OriginColumns | None = None
        self.basis = self._basis()
        self.step = step if self.basis == "least" else None
        """Estimate of one run, for a program that was not measured."""

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, number: int) -> Ranked:
        kernel = self.kernels[number]
        roof, least, bound = self._ceilings.of(kernel)
        weight = _or_none(self.column("weight")[number])
        return Ranked(
            number,
            kernel,
            weight,
            self.share_of(weight),
            least,
            self._measured.get(kernel.name),
            roof,
            bound,
            self._ceilings.exchange(kernel),
        )

    def rows(self, numbers: Iterable[int]) -> Iterator[Ranked]:
        """The rows of these kernels, in the order given."""
        return map(self.__getitem__, numbers)

    def column(self, name: str) -> array[float]:
        """A figure of all executions of each kernel, by its number; NaN if unknown. One of `FIGURES`."""
        figures = self._columns.get(name)
        if figures is None:
            figure = FIGURES[name]
            unknown = math.nan
            values = (figure(self, kernel) for kernel in self.kernels)
            figures = self._columns[name] = array("d", (unknown if value is None else value for value in values))
        return figures

    def share(self, numbers: Sequence[int]) -> float | None:
        """Share of several kernels together, in 0..1; None if nothing is known."""
        return self.share_of(self.total("weight", numbers))

    def share_of(self, weight: float | None) -> float | None:
        """A weight as a share of all, in 0..1; None if either is not known."""
        return weight / self._total if weight is not None and self._total else None

    def bound(self, number: int) -> str:
        """What a kernel is bound by: see `Ranked.bound`."""
        return self._ceilings.of(self.kernels[number])[2]

    def total(self, name: str, numbers: Iterable[int]) -> float | None:
        """The sum of the known values of a figure; None if none is known, and of FLOPs and bytes if one is not."""
        column = self.column(name)
        numbers = list(numbers)
        if name in ("flops", "bytes") and any(math.isnan(column[number]) for number in numbers):
            return None
        figures = array("d", (value for number in numbers if not math.isnan(value := column[number])))
        return math.fsum(figures) if figures else None

    def find(self, name: str, computation: str = "") -> int | None:
        """The number of the first kernel of that name; with a computation, of the kernel in it."""
        return next(
            (
                number
                for number, kernel in enumerate(self.kernels)
                if kernel.name == name and computation in ("", kernel.computation)
            ),
            None,
        )

    @property
    def origins(self) -> OriginColumns:
        """The origins of all kernels. They are read now unless they are known: see `knows_origins`."""
        if self._origins is None:
            from jaxprof.hlo.analysis.origin_columns import origin_columns

            self._origins = origin_columns(self.kernels)
            assert self._origins is not None, "nothing cancels it"
        return self._origins

    @property
    def knows_origins(self) -> bool:
        """`origins` can be had without waiting."""
        return self._origins is not None or len(self.kernels) <= FEW

    def know_origins(self, origins: OriginColumns) -> None:
        """Sets the origins of these kernels, which another process or thread has read."""
        self._origins = origins

    def know_from(self, other: Ranking) -> None:
        """Takes the origins from another ranking of the same kernels, if it has them."""
        if other.kernels is self.kernels and other._origins is not None:
            self._origins = other._origins

    def _basis(self) -> str:
        if self._measured and any(kernel.name in self._measured for kernel in self.kernels):
            return "measured"
        if self.device is not None and any(self.least(kernel) is not None for kernel in self.kernels):
            return "least"
        return "bytes"

    def measured(self, kernel: Kernel) -> float | None:
        """Measured seconds of all its executions in one run."""
        return self._measured.get(kernel.name)

    def least(self, kernel: Kernel) -> float | None:
        """Least seconds of all its executions."""
        count, once = kernel.count, self._ceilings.of(kernel)[1]
        return None if once is None or count is None else once * count

    def weight(self, kernel: Kernel) -> float | None:
        """The kernel's weight, which its share is computed from."""
        return FIGURES[self.basis](self, kernel)

    @cached_property
    def _total(self) -> float:
        return math.fsum(value for value in self.column("weight") if not math.isnan(value))


def ranking_on(
    machine: Machine | None, module: Module | None, kernels: Sequence[Kernel], measured: Mapping[str, float] | None
) -> Ranking:
    """The kernels of `module` that are known, on a machine: with the collectives over its links and, for a program
    that was not measured, an estimate of one run there. `measured` is seconds of one run by the kernel's name."""
    if machine is None or module is None:
        return Ranking(kernels, machine, measured)
    from jaxprof.devices.targets import exchanges, step_time

    has_step = not measured and len(kernels) <= _MOST_STEPPED
    step = step_time(module, machine) if has_step else None
    return Ranking(kernels, machine, measured, exchanges(module, machine), step)


FIGURES: dict[str, Callable[[Ranking, Kernel], float | None]] = {
    "weight": Ranking.weight,
    "measured": Ranking.measured,
    "least": Ranking.least,
    "flops": lambda ranking, kernel: kernel.total_flops,
    "bytes": lambda ranking, kernel: kernel.total_bytes,
    "times": lambda ranking, kernel: kernel.count,
    "inside": lambda ranking, kernel: kernel.instructions,
    "intensity": lambda ranking, kernel: kernel.intensity,
}
"""The numeric figures that kernels are sorted by. The first five can be added up."""


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


_NONE: Final = -1


class BarrierIndex:
    """The barriers by the kernels that they are between: a table of hashes, eight to sixteen bytes a barrier."""

    def __init__(self, barriers: Sequence[Barrier] = ()) -> None:
        self._barriers: Final = barriers
        size = 1 << (2 * len(barriers)).bit_length()
        self._mask: Final = size - 1
        # Barrier n has the entries 2n, of its producer, and 2n + 1, of its consumer. Those of one slot are a chain.
        self._first = array("i", [_NONE]) * size
        self._next = array("i", [_NONE]) * (2 * len(barriers))
        for number in range(len(barriers) - 1, -1, -1):  # backwards: a chain is then in the order of the barriers
            barrier = barriers[number]
            self._add(2 * number, barrier.computation, barrier.producer)
            if barrier.consumer != barrier.producer:
                self._add(2 * number + 1, barrier.computation, barrier.consumer)

    def _add(self, entry: int, computation: str, name: str) -> None:
        slot = hash((computation, name)) & self._mask
        self._next[entry] = self._first[slot]
        self._first[slot] = entry

    def of(self, computation: str, name: str) -> tuple[Barrier, ...]:
        """The barriers beside a kernel, in the order in which they were given."""
        beside_it: list[Barrier] = []
        entry = self._first[hash((computation, name)) & self._mask]
        while entry != _NONE:
            barrier = self._barriers[entry // 2]
            beside = barrier.consumer if entry % 2 else barrier.producer
            if beside == name and barrier.computation == computation:
                beside_it.append(barrier)
            entry = self._next[entry]
        return tuple(beside_it)


GROUPINGS = {
    "none": "not grouped",
    "kind": "by kind",
    "source": "by source line",
    "scope": "by named scope",
    "direction": "forward and backward",
}
"""The ways of grouping, in words."""
GROUPED_BY_ORIGINS: Final = frozenset({"source", "scope", "direction"})
SORTED_BY_ORIGINS: Final = frozenset({"source"})
_UNNAMED = "(no named scope)"
_NOWHERE = "(no source line)"
_NEITHER = "(neither: no gradient in its path)"
_ALIASES = {"share": "weight"}


def everything(ranking: Ranking) -> Sequence[int]:
    """The numbers of all kernels."""
    return range(len(ranking))


# -- order ------------------------------------------------------------------------------------------------------------


def ordered(ranking: Ranking, numbers: Sequence[int], column: str, *, turned: bool = False) -> Sequence[int]:
    """Sorted by a column: figures with the largest first, texts from A to Z; `turned` is the other way round. Unknown
    values come last either way, and equal ones stay in the order of execution."""
    if column == "order":
        return numbers[::-1] if turned else numbers
    name = _ALIASES.get(column, column)
    if name in FIGURES:
        figures = ranking.column(name)
        known = [number for number in numbers if not math.isnan(figures[number])]
        unknown = [number for number in numbers if math.isnan(figures[number])]
        known.sort(key=figures.__getitem__, reverse=not turned)
        return array("l", known + unknown)
    text = TEXTS[name](ranking)
    named = [number for number in numbers if text(number)]
    named.sort(key=text, reverse=turned)
    return array("l", named + [number for number in numbers if not text(number)])


def _name(ranking: Ranking) -> Callable[[int], str]:
    def text(number: int) -> str:
        name = ranking.kernels[number].name
        folded = name.casefold()
        return name if folded == name else folded  # half a million copies would be more than the columns

    return text


def _source(ranking: Ranking) -> Callable[[int], str]:
    origins = ranking.origins
    texts = [*(short_place(source) for _, source in origins.places), ""]
    return lambda number: texts[origins.source(number)]


TEXTS: Final[dict[str, Callable[[Ranking], Callable[[int], str]]]] = {
    "name": _name,
    "kind": lambda ranking: lambda number: ranking.kernels[number].kind.casefold(),
    "bound": lambda ranking: ranking.bound,
    "source": _source,
}
"""The columns that are sorted as texts; the others are `FIGURES`."""


# -- the filter -------------------------------------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word of a filter, and the fields that it may be in."""

    text: str
    fields: tuple[str, ...]


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    for word in text.casefold().split():
        name, colon, wanted = word.partition(":")
        if not colon or name not in _FIELDS:
            words.append(_Word(word, _FIELDS))
        elif wanted:
            words.append(_Word(wanted, (name,)))
    return words


def needs_origins(text: str) -> bool:
    """What a filter leaves depends on where kernels came from: `filtered` is then not whole without."""
    return any(not set(word.fields).isdisjoint(_OF_ORIGINS) for word in _words(text))


def filtered(ranking: Ranking, text: str, *, by_origins: bool = True) -> Sequence[int]:
    """Kernels that have all the words of `text`: anywhere, or where `kind:`, `scope:`, `file:` or `name:` says. Without
    `by_origins` only those of them that have each word in their name or kind."""
    words = _words(text)
    if not words:
        return everything(ranking)
    numbers: Sequence[int] = everything(ranking)
    for word in words:
        numbers = array("l", _having(ranking, numbers, word, by_origins=by_origins))
    return numbers


def _having(ranking: Ranking, numbers: Sequence[int], word: _Word, *, by_origins: bool) -> Iterator[int]:
    kernels, wanted = ranking.kernels, word.text
    of_origins = [_OF_ORIGINS[name] for name in word.fields if name in _OF_ORIGINS]
    from_there = None
    if by_origins and of_origins:
        from_there = ranking.origins.having(lambda place: any(wanted in look(*place) for look in of_origins))
    by_name, by_kind = "name" in word.fields, "kind" in word.fields
    kinds: dict[int, bool] = {}
    for number in numbers:
        if from_there is not None and from_there[number]:
            yield number
            continue
        kernel = kernels[number]
        if by_name and wanted in kernel.name.casefold():
            yield number
        elif by_kind:
            alike = kernel.likeness
            has = kinds.get(alike)
            if has is None:
                has = kinds[alike] = wanted in f"{kernel.kind} {kernel.opcode} {kernel.target}".casefold()
            if has:
                yield number


def _file(source: HloSourceLocation | None) -> str:
    return f"{source.file}:{source.line}".casefold() if source is not None else ""


_OF_ORIGINS: Final[dict[str, Callable[[str, HloSourceLocation | None], str]]] = {
    "scope": lambda op_name, source: op_name.casefold(),
    "file": lambda op_name, source: _file(source),
}
_FIELDS: Final = ("name", "kind", *_OF_ORIGINS)


# -- groups -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KernelGroup:
    """Several kernels under one name, with their sums."""

    ranking: Ranking
    path: tuple[str, ...]
    members: array[int] = field(default_factory=lambda: array("l"))
    groups: list[KernelGroup] = field(default_factory=list)
    """Only of scopes: those inside this one. `members` are then those directly in it."""
    _totals: dict[str, float | None] = field(default_factory=dict)

    @property
    def all(self) -> array[int]:
        """The kernels in it and in the groups inside it."""
        numbers = array("l", self.members)
        for group in self.groups:
            numbers += group.all
        return numbers

    @property
    def count(self) -> int:
        """How many these are."""
        return len(self.members) + sum(group.count for group in self.groups)

    @property
    def share(self) -> float | None:
        return self.ranking.share_of(self.total("weight"))

    def total(self, name: str) -> float | None:
        """The sum of the known values of one of `FIGURES`; None if none is known. For complete groups."""
        if name not in self._totals:
            self._totals[name] = self.ranking.total(name, self.all)
        return self._totals[name]


def grouped(ranking: Ranking, numbers: Sequence[int], by: str) -> list[KernelGroup]:
    """The groups, the heaviest first; their members keep the order of `numbers`."""
    top = KernelGroup(ranking, ())
    by_path: dict[tuple[str, ...], KernelGroup] = {(): top}
    path_of = _PATHS[by](ranking)
    paths = [path_of(number) for number in numbers]
    if by == "scope":
        paths = _without_the_one_function(paths)
    for number, path in zip(numbers, paths, strict=True):
        group = by_path.get(path)
        if group is None:
            for depth in range(1, len(path) + 1):
                if path[:depth] not in by_path:
                    made = by_path[path[:depth]] = KernelGroup(ranking, path[:depth])
                    by_path[path[: depth - 1]].groups.append(made)
            group = by_path[path]
        group.members.append(number)
    for group in by_path.values():
        group.groups.sort(key=lambda inner: -(inner.total("weight") or 0.0))
    return top.groups


def _kind_paths(ranking: Ranking) -> Callable[[int], tuple[str, ...]]:
    paths: dict[str, tuple[str, ...]] = {}

    def path(number: int) -> tuple[str, ...]:
        kind = ranking.kernels[number].kind
        return paths.setdefault(kind, (kind,))

    return path


def _source_paths(ranking: Ranking) -> Callable[[int], tuple[str, ...]]:
    origins = ranking.origins
    paths = [(f"{source.file}:{source.line}",) if source is not None else () for _, source in origins.places]
    paths.append((_NOWHERE,))
    return lambda number: paths[origins.source(number)]


def _paths_by(label: Callable[[str], tuple[str, ...]]) -> Callable[[Ranking], Callable[[int], tuple[str, ...]]]:
    """By the kernel's `op_name`, which is parsed once for all kernels that have it."""

    def paths(ranking: Ranking) -> Callable[[int], tuple[str, ...]]:
        origins = ranking.origins
        labels: dict[int, tuple[str, ...]] = {}

        def path(number: int) -> tuple[str, ...]:
            first = origins.first(number)
            named = labels.get(first)
            if named is None:
                named = labels[first] = label(origins.places[first][0] if first >= 0 else "")
            return named

        return path

    return paths


_PATHS: Final[dict[str, Callable[[Ranking], Callable[[int], tuple[str, ...]]]]] = {
    "kind": _kind_paths,
    "source": _source_paths,
    "direction": _paths_by(lambda op_name: (op_path(op_name).direction or _NEITHER,)),
    "scope": _paths_by(lambda op_name: scopes_of(op_path(op_name)) or (_UNNAMED,)),
}


def _without_the_one_function(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Where all came from one function, as they do in most programs, it tells nothing apart."""
    if len({path[0] for path in paths if path != (_UNNAMED,)}) != 1:
        return paths
    shorter: dict[tuple[str, ...], tuple[str, ...]] = {(_UNNAMED,): (_UNNAMED,)}
    for path in set(paths):
        shorter.setdefault(path, path[1:] or (_UNNAMED,))
    return [shorter[path] for path in paths]


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The kernels at one place of the plot."""

    numbers: tuple[int, ...]
    """The kernels here, the one with the greatest share first."""
    intensity: float
    """FLOPs for each byte."""
    flops_per_second: float
    attainable: float
    """The FLOP/s that the ceilings allow."""
    bound: str
    """`memory`, `compute`, or empty."""
    share: float
    """Of that kernel."""
    measured: bool
    """Whether `flops_per_second` was reached; else it is what the ceilings allow at most."""

    @property
    def number(self) -> int:
        """The kernel with the greatest share."""
        return self.numbers[0]


def roofline_points(ranking: Ranking, numbers: Sequence[int]) -> tuple[list[RooflinePoint], int]:
    """The points of the kernels, those with the greatest share last so that they are drawn on top; and how many kernels
    have no point."""
    by_place: dict[tuple[float, float, str, bool], list[Ranked]] = {}
    without = 0
    for row in ranking.rows(numbers):
        roof = row.roof
        if roof is None or not roof.intensity or roof.attainable is None:
            without += 1
            continue
        flops, took = row.kernel.total_flops, row.measured_seconds
        speed = flops / took if flops and took else roof.attainable
        by_place.setdefault((roof.intensity, speed, roof.bound, bool(flops and took)), []).append(row)
    points = [_point(place, sorted(rows, key=_share, reverse=True)) for place, rows in by_place.items()]
    return sorted(points, key=lambda point: point.share), without


def _share(row: Ranked) -> float:
    return row.share or 0.0


def _point(place: tuple[float, float, str, bool], rows: Sequence[Ranked]) -> RooflinePoint:
    intensity, speed, bound, measured = place
    roof = rows[0].roof
    attainable = roof.attainable if roof is not None and roof.attainable is not None else speed
    numbers = tuple(row.number for row in rows)
    return RooflinePoint(numbers, intensity, speed, attainable, bound, _share(rows[0]), measured)


def roofline_ceilings(ranking: Ranking, numbers: Sequence[int], device: DevicePeaks) -> list[tuple[str, float]]:
    """The peaks above these kernels, named by dtype, the highest first. FLOP/s."""
    peaks: dict[str, float] = {}
    for row in ranking.rows(numbers):
        if row.roof is not None and row.roof.peak:
            unit = "matrix" if row.kernel.uses_matrix_units else "vector"
            peaks[f"{row.kernel.dtype} {unit}"] = row.roof.peak
    if not peaks:
        peak = device.peak("f32", matrix=False) or device.peak("bf16", matrix=True)
        peaks = {"peak": peak} if peak else {}
    return sorted(peaks.items(), key=lambda item: -item[1])
