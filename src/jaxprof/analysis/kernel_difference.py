"""The kernels of two modules compared: which are new, gone, merged, split or changed, and what changed.

`kernel_pairing` says which belong together. Where calls of both programs were captured, each row has its part in the
difference of the totals, and the parts add up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jaxprof.analysis.difference import paired
from jaxprof.analysis.kernel_pairing import NUMBERS, KernelPair, kernel_pairs
from jaxprof.analysis.measured import MeasuredKernel
from jaxprof.hlo.analysis.fingerprint import settings_of
from jaxprof.hlo.analysis.kernels import Kernel
from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.model import Module

KernelStatus: TypeAlias = Literal["same", "changed", "new", "gone", "outside"]
"""`outside`: a capture has it, and no HLO says what it does: its program's HLO has no such kernel, or is not there."""
_ORDER: Final = ("gone", "new", "changed", "same", "outside")


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One thing that is not the same in a kernel that has changed."""

    what: str
    """`kind`, `dtype`, `precision`, `target`, `shape`, `operands`, `count`, `flops`, `bytes`, `operations` (those that
    only one side has), `settings` (attributes: the groups of a collective, the dimensions of a reduction), `inside`
    (the same operations, with other constants or connected another way)."""
    before: str | float | None
    after: str | float | None


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """One kernel of either module, or one of each that belong together. Seconds are self time in a call, on one
    device."""

    status: KernelStatus
    before: Kernel | None
    """None where the first module has none, and for an `outside` one."""
    after: Kernel | None
    before_name: str
    """Its HLO name in the first module; empty for a new one."""
    after_name: str
    """Empty for one that is gone."""
    changes: tuple[KernelChange, ...] = ()
    before_measured: MeasuredKernel | None = None
    """None where it was not captured."""
    after_measured: MeasuredKernel | None = None
    moved: tuple[str, ...] = ()
    """Of one that is gone the kernels of the second module that do its operations now: it was merged into them. Of a
    new one those of the first that did them: it was split off."""

    @property
    def name(self) -> str:
        """In the second module; of one that is gone, in the first."""
        return self.after_name or self.before_name

    @property
    def kernel(self) -> Kernel | None:
        """The one of the second module; of one that is gone, that of the first."""
        return self.after or self.before

    @property
    def before_seconds(self) -> float | None:
        """None where it was not captured."""
        return self.before_measured.per_call_seconds if self.before_measured is not None else None

    @property
    def after_seconds(self) -> float | None:
        return self.after_measured.per_call_seconds if self.after_measured is not None else None

    @property
    def part_seconds(self) -> float | None:
        """What it adds to the difference of the totals, seconds after less seconds before: a side that has not seen it
        adds nothing to its total. None where neither capture has it."""
        if self.before_seconds is None and self.after_seconds is None:
            return None
        return (self.after_seconds or 0.0) - (self.before_seconds or 0.0)

    @property
    def speed(self) -> str:
        """`slower` or `faster` where each execution in one capture took longer than each in the other; else empty.

        The captures were taken at different times, so this says which kernels to look at, and not why.
        """
        before, after = self.before_measured, self.after_measured
        if before is None or after is None or min(before.count, after.count) < 2:
            return ""
        if after.minimum_seconds > before.maximum_seconds:
            return "slower"
        return "faster" if after.maximum_seconds < before.minimum_seconds else ""


@dataclass(frozen=True, slots=True)
class KernelDifferences:
    """The kernels of two programs, matched."""

    rows: tuple[KernelDifference, ...]
    """The largest part in the difference of the totals first; then those that were not captured: gone, new and changed
    ones before the same ones, each in the order of execution."""
    before_seconds: float | None
    """Self time of all kernels in a call, on a device; None where no call was captured."""
    after_seconds: float | None

    @property
    def difference_seconds(self) -> float | None:
        """How much longer the kernels of a call take; None unless both sides were captured."""
        if self.before_seconds is None or self.after_seconds is None:
            return None
        return self.after_seconds - self.before_seconds

    def of(self, *statuses: KernelStatus) -> tuple[KernelDifference, ...]:
        """The rows with one of these statuses."""
        return tuple(row for row in self.rows if row.status in statuses)

    def count(self, status: KernelStatus) -> int:
        """Number of rows with this status."""
        return sum(row.status == status for row in self.rows)

    @property
    def differ(self) -> bool:
        """Whether a kernel is new, gone or changed."""
        return any(row.status in ("new", "gone", "changed") for row in self.rows)


def kernel_differences(
    before: Module | None,
    after: Module | None,
    before_measured: Sequence[MeasuredKernel] | None = None,
    after_measured: Sequence[MeasuredKernel] | None = None,
) -> KernelDifferences | None:
    """The kernels of two programs compared; None where neither both modules nor both captures are there.

    The modules are the optimised HLO, the measured kernels those of `analysis.measured`. Times are left out unless
    both sides have them for a call.
    """
    has_times = _is_timed(before_measured) and _is_timed(after_measured)
    has_modules = before is not None and after is not None
    if not has_modules and not has_times:
        return None
    rows: list[KernelDifference] = []
    ours, theirs = _Capture(before_measured if has_times else ()), _Capture(after_measured if has_times else ())
    if before is not None and after is not None:
        rows += [_row(pair, ours, theirs) for pair in kernel_pairs(before, after)]
    rows += _outside(ours.rest(), theirs.rest())
    rows.sort(key=_rank)
    return KernelDifferences(
        tuple(rows),
        ours.seconds if has_times else None,
        theirs.seconds if has_times else None,
    )


def _is_timed(measured: Sequence[MeasuredKernel] | None) -> bool:
    return bool(measured) and all(kernel.per_call_seconds is not None for kernel in measured or ())


class _Capture:
    """The measured kernels of one side, handed out by name."""

    def __init__(self, measured: Sequence[MeasuredKernel] | None) -> None:
        self._all = list(measured or ())
        self._by_name: dict[str, MeasuredKernel] = {
            kernel.name: kernel for kernel in reversed(self._all)
        }  # the longest stays
        self._taken: set[int] = set()

    @property
    def seconds(self) -> float:
        return sum(kernel.per_call_seconds or 0.0 for kernel in self._all)

    def take(self, name: str) -> MeasuredKernel | None:
        """The kernel of that name, once: a module may have it in several computations."""
        kernel = self._by_name.pop(name, None)
        if kernel is not None:
            self._taken.add(id(kernel))
        return kernel

    def rest(self) -> list[MeasuredKernel]:
        return [kernel for kernel in self._all if id(kernel) not in self._taken]


def _row(pair: KernelPair, ours: _Capture, theirs: _Capture) -> KernelDifference:
    before, after = pair.before, pair.after
    changes = _changes(before, after, pair.alike) if before is not None and after is not None else ()
    status: KernelStatus = "changed" if changes else "same"
    if before is None or after is None:
        status = "new" if before is None else "gone"
    return KernelDifference(
        status,
        before,
        after,
        before.name if before is not None else "",
        after.name if after is not None else "",
        changes,
        ours.take(before.name) if before is not None else None,
        theirs.take(after.name) if after is not None else None,
        pair.moved,
    )


def _rank(row: KernelDifference) -> tuple[float, int, float]:
    kernel = row.kernel
    moved = (kernel.total_bytes or 0.0) if kernel is not None else 0.0
    return -abs(row.part_seconds or 0.0), _ORDER.index(row.status), -moved


def _outside(before: Iterable[MeasuredKernel], after: Iterable[MeasuredKernel]) -> list[KernelDifference]:
    """Ops of the captures that no HLO explains, matched by their names without the numbers that XLA appends."""
    pairs = paired(list(before), list(after), [lambda kernel: kernel.name, lambda kernel: NUMBERS.sub("", kernel.name)])
    return [
        KernelDifference(
            "outside", None, None, kernel.name if kernel else "", partner.name if partner else "", (), kernel, partner
        )
        for kernel, partner in pairs
    ]


def _changes(before: Kernel, after: Kernel, alike: bool) -> tuple[KernelChange, ...]:
    """What is not the same; empty where all is. Kernels with equal fingerprints can differ in how often they run."""
    if alike:
        return (KernelChange("count", before.count, after.count),) if before.count != after.count else ()
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
        ("operations", *_operations(before, after)),
        ("settings", *_settings(before, after)),
    ]
    changes = tuple(KernelChange(what, before, after) for what, before, after in looked_at if before != after)
    return changes or (KernelChange("inside", None, None),)


def _operands(kernel: Kernel) -> str:
    return ", ".join(str(operand.shape) for operand in kernel.instruction.operand_instructions())


def _operations(before: Kernel, after: Kernel) -> tuple[str, str]:
    """The operations that only one of two fusions has, with their numbers: `2 convert, multiply`."""
    ours, theirs = _opcodes(before), _opcodes(after)
    return _counted(ours - theirs), _counted(theirs - ours)


def _opcodes(kernel: Kernel) -> Counter[str]:
    instruction = kernel.instruction
    held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
    return Counter(inner.opcode for inner in held if inner.opcode not in ("parameter", "tuple", "fusion"))


def _counted(opcodes: Counter[str]) -> str:
    return ", ".join(f"{count} {opcode}" if count > 1 else opcode for opcode, count in sorted(opcodes.items()))


def _settings(before: Kernel, after: Kernel) -> tuple[str, str]:
    """The attributes that differ, as XLA writes them."""
    ours, theirs = settings_of(before.instruction), settings_of(after.instruction)
    keys = [key for key in dict.fromkeys((*ours, *theirs)) if ours.get(key) != theirs.get(key)]

    def text(settings: dict[str, str]) -> str:
        return ", ".join(f"{key}={settings[key]}" for key in keys if key in settings)

    return text(ours), text(theirs)
