"""What is worth changing in a program, as data: a code, a sentence with the figures, advice, and the line.

Each look is one small function over the program's figures; the table below is all of them. A look tells nothing from
a single event's noise: its thresholds are constants with their reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings import arrays, cost, data, host, recompiles
from jaxprof.results.programs.findings.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxprof.results.programs.derive import ProgramResult

__all__ = ["CODES", "Finding", "findings"]

_LOOKS: Final[dict[str, Callable[[ProgramResult], Iterator[Finding]]]] = {
    "recompile_in_loop": recompiles.recompile_in_loop,
    "varying_shapes": recompiles.varying_shapes,
    "static_argument_varies": recompiles.static_argument_varies,
    "weak_type_flips": recompiles.weak_type_flips,
    "arguments_vary": recompiles.arguments_vary,
    "many_tiny_jits": cost.many_tiny_jits,
    "compile_dominates": cost.compile_dominates,
    "slow_tracing": cost.slow_tracing,
    "cache_off": cost.cache_off,
    "cache_thrashing": cost.cache_thrashing,
    "captured_constants": cost.captured_constants,
    "op_by_op_loop": host.op_by_op_loop,
    "host_sync": host.host_sync,
    "data_waits": data.data_waits,
    "implicit_transfers": host.implicit_transfers,
    "arrays_grow": arrays.arrays_grow,
}
CODES: Final = tuple(_LOOKS)
"""Every code that a finding can have."""


def findings(result: ProgramResult) -> tuple[Finding, ...]:
    """The findings of a program, those that cost most first, then those whose cost cannot be told."""
    found = [finding for look in _LOOKS.values() for finding in look(result)]
    return tuple(sorted(found, key=lambda one: -(one.seconds or 0.0)))
