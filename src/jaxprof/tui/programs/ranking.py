"""Kernels as the rows of a table: what each weighs, which are shown, in which order, and in which groups.

The weight is the measured time where there is one, else the least time under the device's ceilings, else the bytes
moved; a share is of the weights that are known. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis import Kernel, roofline

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device, Roofline

BASES = {
    "measured": "measured time",
    "least": "least time (estimate)",
    "bytes": "bytes moved (estimate)",
}
"""What shares can be of, in words."""
GROUPINGS = {
    "none": "not grouped",
    "kind": "by kind",
    "source": "by source line",
    "scope": "by named scope",
    "direction": "forward and backward",
}
"""The ways of grouping, in words."""
_UNNAMED = "(no named scope)"
_NOWHERE = "(no source line)"
_NEITHER = "(neither: no gradient in its path)"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A kernel with its place among the others. Figures are of all its executions; None is unknown."""

    number: int
    """Its place in the order of execution, from 0."""
    kernel: Kernel
    weight: float | None
    share: float | None
    """Of the sum of all weights, in 0..1."""
    least_seconds: float | None
    measured_seconds: float | None
    roof: Roofline | None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it in its module: computation and name."""
        return self.kernel.computation, self.kernel.name

    @property
    def source(self) -> str:
        """`model.py:88`, or empty."""
        place = self.kernel.source
        return f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The functions and named scopes that it came from, outermost first."""
        path = self.kernel.path
        return (*path.functions[:1], *path.scopes)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All kernels of a program, in the order of execution, and what their shares are of."""

    kernels: tuple[Ranked, ...] = ()
    basis: str = "bytes"
    device: Device | None = None


def rank(kernels: Sequence[Kernel], device: Device | None, measured: Mapping[str, float] | None = None) -> Ranking:
    """The kernels with their weights. `measured` is seconds of one run of the program, by the kernel's name."""
    roofs = [roofline(kernel, device) if device is not None else None for kernel in kernels]
    leasts = [
        roof.least_seconds * kernel.count if roof and roof.least_seconds is not None and kernel.count is not None
        else None
        for kernel, roof in zip(kernels, roofs, strict=True)
    ]  # fmt: skip
    times = [measured.get(kernel.name) if measured else None for kernel in kernels]
    weights: Sequence[float | None]
    if any(time is not None for time in times):
        basis, weights = "measured", times
    elif any(least is not None for least in leasts):
        basis, weights = "least", leasts
    else:
        basis, weights = "bytes", [kernel.total_bytes for kernel in kernels]
    total = sum(weight for weight in weights if weight is not None)
    ranked = [
        Ranked(number, kernel, weight, weight / total if weight is not None and total else None, least, time, roof)
        for number, (kernel, weight, least, time, roof) in enumerate(
            zip(kernels, weights, leasts, times, roofs, strict=True)
        )
    ]
    return Ranking(tuple(ranked), basis, device)


Key = Callable[[Ranked], "float | str | None"]
SORTS: dict[str, tuple[str, Key, bool]] = {
    "share": ("share", lambda one: one.weight, True),
    "measured": ("time", lambda one: one.measured_seconds, True),
    "least": ("least", lambda one: one.least_seconds, True),
    "name": ("kernel", lambda one: one.kernel.name.casefold(), False),
    "kind": ("kind", lambda one: one.kernel.kind.casefold(), False),
    "times": ("times", lambda one: one.kernel.count, True),
    "flops": ("FLOPs", lambda one: one.kernel.total_flops, True),
    "bytes": ("bytes", lambda one: one.kernel.total_bytes, True),
    "intensity": ("FLOP/B", lambda one: one.kernel.intensity, True),
    "bound": ("bound", lambda one: one.roof.bound if one.roof is not None else None, False),
    "source": ("source", lambda one: one.source or None, False),
    "order": ("order", lambda one: one.number, False),
}
"""The columns that can be sorted by: title, value, whether the largest comes first."""


def ordered(rows: Sequence[Ranked], column: str, *, turned: bool = False) -> list[Ranked]:
    """Sorted by a column; `turned` is the other way round. Unknown values are last either way."""
    _, value, largest_first = SORTS[column]
    known = [row for row in rows if value(row) not in (None, "")]
    unknown = [row for row in rows if value(row) in (None, "")]
    known.sort(key=lambda row: value(row), reverse=largest_first != turned)  # type: ignore[arg-type,return-value]
    return known + unknown


def filtered(rows: Sequence[Ranked], text: str) -> list[Ranked]:
    """Rows that have all the words of `text`: anywhere, or where `kind:`, `scope:`, `file:` or `name:` says."""
    found = list(rows)
    for word in text.casefold().split():
        field_name, colon, wanted = word.partition(":")
        look = _FIELDS.get(field_name) if colon else None
        if look is None:
            found = [row for row in found if any(word in one(row).casefold() for one in _FIELDS.values())]
        elif wanted:
            found = [row for row in found if wanted in look(row).casefold()]
    return found


_FIELDS: dict[str, Callable[[Ranked], str]] = {
    "name": lambda row: row.kernel.name,
    "kind": lambda row: f"{row.kernel.kind} {row.kernel.opcode} {row.kernel.target}",
    "scope": lambda row: " ".join(origin.op_name for origin in row.kernel.origins),
    "file": lambda row: " ".join(
        f"{origin.source.file}:{origin.source.line}" for origin in row.kernel.origins if origin.source is not None
    ),
}


@dataclass(slots=True)
class Group:
    """Several kernels under one name, with what they are together."""

    path: tuple[str, ...]
    members: list[Ranked] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    """Only of scopes: those inside this one. `members` are then those directly in it."""

    @property
    def all(self) -> list[Ranked]:
        """The kernels in it and in the groups inside it."""
        return [*self.members, *(row for group in self.groups for row in group.all)]

    def total(self, value: Callable[[Ranked], float | None]) -> float | None:
        """The sum of what is known; None where nothing is."""
        known = [number for row in self.all if (number := value(row)) is not None]
        return sum(known) if known else None


def grouped(rows: Sequence[Ranked], by: str) -> list[Group]:
    """Groups, those of the greatest weight first; their members keep the order of `rows`."""
    top = Group(())
    known: dict[tuple[str, ...], Group] = {(): top}
    paths = [_path(row, by) for row in rows]
    if by == "scope":
        paths = _without_the_one_function(paths)
    for row, path in zip(rows, paths, strict=True):
        for depth in range(1, len(path) + 1):
            if path[:depth] not in known:
                made = known[path[:depth]] = Group(path[:depth])
                known[path[: depth - 1]].groups.append(made)
        known[path].members.append(row)
    for group in known.values():
        group.groups.sort(key=lambda one: -(one.total(lambda row: row.weight) or 0.0))
    return top.groups


def _path(row: Ranked, by: str) -> tuple[str, ...]:
    if by == "kind":
        return (row.kernel.kind,)
    if by == "source":
        place = row.kernel.source
        return (f"{place.file}:{place.line}" if place is not None else _NOWHERE,)
    if by == "direction":
        return (row.kernel.path.direction or _NEITHER,)
    return row.scopes or (_UNNAMED,)


def _without_the_one_function(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Where all came from one function, as they do in most programs, it tells nothing apart."""
    if len({path[0] for path in paths if path != (_UNNAMED,)}) != 1:
        return paths
    return [path[1:] or (_UNNAMED,) if path != (_UNNAMED,) else path for path in paths]
