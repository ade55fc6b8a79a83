"""Comparison of the kernels of two modules: which are new, gone, merged, split or changed, and what changed.

`kernel_pairs` says which kernels belong together. If calls of both programs were captured, each row has its part of the
difference of the totals, and the parts add up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jaxprof.analysis.kernel_pairs import KernelPair, kernel_pairs
from jaxprof.analysis.measured import MeasuredKernel
from jaxprof.hlo.analysis.fingerprint import NUMBERS, settings_of
from jaxprof.hlo.analysis.kernels import Kernel
from jaxprof.hlo.analysis.kinds import held_in
from jaxprof.hlo.model import Module
from jaxprof.pairs import paired

KernelStatus: TypeAlias = Literal["same", "changed", "new", "gone", "outside"]
"""Status of a kernel. `outside` means that a capture has it, but no HLO describes it: its program's HLO has no such
kernel, or is missing."""
_ORDER: Final = ("gone", "new", "changed", "same", "outside")


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One difference in a kernel that has changed."""

    what: str
    """What differs: `kind`, `dtype`, `precision`, `target`, `shape`, `operands`, `count`, `flops`, `bytes`,
    `operations` (those that only one side has), `settings` (attributes, such as the groups of a collective or the
    dimensions of a reduction), or `inside` (the same operations with other constants or connections)."""
    before: str | float | None
    after: str | float | None


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """A kernel of one module, or a pair of both modules. Seconds are self time in a call, on one device."""

    status: KernelStatus
    before: Kernel | None
    """Kernel of the first module; None for a new kernel and for an `outside` one."""
    after: Kernel | None
    before_name: str
    """HLO name in the first module; empty for a new kernel."""
    after_name: str
    """HLO name in the second module; empty for a kernel that is gone."""
    changes: tuple[KernelChange, ...] = ()
    before_measured: MeasuredKernel | None = None
    """Times in the first capture; None if it was not captured."""
    after_measured: MeasuredKernel | None = None
    moved: tuple[str, ...] = ()
    """For a gone kernel, the kernels of the second module that it was merged into, which do its operations now. For a
    new kernel, those of the first module that it was split off from."""

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


@dataclass(frozen=True, slots=True)
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
        """Whether a kernel is new, gone or changed."""
        return any(row.status in ("new", "gone", "changed") for row in self.rows)


def kernel_differences(
    before: Module | None,
    after: Module | None,
    before_measured: Sequence[MeasuredKernel] | None = None,
    after_measured: Sequence[MeasuredKernel] | None = None,
) -> KernelDifferences | None:
    """Compare the kernels of two programs; None unless both modules or both captures exist.

    The modules are the optimised HLO, and the measured kernels those of `analysis.measured`. Times are left out unless
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
    """Measured kernels of one side, handed out by name."""

    def __init__(self, measured: Sequence[MeasuredKernel] | None) -> None:
        self._all = list(measured or ())
        self._by_name: dict[str, MeasuredKernel] = {
            kernel.name: kernel for kernel in reversed(self._all)
        }  # of equal names, the longest stays
        self._taken: set[int] = set()

    @property
    def seconds(self) -> float:
        return sum(kernel.per_call_seconds or 0.0 for kernel in self._all)

    def take(self, name: str) -> MeasuredKernel | None:
        """Return the kernel of that name, only once: a module may have the name in several computations."""
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
    """Match ops of the captures that no HLO describes, by their names without the numbers that XLA appends."""
    pairs = paired(list(before), list(after), [lambda kernel: kernel.name, lambda kernel: NUMBERS.sub("", kernel.name)])
    return [
        KernelDifference(
            "outside", None, None, kernel.name if kernel else "", partner.name if partner else "", (), kernel, partner
        )
        for kernel, partner in pairs
    ]


def _changes(before: Kernel, after: Kernel, alike: bool) -> tuple[KernelChange, ...]:
    """Return what differs; empty if nothing does. Kernels with equal fingerprints can differ in how often they run."""
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
    """Return the operations that only one of two fusions has, with their numbers, such as `2 convert, multiply`."""
    ours, theirs = _opcodes(before), _opcodes(after)
    return _counted(ours - theirs), _counted(theirs - ours)


def _opcodes(kernel: Kernel) -> Counter[str]:
    held = (inner.opcode for inner in held_in(kernel.instruction))
    return Counter(opcode for opcode in held if opcode not in ("parameter", "tuple", "fusion"))


def _counted(opcodes: Counter[str]) -> str:
    return ", ".join(f"{count} {opcode}" if count > 1 else opcode for opcode, count in sorted(opcodes.items()))


def _settings(before: Kernel, after: Kernel) -> tuple[str, str]:
    """Return the attributes that differ, as XLA writes them."""
    ours, theirs = settings_of(before.instruction), settings_of(after.instruction)
    keys = [key for key in dict.fromkeys((*ours, *theirs)) if ours.get(key) != theirs.get(key)]

    def text(settings: dict[str, str]) -> str:
        return ", ".join(f"{key}={settings[key]}" for key in keys if key in settings)

    return text(ours), text(theirs)
