"""The kernels of a program as table rows: weight and origins of each kernel, filters, sort orders and groups.

The weight is the measured time if there is one, else the least time under the device's ceilings, else the bytes moved.
A share is a fraction of the sum of the known weights. A program may have half a million kernels, and rows are selected
while a user waits for a key press: figures and origins are therefore columns of numbers, and a row is built only when
it is shown. Reading the columns of origins may take seconds; `needs_origins` says which selections have to wait for
them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.analysis.kernels import MeasuredKernel
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.kernels import Kernel, kernels, stream, with_running
from jaxprof.hlo.kernels.origin import (
    HloSourceLocation,
    OpLocation,
    OpPath,
    OriginColumns,
    op_path,
    origin_columns,
    source_of,
)
from jaxprof.hlo.text.model import Module

if TYPE_CHECKING:
    from jaxprof.devices.absent import Machine
    from jaxprof.devices.absent.least_time import Exchange, StepTime
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks, Roofline

BASES = {
    "measured": "time with the profiler",
    "least": "least time (a lower bound)",
    "bytes": "bytes moved (estimate)",
}
"""Quantities that shares can be computed from, each with its text."""
FEW = 5_000
"""Largest number of kernels whose origins are read at once, in about 0.05 s. A screen reads more than that in a
thread."""


class Ranked(NamedTuple):
    """A kernel with its rank. Figures cover all executions of the kernel; None means unknown."""

    number: int
    """Position in the order of execution, from 0."""
    kernel: Kernel
    weight: float | None = None
    share: float | None = None
    """Fraction of the sum of all weights, from 0 to 1."""
    least_once: float | None = None
    """Least seconds that one execution takes."""
    measured: MeasuredKernel | None = None
    roof: Roofline | None = None
    bound: str = ""
    """What bounds the kernel: `memory`, `compute` or `links`; empty if unknown."""
    over: Exchange | None = None
    """One execution over the links, if the kernel is a collective."""

    @property
    def key(self) -> tuple[str, str]:
        """Computation and name, which identify the kernel in its module."""
        return self.kernel.computation, self.kernel.name

    @property
    def least_seconds(self) -> float | None:
        """Least seconds of all executions together."""
        count = self.kernel.count
        return None if self.least_once is None or count is None else self.least_once * count

    @property
    def measured_seconds(self) -> float | None:
        """Self time of all executions in one call."""
        return self.measured.per_call_seconds if self.measured is not None else None

    @property
    def source(self) -> str:
        """Source location as `model.py:88`; empty if unknown."""
        source = self.kernel.source
        return source.short if source is not None else ""


def scopes_of(path: OpPath) -> tuple[str, ...]:
    """Return the functions and named scopes of a path, outermost first."""
    return (*path.functions[:1], *path.scopes)


class KernelCeilings:
    """Ceilings of a machine applied to kernels; kernels that are alike share one computation."""

    def __init__(self, machine: Machine | None, over: Mapping[tuple[str, str], Exchange] | None = None) -> None:
        self.machine = machine
        self._over = over or {}
        self._known: dict[Hashable, tuple[Roofline, float | None, str]] = {}

    def exchange(self, kernel: Kernel) -> Exchange | None:
        """Return one execution over the machine's links; None if the kernel is no collective."""
        return self._over.get((kernel.computation, kernel.name)) if self._over else None

    def of(self, kernel: Kernel) -> tuple[Roofline | None, float | None, str]:
        """Return a kernel's roofline, the least seconds of one execution, and what bounds the kernel."""
        if self.machine is None or kernel.runs_kernels:
            return None, None, ""
        over = self.exchange(kernel)
        cached = self._known.get(kernel.likeness) if over is None else None
        if cached is None:
            from jaxprof.devices.absent.least_time import kernel_bound

            # A collective has its own way over the links, all others of one likeness have one bound.
            cached = kernel_bound(kernel, self.machine, over)
            if over is None:
                self._known[kernel.likeness] = cached
        return cached

    def row(self, number: int, kernel: Kernel) -> Ranked:
        """Return a row for a kernel whose weight and share are unknown."""
        if self.machine is None:
            return Ranked(number, kernel)
        roof, least, bound = self.of(kernel)
        return Ranked(number, kernel, least_once=least, roof=roof, bound=bound, over=self.exchange(kernel))


class Ranking:
    """All kernels of a program in the order of execution, and the quantity that their shares are computed from."""

    def __init__(
        self,
        kernels: Sequence[Kernel] = (),
        machine: Machine | None = None,
        measured: Mapping[str, MeasuredKernel] | None = None,
        over: Mapping[tuple[str, str], Exchange] | None = None,
        step: StepTime | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        """Rank `kernels` on a machine. `measured` maps kernel names to what a capture has of them; `over` maps
        (computation, name) to the collective on the machine's links; `step` estimates one call on that machine. Unless
        it `is_whole`, more kernels follow, and shares are unknown."""
        self.kernels = kernels
        self.is_whole = is_whole
        self.device: DevicePeaks | None = machine.device if machine is not None else None
        self._ceilings = KernelCeilings(machine, over)
        self._measured = measured or {}
        self._columns: dict[str, array[float]] = {}
        self._origins: OriginColumns | None = None
        if measured and any(self.self_seconds(kernel) is not None for kernel in kernels if kernel.name in measured):
            self.basis = "measured"
        else:
            known = self.device is not None and any(self.least(kernel) is not None for kernel in kernels)
            self.basis = "least" if known else "bytes"
        self.step = step if self.basis == "least" else None
        """Estimate of one call; only for a program that was not measured."""

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, number: int) -> Ranked:
        kernel, known = self.kernels[number], self.column("weight")[number]
        weight = None if math.isnan(known) else known
        row = self._ceilings.row(number, kernel)
        return row._replace(weight=weight, share=self.share_of(weight), measured=self.capture_of(kernel))

    def rows(self, numbers: Iterable[int]) -> Iterator[Ranked]:
        """Return the rows of these kernels, in the given order."""
        return map(self.__getitem__, numbers)

    def column(self, name: str) -> array[float]:
        """Return one of `FIGURES` over all executions, indexed by kernel number; NaN if unknown."""
        figures = self._columns.get(name)
        if figures is None:
            figure, known = FIGURES[name], dict[Hashable, float]()
            figures = self._columns[name] = array("d")
            for kernel in self.kernels:
                # What was measured is each kernel's own; else those that are alike and run as often have one figure.
                form = kernel if self._measured else (kernel.likeness, kernel.count)
                value = known.get(form)
                if value is None:
                    read = figure(self, kernel)
                    value = known[form] = math.nan if read is None else read
                figures.append(value)
        return figures

    def share_of(self, weight: float | None) -> float | None:
        """Return a weight as a fraction of all weights, from 0 to 1; None if either is unknown."""
        return weight / self._total if weight is not None and self.is_whole and self._total else None

    def bound(self, number: int) -> str:
        """Return what bounds a kernel; see `Ranked.bound`."""
        return self._ceilings.of(self.kernels[number])[2]

    def total(self, name: str, numbers: Iterable[int]) -> float | None:
        """Return the sum of a figure's known values; None if all are unknown, or for FLOPs and bytes if any is."""
        column = self.column(name)
        numbers = list(numbers)
        # A sum of work with an unknown part would pass for all of it; of times, the known part says something.
        if name in ("flops", "bytes") and any(math.isnan(column[number]) for number in numbers):
            return None
        figures = array("d", (value for number in numbers if not math.isnan(value := column[number])))
        return math.fsum(figures) if figures else None

    def find(self, name: str, computation: str = "") -> int | None:
        """Return the number of the first kernel of that name, in any computation or only in the given one."""
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
        """Origins of all kernels. Reads them now unless they are known; see `knows_origins`."""
        if self._origins is None:
            self._origins = origin_columns(kernel.instruction for kernel in self.kernels)
            assert self._origins is not None, "nothing cancels it"
        return self._origins

    @property
    def knows_origins(self) -> bool:
        """Whether `origins` returns without a noticeable wait."""
        return self._origins is not None or len(self.kernels) <= FEW

    def know_origins(self, origins: OriginColumns) -> None:
        """Set the origins of these kernels, which another process or thread has read."""
        self._origins = origins

    def capture_of(self, kernel: Kernel) -> MeasuredKernel | None:
        return self._measured.get(kernel.name)

    def self_seconds(self, kernel: Kernel) -> float | None:
        """Return the measured self seconds of all executions in one call."""
        measured = self.capture_of(kernel)
        return measured.per_call_seconds if measured is not None else None

    def least(self, kernel: Kernel) -> float | None:
        """Return the least seconds of all executions."""
        count, once = kernel.count, self._ceilings.of(kernel)[1]
        return None if once is None or count is None else once * count

    def weight(self, kernel: Kernel) -> float | None:
        return FIGURES[self.basis](self, kernel)

    @cached_property
    def _total(self) -> float:
        return math.fsum(value for value in self.column("weight") if not math.isnan(value))


def ranking_on(
    machine: Machine | None,
    module: Module | None,
    kernels: Sequence[Kernel],
    measured: Mapping[str, MeasuredKernel] | None,
) -> Ranking:
    """Rank the known kernels of `module` on a machine, with its collectives over the machine's links. A program that
    was not measured also gets an estimate of one call. `measured` maps kernel names to what a capture has of them."""
    if machine is None or module is None:
        return Ranking(kernels, machine, measured)
    from jaxprof.devices.absent.least_time import exchanges, step_time

    # No estimate for more kernels: a screen computes it in its drawing thread.
    has_step = not measured and len(kernels) <= 20_000
    step = step_time(module, machine) if has_step else None
    return Ranking(kernels, machine, measured, exchanges(module, machine), step)


FIGURES: dict[str, Callable[[Ranking, Kernel], float | None]] = {
    "weight": Ranking.weight,
    "measured": Ranking.self_seconds,
    "least": Ranking.least,
    # The work of a loop is that of the kernels in it.
    "flops": lambda ranking, kernel: 0.0 if kernel.runs_kernels else kernel.total_flops,
    "bytes": lambda ranking, kernel: 0.0 if kernel.runs_kernels else kernel.total_bytes,
    "times": lambda ranking, kernel: kernel.count,
    "inside": lambda ranking, kernel: kernel.instructions,
    "intensity": lambda ranking, kernel: kernel.intensity,
    "flops_per_second": lambda ranking, kernel: getattr(ranking.capture_of(kernel), "flops_per_second", None),
    "bytes_per_second": lambda ranking, kernel: getattr(ranking.capture_of(kernel), "bytes_per_second", None),
}
"""Numeric figures that kernels are sorted by. The first five can be summed."""


GROUPINGS = {
    "none": "not grouped",
    "kind": "by kind",
    "source": "by source line",
    "scope": "by named scope",
    "direction": "forward and backward",
}
"""Ways to group kernels, each with its text."""
_UNNAMED = "(no named scope)"
_NOWHERE = "(no source line)"
_NEITHER = "(neither: no gradient in its path)"
_ALIASES = {"share": "weight"}


# -- order ------------------------------------------------------------------------------------------------------------


def sort_kernels(ranking: Ranking, numbers: Sequence[int], column: str, *, turned: bool = False) -> Sequence[int]:
    """Sort by a column: figures from the largest, texts from A to Z; `turned` reverses both. Unknown values always come
    last, and equal values stay in the order of execution."""
    if column == "order":
        return numbers[::-1] if turned else numbers
    name = _ALIASES.get(column, column)
    if name in FIGURES:
        figures = ranking.column(name)
        if len(numbers) > FEW:
            import numpy as np  # which lets other threads run meanwhile; unknown is NaN, which comes last

            every = np.asarray(numbers, dtype=np.dtype("l"))
            values = np.frombuffer(figures)[every]
            return array("l", every[np.argsort(values if turned else -values, kind="stable")].tobytes())
        unknown = [number for number in numbers if math.isnan(figures[number])]
        known = [number for number in numbers if not math.isnan(figures[number])] if unknown else list(numbers)
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
        return name if folded == name else folded  # half a million copies would take more memory than the columns

    return text


def _source(ranking: Ranking) -> Callable[[int], str]:
    which, sources = ranking.origins.which, map(source_of, ranking.origins.different)
    texts = [source.short if source is not None else "" for source in sources]
    return lambda number: texts[which[number]]


TEXTS: dict[str, Callable[[Ranking], Callable[[int], str]]] = {
    "name": _name,
    "kind": lambda ranking: lambda number: ranking.kernels[number].kind.casefold(),
    "bound": lambda ranking: ranking.bound,
    "source": _source,
}
"""Columns that are sorted as text; all other columns are `FIGURES`."""


# -- the filter -------------------------------------------------------------------------------------------------------


def _words(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the words of a filter, each with the fields in which it is searched."""
    for word in text.casefold().split():
        name, colon, wanted = word.partition(":")
        if not colon or name not in _FIELDS:
            yield word, _FIELDS
        elif wanted:
            yield wanted, (name,)


def needs_origins(text: str, sort: str = "order", grouping: str = "none") -> bool:
    """Whether a filter, sort column or grouping needs origins; `filter_kernels` is incomplete without them."""
    by_origins = any(not _ORIGIN_FIELDS.keys().isdisjoint(fields) for _, fields in _words(text))
    return by_origins or sort == "source" or grouping in _PATHS


def filter_kernels(ranking: Ranking, text: str, *, by_origins: bool = True) -> Sequence[int]:
    """Return the kernels that match every word of `text`.

    A word matches in any field, or only in the field that a prefix `kind:`, `scope:`, `file:` or `name:` selects.
    Without `by_origins`, only the names and kinds of kernels are searched.
    """
    numbers: Sequence[int] = range(len(ranking))
    for word, fields in _words(text):
        numbers = array("l", filter(_test(ranking, word, fields, by_origins=by_origins), numbers))
    return numbers


def _test(ranking: Ranking, wanted: str, fields: Sequence[str], *, by_origins: bool) -> Callable[[int], bool]:
    """Return a test whether a kernel has a word in one of these fields. What many kernels share is examined once."""
    texts = [_ORIGIN_FIELDS[name] for name in fields if by_origins and name in _ORIGIN_FIELDS]
    by_name, by_kind = "name" in fields, "kind" in fields
    origins = ranking.origins if texts else None
    matching = [
        any(wanted in text(*part) for part in origin for text in texts)
        for origin in (origins.different if origins else ())
    ]
    kinds: dict[Hashable, bool] = {}

    def has(number: int) -> bool:
        kernel = ranking.kernels[number]
        if (origins and matching[origins.which[number]]) or (by_name and wanted in kernel.name.casefold()):
            return True
        if by_kind and kernel.likeness not in kinds:
            kinds[kernel.likeness] = wanted in f"{kernel.kind} {kernel.opcode} {kernel.target}".casefold()
        return by_kind and kinds[kernel.likeness]

    return has


_ORIGIN_FIELDS: dict[str, Callable[[str, HloSourceLocation | None], str]] = {
    "scope": lambda op_name, source: op_name.casefold(),
    "file": lambda op_name, source: f"{source.file}:{source.line}".casefold() if source is not None else "",
}
_FIELDS = ("name", "kind", *_ORIGIN_FIELDS)


# -- groups -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KernelGroup:
    """Several kernels under one name, with their sums."""

    ranking: Ranking
    path: tuple[str, ...]
    members: array[int] = field(default_factory=lambda: array("l"))
    groups: list[KernelGroup] = field(default_factory=list)
    """Inner groups, only of scopes. `members` are then the kernels directly in this scope."""
    _totals: dict[str, float | None] = field(default_factory=dict)

    @property
    def all(self) -> array[int]:
        """Numbers of the kernels in this group and in its inner groups."""
        numbers = array("l", self.members)
        for group in self.groups:
            numbers += group.all
        return numbers

    @property
    def count(self) -> int:
        """Number of kernels in this group and in its inner groups."""
        return len(self.members) + sum(group.count for group in self.groups)

    @property
    def share(self) -> float | None:
        return self.ranking.share_of(self.total("weight"))

    def total(self, name: str) -> float | None:
        """Return the sum of the known values of one of `FIGURES`; None if none is known. Sums are cached: call this
        only when the group is complete."""
        if name not in self._totals:
            self._totals[name] = self.ranking.total(name, self.all)
        return self._totals[name]


def group_kernels(ranking: Ranking, numbers: Sequence[int], by: str) -> list[KernelGroup]:
    """Return the groups, heaviest first; members keep the order of `numbers`."""
    top = KernelGroup(ranking, ())
    by_path: dict[tuple[str, ...], KernelGroup] = {(): top}
    paths: list[tuple[str, ...]]
    if by == "kind":
        kinds = [ranking.kernels[number].kind for number in numbers]
        of_kind = {kind: (kind,) for kind in set(kinds)}  # a tuple for each of half a million kernels takes 30 MB
        paths = [of_kind[kind] for kind in kinds]
    else:  # locations that several kernels share are read once
        which, different = ranking.origins.which, list(map(_PATHS[by], ranking.origins.different))
        paths = [different[which[number]] for number in numbers]
    if by == "scope" and len({path[0] for path in paths if path != (_UNNAMED,)}) == 1:
        # As in most programs, all kernels share the first scope: a scope of everything separates nothing.
        shorter = {path: path[1:] or (_UNNAMED,) for path in set(paths)} | {(_UNNAMED,): (_UNNAMED,)}
        paths = [shorter[path] for path in paths]
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


def _source_path(origins: tuple[OpLocation, ...]) -> tuple[str, ...]:
    source = source_of(origins)
    return (f"{source.file}:{source.line}" if source is not None else _NOWHERE,)


def _path(origins: tuple[OpLocation, ...]) -> OpPath:
    """Return the path of a kernel's own location, which is the first."""
    return op_path(origins[0][0] if origins else "")


_PATHS: dict[str, Callable[[tuple[OpLocation, ...]], tuple[str, ...]]] = {
    "source": _source_path,
    "direction": lambda origins: (_path(origins).direction or _NEITHER,),
    "scope": lambda origins: scopes_of(_path(origins)) or (_UNNAMED,),
}


@frozen
class RooflinePoint:
    """One point of the roofline plot, and the kernels that lie on it."""

    numbers: tuple[int, ...]
    """Numbers of the kernels, the one with the largest share first."""
    intensity: float
    """FLOPs per byte."""
    flops_per_second: float
    bound: str
    """What bounds the kernels: `memory`, `compute`, or empty."""
    share: float
    """Largest share of a kernel at this point."""
    measured: bool
    """Whether `flops_per_second` was measured; otherwise it is the upper bound from the ceilings."""
    is_above: bool
    """Whether it was measured above the roof: a cache serves bytes that the roof takes from memory, or the ceilings are
    not those of the device that was measured."""


def roofline_points(ranking: Ranking, numbers: Sequence[int]) -> tuple[list[RooflinePoint], int]:
    """Return the points of the kernels, and how many kernels have no point. Points with the largest share come last, so
    that they are drawn on top."""
    points_by_figures: dict[tuple[float, float, str, bool, bool], list[Ranked]] = {}
    without = 0
    for row in ranking.rows(numbers):
        roof = row.roof
        if roof is None or not roof.intensity or roof.attainable is None:
            without += 1
            continue
        flops, took = row.kernel.total_flops, row.measured_seconds
        speed = flops / took if flops and took else roof.attainable
        figures = roof.intensity, speed, roof.bound, bool(flops and took), speed > roof.attainable
        points_by_figures.setdefault(figures, []).append(row)
    points: list[RooflinePoint] = []
    for (intensity, speed, bound, measured, is_above), rows in points_by_figures.items():
        rows.sort(key=lambda row: -(row.share or 0.0))
        of_point = tuple(row.number for row in rows)
        points.append(RooflinePoint(of_point, intensity, speed, bound, rows[0].share or 0.0, measured, is_above))
    return sorted(points, key=lambda point: point.share), without


def roofline_ceilings(ranking: Ranking, numbers: Sequence[int], device: DevicePeaks) -> list[tuple[str, float]]:
    """Return the peaks in FLOP/s that apply to these kernels, labelled by dtype (`tf32` for float32 products that run
    so) and unit, highest first."""
    peaks: dict[str, float] = {}
    for row in ranking.rows(numbers):
        if row.roof is not None and row.roof.peak:
            label = f"{row.kernel.dtype} vector"
            if row.kernel.uses_matrix_units:
                label = f"{device.rate(row.kernel.dtype, row.kernel.precision or 'default')} matrix"
            peaks[label] = row.roof.peak
    if not peaks:
        peak = device.peak("f32", matrix=False) or device.peak("bf16", matrix=True)
        peaks = {"peak": peak} if peak else {}
    return sorted(peaks.items(), key=lambda item: -item[1])


LARGE = 16 << 20
"""Characters of HLO text from which on kernels are printed while they are read, with the notices last."""


@frozen
class KernelOptions:
    """Which kernels are listed, and in which order."""

    sort: str = ""
    """A column. Empty: the order of execution, or the largest share first if there is a `top`."""
    top: int | None = None
    """Most kernels in the list; None for all."""

    @property
    def column(self) -> str:
        """Name of the column that the kernels are sorted by."""
        return self.sort or ("share" if self.top is not None else "order")


def release_each(rows: Iterable[Ranked]) -> Iterator[Ranked]:
    """Yield the rows, and release the kernel of each once the next one is requested."""
    for row in rows:
        yield row
        row.kernel.release()


def rows_of(
    module: Module,
    machine: Machine | None,
    choice: KernelOptions = KernelOptions(),
    *,
    measured: Mapping[str, MeasuredKernel] | None = None,
    keep: bool = False,
) -> Iterator[Ranked]:
    """Return the rows of the kernels that `choice` selects. In the order of execution of a large module, a row comes as
    soon as its kernel is read; it then has no share of all kernels. The module does not keep these kernels unless
    `keep` is set. `measured` maps names to what a capture has of kernels, and of loops, branches and calls."""
    links = None
    if machine is not None:
        from jaxprof.devices.absent.least_time import exchanges

        links = exchanges(module, machine)
    if choice.column == "order" and len(module.text) > LARGE and not measured:
        ceilings = KernelCeilings(machine, links)
        every = kernels(module) if keep or links is not None else stream(module)
        return islice((ceilings.row(number, kernel) for number, kernel in enumerate(every)), choice.top)
    listed = with_running(module, measured) if measured else kernels(module)
    ranking = Ranking(listed, machine, measured, links)
    return ranking.rows(sort_kernels(ranking, range(len(ranking)), choice.column)[: choice.top])
