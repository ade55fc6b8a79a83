"""Comparison of the kernels of two modules: which are new, gone or changed, and what changed.

Kernels are paired whatever XLA named them. Equal kernels are paired first, by everything that leads to them or follows
them. Then come kernels that mostly do the same operations of the program, and then those with the same label, or with
the same position between other paired kernels. If kernels were merged or split, all but one are gone or new.

If calls of both programs were captured, each row has its part of the difference of the totals, and the parts add up to
it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from jaxprof.analysis.kernels import MeasuredKernel
from jaxprof.base.grouping import pair_up
from jaxprof.base.values import frozen
from jaxprof.findings.compare import Difference
from jaxprof.hlo.fingerprint import NUMBERS, Fingerprints, settings_of
from jaxprof.hlo.kernels.flow import Flow, Passage
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.kernels.kinds import instructions_in
from jaxprof.hlo.text.model import Module

KernelStatus: TypeAlias = Literal["same", "changed", "new", "gone", "outside"]
"""Status of a kernel. `outside` means that a capture has it, but no HLO describes it: its program's HLO has no such
kernel, or is missing."""
_PROGRAM = re.compile(r"^(?:pjit|jit|pmap)\([^()]*\)/")
_MOST_FOLLOWED = 20_000
"""Largest number of kernels for which the arrays between them are followed."""
_MOST_COMPARED = 1_000
"""Largest number of unpaired kernels of a side whose operations are compared."""
_ENOUGH = 0.5
"""Share of its operations that a kernel must have in common with its partner."""
_NO_WORK = frozenset({"parameter", "constant", "broadcast", "iota", "tuple", "get-tuple-element", "bitcast"})

_Key: TypeAlias = Callable[[Kernel], Hashable]
_ORDER = ("gone", "new", "changed", "same", "outside")


KernelChange: TypeAlias = Difference[str | float]
"""One difference in a kernel that has changed: `kind`, `dtype`, `precision`, `target`, `shape`, `operands`, `count`,
`flops`, `bytes`, `operations` (those that only one side has), `settings` (attributes, such as the groups of a
collective or the dimensions of a reduction), or `inside` (the same operations with other constants or connections)."""


@frozen
class KernelDifference:
    """A kernel of one module, or a pair of both modules. Seconds are self time in a call, on one device."""

    status: KernelStatus
    before: Kernel | None
    """Kernel of the first module; None for a new kernel and for an `outside` one."""
    after: Kernel | None
    changes: tuple[KernelChange, ...] = ()
    before_measured: MeasuredKernel | None = None
    """Times in the first capture; None if it was not captured."""
    after_measured: MeasuredKernel | None = None

    @property
    def before_name(self) -> str:
        """HLO name in the first module; empty for a new kernel."""
        named = self.before or self.before_measured
        return named.name if named is not None else ""

    @property
    def after_name(self) -> str:
        """HLO name in the second module; empty for a kernel that is gone."""
        named = self.after or self.after_measured
        return named.name if named is not None else ""

    @property
    def name(self) -> str:
        """Name in the second module; for a gone kernel, in the first."""
        return self.after_name or self.before_name

    @property
    def kernel(self) -> Kernel | None:
        """Kernel of the second module; for a gone kernel, of the first."""
        return self.after or self.before

    @property
    def before_seconds(self) -> float | None:
        """Seconds in the first capture; None if it was not captured."""
        return self.before_measured.per_call_seconds if self.before_measured is not None else None

    @property
    def after_seconds(self) -> float | None:
        return self.after_measured.per_call_seconds if self.after_measured is not None else None

    @property
    def part_seconds(self) -> float | None:
        """Contribution to the difference of the totals: seconds after minus seconds before. A side without the kernel
        contributes 0. None if neither capture has it."""
        if self.before_seconds is None and self.after_seconds is None:
            return None
        return (self.after_seconds or 0.0) - (self.before_seconds or 0.0)

    @property
    def speed(self) -> str:
        """`slower` or `faster` if each execution in one capture took longer than each in the other; otherwise empty.
        The captures were taken at different times, so this says which kernels to look at, not why."""
        before, after = self.before_measured, self.after_measured
        if before is None or after is None or min(before.count, after.count) < 2:
            return ""
        if after.minimum_seconds > before.maximum_seconds:
            return "slower"
        return "faster" if after.maximum_seconds < before.minimum_seconds else ""


@frozen
class KernelDifferences:
    """Matched kernels of two programs."""

    rows: tuple[KernelDifference, ...]
    """Rows with the largest part of the difference first. Rows that were not captured follow: gone, new and changed
    kernels before equal ones, each in order of execution."""
    before_seconds: float | None
    """Self time of all kernels in a call on one device, in the first capture; None if no call was captured."""
    after_seconds: float | None

    @property
    def difference_seconds(self) -> float | None:
        """How much longer the kernels of a call take; None unless both sides were captured."""
        if self.before_seconds is None or self.after_seconds is None:
            return None
        return self.after_seconds - self.before_seconds

    @property
    def differ(self) -> bool:
        return any(row.status in ("new", "gone", "changed") for row in self.rows)


def kernel_differences(
    before: Module | None,
    after: Module | None,
    before_measured: Sequence[MeasuredKernel] | None,
    after_measured: Sequence[MeasuredKernel] | None,
) -> KernelDifferences | None:
    """Compare the kernels of two programs; None unless both modules or both captures exist. The modules are the
    optimised HLO, and the measured kernels those of `analysis.measured`. Times are left out unless both sides have them
    for a call."""
    has_times = _is_timed(before_measured) and _is_timed(after_measured)
    has_modules = before is not None and after is not None
    if not has_modules and not has_times:
        return None
    rows: list[KernelDifference] = []
    ours, theirs = (list(side or ()) if has_times else [] for side in (before_measured, after_measured))
    if before is not None and after is not None:
        if before.text == after.text:
            rows = [KernelDifference("same", *both) for both in zip(kernels(before), kernels(after), strict=True)]
        else:
            pairing = _Pairing(before, after)
            pairing.pair()
            rows = list(pairing.rows())
        # a module may have a name in several computations: its first kernel has the time
        old, new = ({kernel.name: kernel for kernel in reversed(side)} for side in (ours, theirs))
        rows = [
            replace(row, before_measured=old.pop(row.before_name, None), after_measured=new.pop(row.after_name, None))
            for row in rows
        ]
    took = [sum(kernel.per_call_seconds or 0.0 for kernel in side) if has_times else None for side in (ours, theirs)]
    matched = {id(kernel) for row in rows for kernel in (row.before_measured, row.after_measured)}
    ours, theirs = ([kernel for kernel in side if id(kernel) not in matched] for side in (ours, theirs))
    # ops of the captures that no HLO describes, by their names without the numbers that XLA appends
    outside = pair_up(ours, theirs, [lambda kernel: kernel.name, lambda kernel: NUMBERS.sub("", kernel.name)])
    rows += [KernelDifference("outside", None, None, (), *both) for both in outside]
    return KernelDifferences(tuple(sorted(rows, key=_rank)), *took)


def _is_timed(measured: Sequence[MeasuredKernel] | None) -> bool:
    return bool(measured) and all(kernel.per_call_seconds is not None for kernel in measured or ())


def _rank(row: KernelDifference) -> tuple[float, int, float]:
    kernel = row.kernel
    moved = (kernel.total_bytes or 0.0) if kernel is not None else 0.0
    return -abs(row.part_seconds or 0.0), _ORDER.index(row.status), -moved


def _changes(before: Kernel, after: Kernel, *, alike: bool) -> tuple[KernelChange, ...]:
    """Return what differs; empty if nothing does. Kernels with equal fingerprints can differ in how often they run."""
    if alike:
        return (Difference("count", before.count, after.count),) if before.count != after.count else ()
    looked_at: list[tuple[str, str | float | None, str | float | None]] = [
        ("kind", before.kind, after.kind),
        ("dtype", before.dtype, after.dtype),
        ("precision", before.precision, after.precision),
        ("target", before.target, after.target),
        ("shape", str(before.shape), str(after.shape)),
        ("operands", _operands(before), _operands(after)),
        ("count", before.count, after.count),
        ("flops", before.flops, after.flops),
        ("bytes", before.bytes, after.bytes),
        ("operations", *_opcode_changes(before, after)),
        ("settings", *_settings(before, after)),
    ]
    changes: list[KernelChange] = [Difference(*sides) for sides in looked_at if sides[1] != sides[2]]
    return tuple(changes) or (Difference("inside", None, None),)


def _operands(kernel: Kernel) -> str:
    return ", ".join(str(operand.shape) for operand in kernel.instruction.operand_instructions())


def _opcode_changes(before: Kernel, after: Kernel) -> tuple[str, str]:
    """Return the operations that only one of two fusions has, with their numbers, such as `2 convert, multiply`."""
    ours, theirs = (
        Counter(inner.opcode for inner in instructions_in(kernel.instruction)) for kernel in (before, after)
    )

    def text(opcodes: Counter[str]) -> str:
        listed = [each for each in sorted(opcodes.items()) if each[0] not in ("parameter", "tuple", "fusion")]
        return ", ".join(f"{count} {opcode}" if count > 1 else opcode for opcode, count in listed)

    return text(ours - theirs), text(theirs - ours)


def _settings(before: Kernel, after: Kernel) -> tuple[str, str]:
    """Return the attributes that differ, as XLA writes them; without the target, which has a change of its own, and
    without the configurations of two targets, which have nothing in common."""
    ours, theirs = settings_of(before.instruction), settings_of(after.instruction)
    elsewhere = {"custom_call_target"} if before.target == after.target else {"custom_call_target", "backend_config"}
    keys = [key for key in dict.fromkeys((*ours, *theirs)) if key not in elsewhere and ours.get(key) != theirs.get(key)]

    def text(settings: dict[str, str]) -> str:
        return ", ".join(f"{key}={settings[key]}" for key in keys if key in settings)

    return text(ours), text(theirs)


class _Pairing:
    """Pairs of the kernels of two modules, built step by step."""

    def __init__(self, before: Module, after: Module) -> None:
        self._ours, self._theirs = kernels(before), kernels(after)
        self._prints: dict[Kernel, str] = {}
        self._near: dict[Kernel, list[Kernel]] = defaultdict(list)
        """Producers and consumers of each kernel; empty in a large module."""
        self._past: dict[Kernel, int] = {}
        """Hash of each kernel and everything that leads to it; equal for kernels with equal histories."""
        self._future: dict[Kernel, int] = {}
        """Hash of each kernel and everything that follows it."""
        self._partner: dict[Kernel, Kernel] = {}
        for module in (before, after):
            fingerprints, own = module.once(Fingerprints), kernels(module)
            self._prints |= {kernel: fingerprints.of_instruction(kernel.instruction) for kernel in own}
            # One pass forwards and one backwards: a hash holds those of its producers, so that it stands for all that
            # leads to a kernel without being compared with it.
            if len(own) <= _MOST_FOLLOWED:
                passages = module.once(Flow)
                read: dict[Kernel, list[Passage]] = defaultdict(list)
                written: dict[Kernel, list[Passage]] = defaultdict(list)
                for passage in passages:
                    read[passage.consumer].append(passage)
                    written[passage.producer].append(passage)
                for kernel in own:
                    self._near[kernel] = [
                        *(one.producer for one in read[kernel]),
                        *(one.consumer for one in written[kernel]),
                    ]
                    led = [(one.number, self._past.get(one.producer)) for one in read[kernel]]
                    self._past[kernel] = hash((self._prints[kernel], *led))
                for kernel in reversed(own):
                    following = [(one.number, self._future.get(one.consumer, 0)) for one in written[kernel]]
                    self._future[kernel] = hash((self._prints[kernel], *sorted(following)))

    def pair(self) -> None:
        """Pair all kernels that belong together, the surest first."""
        self._pair_by(
            lambda one: (self._prints[one], self._past.get(one), self._future.get(one)),
            lambda one: (self._prints[one], self._past.get(one), _origin(one), one.count),
            lambda one: (self._prints[one], self._future.get(one), _origin(one), one.count),
            lambda one: (self._prints[one], _origin(one), one.count),
            lambda one: (self._prints[one], one.count),
            self._prints.get,
        )
        # What is left has another content. Its neighbours are known from here on, which makes similar ones sure before
        # mere names decide: kernels with at least half of their operations in common, the most similar first.
        ours, theirs = self._without_partner(self._ours), self._without_partner(self._theirs)
        candidates: list[tuple[float, bool, bool, int, Kernel, Kernel]] = []
        if max(len(ours), len(theirs)) <= _MOST_COMPARED:  # each is compared with each
            old, new = ([(at, one, _operations(one)) for at, one in enumerate(side)] for side in (ours, theirs))
            for at, one, mine in old:
                for number, other, its in new:
                    alike = 2 * (mine & its).total() / max(mine.total() + its.total(), 1)
                    if alike >= _ENOUGH:
                        # neighbouring places: next to the partner of the other, or to a kernel whose partner is
                        beside = {other, *self._near[other]}
                        elsewhere = not any(self._partner.get(near) in beside for near in self._near[one])
                        unlike_origin = _origin(one) != _origin(other)
                        candidates.append((-alike, unlike_origin, elsewhere, abs(at - number), one, other))
        for *_, one, other in sorted(candidates, key=lambda each: each[:4]):
            if one not in self._partner and other not in self._partner:
                self._join(one, other)
        self._pair_by(
            lambda one: (_origin(one), one.kind, one.name) if _origin(one) else None,
            lambda one: (_origin(one), one.kind) if _origin(one) else None,
            self._neighbour_pairs,
            lambda one: _origin(one) or None,
            # XLA names a fusion after its contents, and gives it the origin of its last operation, which may be new.
            lambda one: (one.kind, one.name),
            lambda one: None if _origin(one) else (one.kind, NUMBERS.sub("", one.name)),
        )

    def rows(self) -> Iterator[KernelDifference]:
        for kernel in self._theirs:
            one = self._partner.get(kernel)
            if one is None:
                yield KernelDifference("new", None, kernel)
            else:
                changes = _changes(one, kernel, alike=self._prints[one] == self._prints[kernel])
                yield KernelDifference("changed" if changes else "same", one, kernel, changes)
        for kernel in self._without_partner(self._ours):
            yield KernelDifference("gone", kernel, None)

    def _without_partner(self, side: Iterable[Kernel]) -> list[Kernel]:
        return [kernel for kernel in side if kernel not in self._partner]

    def _pair_by(self, *keys: _Key) -> None:
        for key in keys:  # one key at a time: what surrounds a kernel depends on earlier pairs
            for one, other in pair_up(self._without_partner(self._ours), self._without_partner(self._theirs), [key]):
                if one is not None and other is not None:
                    self._join(one, other)

    def _join(self, one: Kernel, other: Kernel) -> None:
        self._partner[one], self._partner[other] = other, one

    def _neighbour_pairs(self, kernel: Kernel) -> Hashable:
        """Return the pairs that its neighbours are in; None unless all neighbours are paired."""
        near = self._near[kernel]
        pairs = [frozenset((one, self._partner[one])) for one in near if one in self._partner]
        return (kernel.count, *pairs) if pairs and len(pairs) == len(near) else None


def _origin(kernel: Kernel) -> str:
    """Return the origin without the outermost function, whose name may differ between programs."""
    return _PROGRAM.sub("", kernel.op_name)


def _operations(kernel: Kernel) -> Counter[str]:
    """Return the program's operations that a kernel does, by name: a fusion has one for each instruction."""
    held = [each for each in instructions_in(kernel.instruction) if each.opcode not in _NO_WORK]
    names = (_PROGRAM.sub("", each.metadata.op_name) for each in held)
    return Counter(name for name in names if name)
