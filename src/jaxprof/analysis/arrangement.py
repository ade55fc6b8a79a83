"""Which kernels of a program are shown, in which order, and in which groups.

A program may have half a million kernels, and this is done while somebody waits for a key: what is sorted, filtered and
grouped are the kernels' numbers, and what they came from is looked up in columns (`Ranking.origins`). Reading those
columns may take seconds; `needs_origins`, `GROUPED_BY_ORIGINS` and `SORTED_BY_ORIGINS` say what has to wait for them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.analysis.ranking import FIGURES, Ranking, scopes_of, short_place
from jaxprof.hlo.analysis.kernels import Kernel
from jaxprof.hlo.analysis.origin import op_path

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.origin import HloSourceLocation

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
                has = kinds[alike] = wanted in _kind(kernel)
            if has:
                yield number


def _kind(kernel: Kernel) -> str:
    return f"{kernel.kind} {kernel.opcode} {kernel.target}".casefold()


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
