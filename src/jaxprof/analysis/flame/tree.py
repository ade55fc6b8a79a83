"""Frames inside frames, each with an amount: what a flame graph (icicle) is drawn from, on a screen, a page or as text.

Amounts are whole numbers, picoseconds or bytes, so that sums are exact: a frame is its own amount and those of the
frames inside it, and the root is everything. A tree may have half a million frames; it is a few columns of numbers, in
which a parent stands before its children, and the children of a frame are sorted when they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ROOT: Final = 0
ALL: Final = "all"


class FlameFrame(NamedTuple):
    """A frame of the tree or, with a `size`, several that are too small to be drawn one by one: so many of the
    children of `node`, from the one in place `first` on, the largest being in place 0."""

    node: int
    first: int = 0
    size: int = 0


WHOLE: Final = FlameFrame(ROOT)


class FlameTree:
    """The frames as columns. `Branches` makes one."""

    def __init__(
        self, names: list[str], parents: list[int], own: list[int], counts: list[int], entries: list[int]
    ) -> None:
        self.names: Final = names
        self.parents: Final = parents
        """Of the root -1."""
        self.own: Final = own
        self.counts: Final = counts
        """How often what ends in a frame was entered; 0 if unknown."""
        self.entries: Final = entries
        """The number of the first entry (a stack, a kernel) that ends in the frame; -1 if none does."""
        self.totals: Final = list(own)
        self._inside: Final[list[list[int] | None]] = [None] * len(names)
        self._sorted: Final[set[int]] = set()
        totals, inside = self.totals, self._inside
        for node in range(len(names) - 1, ROOT, -1):
            parent = parents[node]
            totals[parent] += totals[node]
            children = inside[parent]
            if children is None:
                inside[parent] = [node]
            else:
                children.append(node)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total(self) -> int:
        """Of everything."""
        return self.totals[ROOT]

    def inside(self, node: int) -> Sequence[int]:
        """The frames directly inside one, the largest first."""
        children = self._inside[node]
        if children is None:
            return ()
        if node not in self._sorted:
            children.reverse()  # equal ones stay in the order in which they came
            children.sort(key=self.totals.__getitem__, reverse=True)
            self._sorted.add(node)
        return children

    def frames_in(self, frame: FlameFrame) -> Sequence[int]:
        """The frames directly inside a frame, the largest first; of several small ones, these themselves."""
        children = self.inside(frame.node)
        return children[frame.first : frame.first + frame.size] if frame.size else children

    def total_of(self, frame: FlameFrame) -> int:
        """The amount of a frame with all that is inside it."""
        if not frame.size:
            return self.totals[frame.node]
        return sum(map(self.totals.__getitem__, self.frames_in(frame)))

    def own_of(self, frame: FlameFrame) -> int:
        """The amount that is inside no other frame."""
        return 0 if frame.size else self.own[frame.node]

    def name_of(self, frame: FlameFrame) -> str:
        """Its name; `12 smaller` of several."""
        return f"{frame.size} smaller" if frame.size else self.names[frame.node]

    def share_of(self, frame: FlameFrame) -> float:
        """Of everything, in 0..1."""
        return self.total_of(frame) / self.total if self.total else 0.0

    def around(self, frame: FlameFrame) -> int | None:
        """The frame that it is directly inside; None for the root."""
        if frame.size:
            return frame.node
        return self.parents[frame.node] if frame.node != ROOT else None

    def path(self, node: int) -> list[int]:
        """The frames from below the root down to one; empty for the root."""
        found: list[int] = []
        while node != ROOT:
            found.append(node)
            node = self.parents[node]
        return found[::-1]

    def find(self, names: Iterable[str]) -> int:
        """The frame at a path of names, as far as there is one."""
        at = ROOT
        for name in names:
            inner = next((child for child in self.inside(at) if self.names[child] == name), None)
            if inner is None:
                return at
            at = inner
        return at

    def in_order(self, least: int = 1) -> Iterator[tuple[int, int]]:
        """The frames of at least that amount with their depths: parents before their children, larger ones first."""
        pending = [(ROOT, 0)]
        while pending:
            node, depth = pending.pop()
            yield node, depth
            pending += [
                (child, depth + 1) for child in reversed(self.inside(node)) if self.totals[child] >= least
            ]  # fmt: skip

    def matching(self, test: Callable[[str], object]) -> FlameMatches:
        """The frames whose names pass the test."""
        marked = bytearray(bool(test(name)) for name in self.names)
        marked[ROOT] = 0
        holding, covered = bytearray(len(marked)), bytearray(len(marked))
        parents, amount = self.parents, 0
        for node in range(1, len(marked)):
            parent = parents[node]
            covered[node] = covered[parent] or marked[parent]
            if marked[node] and not covered[node]:
                amount += self.totals[node]
        for node in range(len(marked) - 1, ROOT, -1):
            if marked[node] or holding[node]:
                holding[parents[node]] = 1
        return FlameMatches(self, marked, holding, sum(marked), amount)


@dataclass(frozen=True, slots=True)
class FlameMatches:
    """The frames that a search found."""

    tree: FlameTree
    _marked: bytearray
    _holding: bytearray
    count: int
    amount: int
    """Of all of them together; what is inside another match counts once."""

    @property
    def share(self) -> float:
        """Of everything, in 0..1."""
        return self.amount / self.tree.total if self.tree.total else 0.0

    def marks(self, frame: FlameFrame) -> bool:
        """Whether a frame matches; of several small ones, whether one of them or of those inside them does."""
        if not frame.size:
            return bool(self._marked[frame.node])
        return any(self._marked[node] or self._holding[node] for node in self.tree.frames_in(frame))

    def largest_first(self) -> list[int]:
        """The matches, those with most first."""
        nodes = (node for node, marked in enumerate(self._marked) if marked)
        return sorted(nodes, key=lambda node: -self.tree.totals[node])


@dataclass(slots=True)
class Branches:
    """A tree that grows."""

    names: list[str] = field(default_factory=lambda: [ALL])
    parents: list[int] = field(default_factory=lambda: [-1])
    own: list[int] = field(default_factory=lambda: [0])
    counts: list[int] = field(default_factory=lambda: [0])
    entries: list[int] = field(default_factory=lambda: [-1])
    _by_key: dict[tuple[int, Hashable], int] = field(default_factory=dict)

    def branch(self, parent: int, name: str, key: Hashable = None) -> int:
        """The frame of that name (or key) inside another, made where there is none."""
        found = self._by_key.get((parent, key or name))
        if found is None:
            found = self._by_key[parent, key or name] = len(self.names)
            self.add(parent, [name], [0], [0], [-1])
        return found

    def end(self, node: int, amount: int, count: int, entry: int) -> None:
        """Adds to what ends in a frame."""
        self.own[node] += amount
        self.counts[node] += count
        if self.entries[node] < 0:
            self.entries[node] = entry

    def add(
        self,
        parents: int | Sequence[int],
        names: Sequence[str],
        amounts: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[int],
    ) -> None:
        """Adds many frames at once, each its own even where another has its name."""
        self.parents += [parents] * len(names) if isinstance(parents, int) else parents
        self.names += names
        self.own += amounts
        self.counts += counts
        self.entries += entries

    def tree(self) -> FlameTree:
        """The tree as it is now."""
        return FlameTree(self.names, self.parents, self.own, self.counts, self.entries)
