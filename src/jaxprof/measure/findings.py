"""What only the engine can know about a program that makes its time mean something else: folded constants, dead code,
a narrowed dtype, a second compile. Found in public data, and said once with advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.core import Literal

from jaxprof.events import WarningRaised
from jaxprof.measure.compile_ledger import CompileLedger
from jaxprof.measure.host_arrays import arrays_of
from jaxprof.measure.stages import Program

_FOLDED_SHARE = 0.01
"""Of the FLOPs that went into XLA: with less than this left, the work was done while compiling."""
_COSTLY = frozenset(
    {
        "approx_top_k",
        "cholesky",
        "conv_general_dilated",
        "dot_general",
        "eig",
        "eigh",
        "fft",
        "geqrf",
        "householder_product",
        "lu",
        "qr",
        "ragged_dot",
        "scan",
        "schur",
        "sort",
        "svd",
        "top_k",
        "triangular_solve",
        "tridiagonal_solve",
        "while",
    }
)
_OPAQUE = ("custom-call", "ynn_fusion", "__onednn", "__triton")
"""Signs of library calls and kernels whose FLOPs XLA does not count."""


def program_findings(program: Program) -> Iterator[WarningRaised]:
    """What a compiled program shows."""
    before, after = program.lowered_flops, program.cost.flops
    opaque = any(sign in program.hlo for sign in _OPAQUE)
    if before and not opaque and (after or 0.0) < _FOLDED_SHARE * before:
        yield WarningRaised(
            code="folded_constants",
            message=f"XLA was given {before:.3g} FLOPs and left {after or 0.0:.3g}: the rest was computed while "
            "compiling, or was not needed",
            advice="Pass the arrays as arguments instead of closing over them, and return what is to be measured.",
        )
    dead = dead_operations(program.jaxpr)
    if dead:
        yield WarningRaised(
            code="dead_code",
            message=f"computed and not used, so removed by XLA: {', '.join(dict.fromkeys(dead))}",
            advice="Return the result if its time is to be measured.",
        )


def dead_operations(jaxpr: Any) -> list[str]:
    """The costly primitives, at a (closed) jaxpr's top level, whose results reach no output and that have no effect.

    Cheap ones are not told: differentiation leaves many of them behind.
    """
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    alive = {var for var in jaxpr.outvars if not isinstance(var, Literal)}
    dead: list[str] = []
    for equation in reversed(jaxpr.eqns):
        if equation.effects or any(var in alive for var in equation.outvars):
            alive |= {var for var in equation.invars if not isinstance(var, Literal)}
        else:
            dead += _costly(equation)
    return dead[::-1]


def _costly(equation: Any) -> list[str]:
    """The costly primitives of an equation, and of the functions inside it."""
    if equation.primitive.name in _COSTLY:
        return [equation.primitive.name]
    inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
    return [name for jaxpr in inner for nested in getattr(jaxpr, "eqns", ()) for name in _costly(nested)]


def narrowed_inputs(arguments: tuple[Any, ...]) -> Iterator[WarningRaised]:
    """NumPy inputs that JAX makes narrower (float64 into float32, unless x64 is on)."""
    changes = {}
    for array in arrays_of(arguments):
        narrower = jax.dtypes.canonicalize_dtype(array.dtype)
        if narrower != array.dtype:
            changes[str(array.dtype)] = str(narrower)
    for wide, narrow in changes.items():
        yield WarningRaised(
            code="dtype_narrowed",
            message=f"{wide} inputs become {narrow} in JAX: the comparison with NumPy in {wide} is not like for like",
            advice=f"Give {narrow} inputs to both, or set JAX_ENABLE_X64=1.",
        )


def recompiled(ledger: CompileLedger, when: str) -> Iterator[WarningRaised]:
    """A compilation where none was expected."""
    compiles = [span for span in ledger.spans if span.stage == "compile"]
    if compiles:
        names = ", ".join(dict.fromkeys(span.function for span in compiles))
        yield WarningRaised(
            code="compiled_again",
            message=f"{len(compiles)} more compilation{'s' * (len(compiles) != 1)} {when}: {names}",
            advice="Look for a new shape or dtype, a Python value that changes, or a function made anew at each call.",
        )


def zero_copies(directions: list[str]) -> Iterator[WarningRaised]:
    """Transfers (`in`, `out`) that moved nothing."""
    if directions:
        yield WarningRaised(
            code="zero_copy",
            message=f"the transfer {' and '.join(directions)} copied nothing: host and device share the buffer",
            advice="Its time says nothing of a copy; on an accelerator there is one.",
        )
