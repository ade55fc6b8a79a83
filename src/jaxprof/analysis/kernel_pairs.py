"""Pair the kernels of two modules, whatever XLA named them.

Equal kernels are paired first, by everything that leads to them or follows them. Then come kernels that mostly do the
same operations of the program, and then those with the same label, or with the same place between other paired kernels.
A kernel without a partner was merged into the kernels that do its operations now, or split off from the kernels that
did them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from jaxprof.hlo.analysis.fingerprint import NUMBERS, Fingerprints
from jaxprof.hlo.analysis.flow import Passage, flow_of
from jaxprof.hlo.analysis.kernels import Kernel, kernels
from jaxprof.hlo.analysis.kinds import held_in
from jaxprof.hlo.model import Module
from jaxprof.pairs import paired

_PROGRAM: Final = re.compile(r"^(?:pjit|jit|pmap)\([^()]*\)/")
_MOST_FOLLOWED: Final = 20_000
"""Largest number of kernels for which the arrays between them are followed."""
_MOST_COMPARED: Final = 1_000
"""Largest number of unpaired kernels of a side whose operations are compared."""
_ENOUGH: Final = 0.5
"""Share of its operations that a kernel must have in common with its partner, or with what it was merged into."""
_NO_WORK: Final = frozenset({"parameter", "constant", "broadcast", "iota", "tuple", "get-tuple-element", "bitcast"})

_Key: TypeAlias = Callable[[Kernel], Hashable]


@dataclass(frozen=True, slots=True)
class KernelPair:
    """A kernel of one module, or a pair of both modules."""

    before: Kernel | None
    after: Kernel | None
    alike: bool
    """Whether the fingerprints are equal."""
    moved: tuple[str, ...] = ()
    """For a gone kernel, the kernels of the second module that do its operations now; for a new kernel, those of the
    first module that did them."""


def kernel_pairs(before: Module, after: Module) -> list[KernelPair]:
    """Return pairs in the order of the second module, with unpaired kernels of the first module at the end."""
    if before.text == after.text:
        return [KernelPair(*both, alike=True) for both in zip(kernels(before), kernels(after), strict=True)]
    pairing = _Pairing(_Side(before), _Side(after))
    pairing.pair()
    return list(pairing.rows())


class _Side:
    """Kernels of one module, with the properties by which they are paired."""

    def __init__(self, module: Module) -> None:
        self.kernels = kernels(module)
        fingerprints = Fingerprints(module)
        self.prints = {kernel: fingerprints.of_instruction(kernel.instruction) for kernel in self.kernels}
        self.near: dict[Kernel, list[Kernel]] = {}
        """Producers and consumers of each kernel; empty in a large module."""
        self.past: dict[Kernel, int] = {}
        """Hash of each kernel and everything that leads to it; equal for kernels with equal histories."""
        self.future: dict[Kernel, int] = {}
        """Hash of each kernel and everything that follows it."""
        if len(self.kernels) <= _MOST_FOLLOWED:
            self._follow(flow_of(module).passages)

    def _follow(self, passages: Iterable[Passage]) -> None:
        read: dict[Kernel, list[Passage]] = defaultdict(list)
        written: dict[Kernel, list[Passage]] = defaultdict(list)
        for passage in passages:
            read[passage.consumer].append(passage)
            written[passage.producer].append(passage)
        for kernel in self.kernels:
            self.near[kernel] = [*(one.producer for one in read[kernel]), *(one.consumer for one in written[kernel])]
            led = [(one.number, self.past.get(one.producer)) for one in read[kernel]]
            self.past[kernel] = hash((self.prints[kernel], *led))
        for kernel in reversed(self.kernels):
            following = [(one.number, self.future.get(one.consumer, 0)) for one in written[kernel]]
            self.future[kernel] = hash((self.prints[kernel], *sorted(following)))


class _Pairing:
    """Pairs of two sides, built step by step."""

    def __init__(self, ours: _Side, theirs: _Side) -> None:
        self._ours, self._theirs = ours, theirs
        self._side = {**dict.fromkeys(ours.kernels, ours), **dict.fromkeys(theirs.kernels, theirs)}
        self._partner: dict[Kernel, Kernel] = {}

    def pair(self) -> None:
        """Pair all kernels that belong together, the surest first."""
        self._pair_by(
            lambda one: (self._print(one), self._side[one].past.get(one), self._side[one].future.get(one)),
            lambda one: (self._print(one), self._side[one].past.get(one), _origin(one), one.count),
            lambda one: (self._print(one), self._side[one].future.get(one), _origin(one), one.count),
            lambda one: (self._print(one), _origin(one), one.count),
            lambda one: (self._print(one), one.count),
            self._print,
        )
        for one, other in self._similar_kernels():
            self._join(one, other)
        self._pair_by(
            lambda one: (_origin(one), one.kind, one.name) if _origin(one) else None,
            lambda one: (_origin(one), one.kind) if _origin(one) else None,
            self._place,
            lambda one: _origin(one) or None,
            # XLA names a fusion after its contents, and gives it the origin of its last operation, which may be new.
            lambda one: (one.kind, one.name),
            lambda one: None if _origin(one) else (one.kind, NUMBERS.sub("", one.name)),
        )

    def rows(self) -> Iterator[KernelPair]:
        """Yield all kernels of both sides."""
        gone = self._unpaired(self._ours)
        into, out_of = self._moves(gone, self._unpaired(self._theirs))
        for kernel in self._theirs.kernels:
            one = self._partner.get(kernel)
            alike = one is not None and self._print(one) == self._print(kernel)
            yield KernelPair(one, kernel, alike, tuple(out_of.get(kernel, ())))
        for kernel in gone:
            yield KernelPair(kernel, None, alike=False, moved=tuple(into.get(kernel, ())))

    def _print(self, kernel: Kernel) -> str:
        return self._side[kernel].prints[kernel]

    def _unpaired(self, side: _Side) -> list[Kernel]:
        return [kernel for kernel in side.kernels if kernel not in self._partner]

    def _pair_by(self, *keys: _Key) -> None:
        for key in keys:  # one key at a time: the place of a kernel depends on earlier pairs
            for one, other in paired(self._unpaired(self._ours), self._unpaired(self._theirs), [key]):
                if one is not None and other is not None:
                    self._join(one, other)

    def _join(self, one: Kernel, other: Kernel) -> None:
        self._partner[one], self._partner[other] = other, one

    def _place(self, kernel: Kernel) -> Hashable:
        """Return the pairs that its neighbours are in; None unless all neighbours are paired."""
        near = self._side[kernel].near.get(kernel, [])
        pairs = [frozenset((one, self._partner[one])) for one in near if one in self._partner]
        return (kernel.count, *pairs) if pairs and len(pairs) == len(near) else None

    def _is_beside(self, kernel: Kernel, other: Kernel) -> bool:
        """Return whether kernels of both sides have neighbouring places. They do if the first one is next to the
        partner of the second, or next to a kernel whose partner is next to the second."""
        near = self._side[kernel].near.get(kernel, [])
        beside = {other, *self._side[other].near.get(other, ())}
        return any(self._partner.get(one) in beside for one in near)

    def _similar_kernels(self) -> Iterator[tuple[Kernel, Kernel]]:
        """Yield kernels with at least half of their operations in common, the most similar first."""
        ours, theirs = self._unpaired(self._ours), self._unpaired(self._theirs)
        if max(len(ours), len(theirs)) > _MOST_COMPARED:
            return
        old, new = ([(at, one, _operations(one)) for at, one in enumerate(side)] for side in (ours, theirs))
        candidates: list[tuple[float, bool, bool, int, Kernel, Kernel]] = []
        for at, one, mine in old:
            for number, other, theirs_operations in new:
                alike = 2 * (mine & theirs_operations).total() / max(mine.total() + theirs_operations.total(), 1)
                if alike >= _ENOUGH:
                    elsewhere = not self._is_beside(one, other)
                    candidates.append((-alike, _origin(one) != _origin(other), elsewhere, abs(at - number), one, other))
        for *_, one, other in sorted(candidates, key=lambda each: each[:4]):
            if one not in self._partner and other not in self._partner:
                yield one, other

    def _moves(
        self, gone: Sequence[Kernel], new: Sequence[Kernel]
    ) -> tuple[dict[Kernel, list[str]], dict[Kernel, list[str]]]:
        """Return, by kernel, the names of those that do a gone kernel's operations now, and of those that did a new
        kernel's."""
        pairs = [(one, self._partner[one]) for one in self._ours.kernels if one in self._partner]
        changed = [(one, other) for one, other in pairs if self._print(one) != self._print(other)]
        if max(len(gone), len(new), len(changed)) > _MOST_COMPARED:
            return {}, {}
        gained = {other: _operations(other) - _operations(one) for one, other in changed}
        lost = {one: _operations(one) - _operations(other) for one, other in changed}
        into = self._holders(gone, {**gained, **{other: _operations(other) for other in new}})
        left = [kernel for kernel in new if kernel.name not in chain.from_iterable(into.values())]
        return into, self._holders(left, {**lost, **{one: _operations(one) for one in gone if one not in into}})

    def _holders(self, kernels: Iterable[Kernel], holding: dict[Kernel, Counter[str]]) -> dict[Kernel, list[str]]:
        """Return, for each kernel, those of the other side that hold at least half of its operations."""
        holders: dict[Kernel, list[str]] = {}
        for kernel in kernels:
            mine = _operations(kernel)
            for other, theirs in holding.items():
                if mine and (mine & theirs).total() >= _ENOUGH * mine.total() and self._is_beside(kernel, other):
                    holders.setdefault(kernel, []).append(other.name)
        return holders


def _origin(kernel: Kernel) -> str:
    """Return the origin without the outermost function, whose name may differ between programs."""
    return _PROGRAM.sub("", kernel.op_name)


def _operations(kernel: Kernel) -> Counter[str]:
    """Return the program's operations that a kernel does, by name: a fusion has one for each instruction."""
    held = [each for each in held_in(kernel.instruction) if each.opcode not in _NO_WORK]
    names = (_PROGRAM.sub("", each.metadata.op_name) for each in held)
    return Counter(name for name in names if name)
