"""The kernels of two modules in pairs, whatever XLA called them, and what became of those that have no partner.

First those that are alike are paired, by all that leads to them or follows them; then those that do mostly the same
operations of the program; then those that have the same label, or the same place between others that are paired. A
kernel without partner whose operations others do now was merged into them; one whose operations others did was split
off.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from jaxprof.analysis.difference import paired
from jaxprof.hlo.analysis.fingerprint import Fingerprints
from jaxprof.hlo.analysis.flow import Passage, flow_of
from jaxprof.hlo.analysis.kernels import Kernel, kernels
from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.model import Module

NUMBERS: Final = re.compile(r"(?:\.\d+|\.clone|\.remat\d*)+$")
"""What XLA appends to names."""
_PROGRAM: Final = re.compile(r"^(?:pjit|jit|pmap)\([^()]*\)/")
_MOST_FOLLOWED: Final = 20_000
"""Kernels up to which the arrays between them are followed."""
_MOST_HELD_AGAINST: Final = 1_000
"""Kernels without partner of a side up to which their operations are compared."""
_ENOUGH: Final = 0.5
"""Share of its operations that a kernel has in common with its partner, or with what it was merged into."""
_NO_WORK: Final = frozenset({"parameter", "constant", "broadcast", "iota", "tuple", "get-tuple-element", "bitcast"})

_Key: TypeAlias = Callable[[Kernel], Hashable]


@dataclass(frozen=True, slots=True)
class KernelPair:
    """One kernel of either module, or one of each that belong together."""

    before: Kernel | None
    after: Kernel | None
    alike: bool
    """Whether their fingerprints are equal."""
    moved: tuple[str, ...] = ()
    """Of a kernel that is gone those of the second module that do its operations now; of a new one those of the first
    that did them."""


def kernel_pairs(before: Module, after: Module) -> list[KernelPair]:
    """Pairs in the order of the second module, kernels of the first that have none at the end."""
    if before.text == after.text:
        return [KernelPair(*both, alike=True) for both in zip(kernels(before), kernels(after), strict=True)]
    pairing = _Pairing(_Side(before), _Side(after))
    pairing.pair()
    return list(pairing.rows())


class _Side:
    """The kernels of one module with what they are paired by."""

    def __init__(self, module: Module) -> None:
        self.kernels = kernels(module)
        fingerprints = Fingerprints(module)
        self.prints = {kernel: fingerprints.of_instruction(kernel.instruction) for kernel in self.kernels}
        self.near: dict[Kernel, list[Kernel]] = {}
        """The kernels that each reads from and writes for; empty in a large module."""
        self.past: dict[Kernel, int] = {}
        """The same number for kernels that equal kernels lead to, in the same way."""
        self.future: dict[Kernel, int] = {}
        """The same number for kernels that equal kernels follow."""
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
    """The pairs of two sides while they are looked for."""

    def __init__(self, ours: _Side, theirs: _Side) -> None:
        self._ours, self._theirs = ours, theirs
        self._side = {**dict.fromkeys(ours.kernels, ours), **dict.fromkeys(theirs.kernels, theirs)}
        self._partner: dict[Kernel, Kernel] = {}

    def pair(self) -> None:
        """Pairs as many as belong together, the surest first."""
        self._by(
            lambda one: (self._print(one), self._side[one].past.get(one), self._side[one].future.get(one)),
            lambda one: (self._print(one), self._side[one].past.get(one), op_name(one), one.count),
            lambda one: (self._print(one), self._side[one].future.get(one), op_name(one), one.count),
            lambda one: (self._print(one), op_name(one), one.count),
            lambda one: (self._print(one), one.count),
            self._print,
        )
        for one, other in self._doing_the_same():
            self._join(one, other)
        self._by(
            lambda one: (op_name(one), one.kind, one.name) if op_name(one) else None,
            lambda one: (op_name(one), one.kind) if op_name(one) else None,
            self._place,
            lambda one: op_name(one) or None,
            # XLA names a fusion after what is in it, and gives it the origin of its last operation, which may be new.
            lambda one: (one.kind, one.name),
            lambda one: None if op_name(one) else (one.kind, NUMBERS.sub("", one.name)),
        )

    def rows(self) -> Iterator[KernelPair]:
        """All kernels of both sides."""
        gone = self._left(self._ours)
        into, out_of = self._moves(gone, self._left(self._theirs))
        for kernel in self._theirs.kernels:
            one = self._partner.get(kernel)
            alike = one is not None and self._print(one) == self._print(kernel)
            yield KernelPair(one, kernel, alike, tuple(out_of.get(kernel, ())))
        for kernel in gone:
            yield KernelPair(kernel, None, alike=False, moved=tuple(into.get(kernel, ())))

    def _print(self, kernel: Kernel) -> str:
        return self._side[kernel].prints[kernel]

    def _left(self, side: _Side) -> list[Kernel]:
        return [kernel for kernel in side.kernels if kernel not in self._partner]

    def _by(self, *keys: _Key) -> None:
        for key in keys:  # one at a time: the place of a kernel depends on what was paired before
            for one, other in paired(self._left(self._ours), self._left(self._theirs), [key]):
                if one is not None and other is not None:
                    self._join(one, other)

    def _join(self, one: Kernel, other: Kernel) -> None:
        self._partner[one], self._partner[other] = other, one

    def _place(self, kernel: Kernel) -> Hashable:
        """The pairs that its neighbours are in; None unless all of them are in one."""
        near = self._side[kernel].near.get(kernel, [])
        pairs = [frozenset((one, self._partner[one])) for one in near if one in self._partner]
        return (kernel.count, *pairs) if pairs and len(pairs) == len(near) else None

    def _is_beside(self, kernel: Kernel, other: Kernel) -> bool:
        """Whether a kernel of one side had its place beside one of the other side: next to its partner, or to
        something whose partner is next to it."""
        near = self._side[kernel].near.get(kernel, [])
        beside = {other, *self._side[other].near.get(other, ())}
        return any(self._partner.get(one) in beside for one in near)

    def _doing_the_same(self) -> Iterator[tuple[Kernel, Kernel]]:
        """Kernels that have at least half of their operations in common, those with most first."""
        ours, theirs = self._left(self._ours), self._left(self._theirs)
        if max(len(ours), len(theirs)) > _MOST_HELD_AGAINST:
            return
        old, new = ([(at, one, operations(one)) for at, one in enumerate(side)] for side in (ours, theirs))
        found: list[tuple[float, bool, bool, int, Kernel, Kernel]] = []
        for at, one, mine in old:
            for number, other, yours in new:
                alike = 2 * (mine & yours).total() / max(mine.total() + yours.total(), 1)
                if alike >= _ENOUGH:
                    elsewhere = not self._is_beside(one, other)
                    found.append((-alike, op_name(one) != op_name(other), elsewhere, abs(at - number), one, other))
        for *_, one, other in sorted(found, key=lambda each: each[:4]):
            if one not in self._partner and other not in self._partner:
                yield one, other

    def _moves(
        self, gone: Sequence[Kernel], new: Sequence[Kernel]
    ) -> tuple[dict[Kernel, list[str]], dict[Kernel, list[str]]]:
        """For kernels that are gone those that do their operations now, for new ones those that did them, by name."""
        pairs = [(one, self._partner[one]) for one in self._ours.kernels if one in self._partner]
        changed = [(one, other) for one, other in pairs if self._print(one) != self._print(other)]
        if max(len(gone), len(new), len(changed)) > _MOST_HELD_AGAINST:
            return {}, {}
        gained = {other: operations(other) - operations(one) for one, other in changed}
        lost = {one: operations(one) - operations(other) for one, other in changed}
        into = self._holders(gone, {**gained, **{other: operations(other) for other in new}})
        left = [kernel for kernel in new if kernel.name not in chain.from_iterable(into.values())]
        return into, self._holders(left, {**lost, **{one: operations(one) for one in gone if one not in into}})

    def _holders(self, kernels: Iterable[Kernel], holding: dict[Kernel, Counter[str]]) -> dict[Kernel, list[str]]:
        """Those of the other side that hold at least half of the operations of each."""
        found: dict[Kernel, list[str]] = {}
        for kernel in kernels:
            mine = operations(kernel)
            for other, theirs in holding.items():
                if mine and (mine & theirs).total() >= _ENOUGH * mine.total() and self._is_beside(kernel, other):
                    found.setdefault(kernel, []).append(other.name)
        return found


def op_name(kernel: Kernel) -> str:
    """Where it comes from, without the outermost function, whose name may be another one in each program."""
    return _PROGRAM.sub("", kernel.op_name)


def operations(kernel: Kernel) -> Counter[str]:
    """The operations of the program that a kernel does, by their names: a fusion has one for each instruction."""
    instruction = kernel.instruction
    held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
    names = (_PROGRAM.sub("", each.metadata.op_name) for each in held if each.opcode not in _NO_WORK)
    return Counter(name for name in names if name)
