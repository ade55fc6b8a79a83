"""Findings about a program, as data: a code, a sentence with the figures, advice, the line, and its seconds.

Each check is one small function over the program's figures, which claims the seconds that it reports; the tables below
list all checks, the more specific ones first. Findings are ranked by an estimate of what changing them would save. What
is true of nearly every run (the cache is off, compiling takes most of a short run) is a remark, not a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.findings import arrays, copied, cost, halts, loops, recompiles
from jaxprof.analysis.programs.findings.claims import Claims
from jaxprof.analysis.programs.result import ProgramFinding, Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxprof.analysis.programs.result import ProgramResult

__all__ = ["CODES", "REMARKS", "ProgramFinding", "Remark", "findings", "remarks"]

_LOOKS: Final[dict[str, Callable[[ProgramResult, Claims], Iterator[ProgramFinding]]]] = {
    "program_failed": halts.program_failed,
    "stopped": halts.stopped,
    "debug_settings": cost.debug_settings,
    "caches_cleared": recompiles.caches_cleared,
    "closure_varies": recompiles.closure_varies,
    "recompile_in_loop": recompiles.recompile_in_loop,
    "varying_shapes": recompiles.varying_shapes,
    "static_argument_varies": recompiles.static_argument_varies,
    "weak_type_flips": recompiles.weak_type_flips,
    "arguments_vary": recompiles.arguments_vary,
    "cache_thrashing": cost.cache_thrashing,
    "large_program": cost.large_program,
    "callback_in_loop": loops.callback_in_loop,
    "repeated_fetch": loops.repeated_fetch,
    "host_sync": loops.host_sync,
    "numpy_argument": copied.numpy_argument,
    "op_by_op_loop": loops.op_by_op_loop,
    "implicit_transfers": copied.implicit_transfers,
    "data_waits": loops.data_waits,
    "host_work": loops.host_work,
    "dispatch_bound": loops.dispatch_bound,
    "many_tiny_jits": cost.many_tiny_jits,
    "slow_tracing": cost.slow_tracing,
    "captured_constants": cost.captured_constants,
    "arrays_grow": arrays.arrays_grow,
    "unused_donation": arrays.unused_donation,
}
_REMARKS: Final[dict[str, Callable[[ProgramResult], Iterator[Remark]]]] = {
    "compile_dominates": cost.compile_dominates,
    "cache_off": cost.cache_off,
}
CODES: Final = tuple(_LOOKS)
"""Every code that a finding can have."""
REMARKS: Final = tuple(_REMARKS)
"""Every code that a remark can have."""


def findings(result: ProgramResult) -> tuple[ProgramFinding, ...]:
    """The findings of a program: its failure, then those whose fix would save most, last those whose saving is
    unknown."""
    claims = Claims(result)
    every = claims.bounded([finding for look in _LOOKS.values() for finding in look(result, claims)])
    return tuple(sorted(every, key=lambda found: (found.code != "program_failed", -(found.saves_seconds or 0.0))))


def remarks(result: ProgramResult) -> tuple[Remark, ...]:
    """Remarks about the run as a whole, which no line of the program can change."""
    return tuple(remark for look in _REMARKS.values() for remark in look(result))
