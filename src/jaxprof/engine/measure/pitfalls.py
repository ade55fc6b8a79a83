"""Properties of a program that only the engine can know and that change what its time means: folded constants, dead
code, a narrowed dtype, a second compile. Each is found in public data and reported once, with a fix.

A result is elementwise if each of its numbers is independent of the others, as a walk over its jaxpr shows. Then no
number carries the rounding of a sum, and each is compared at its own magnitude (`workloads.check`). An unlisted
primitive counts as one that sums, because the looser check never rejects a right result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from jaxprof.engine.measure.stages import CompileLedger, StagedProgram
from jaxprof.events import WarningRaised

_SAME_PLACE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex conj cos
cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag integer_pow is_finite le lgamma log
log1p log2 logistic lt max min mul ne neg nextafter not one_minus_square or polygamma population_count pow real
reduce_precision
regularized_incomplete_beta rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh
sqrt square sub tan tanh xor zeta convert_element_type bitcast_convert_type
"""
"""Primitives for arithmetic and functions of one number, or of numbers at the same place."""
_MOVING = """
argmax argmin broadcast_in_dim concatenate copy copy_p device_put dynamic_slice dynamic_update_slice empty expand_dims
gather iota optimization_barrier pad reduce_and reduce_max reduce_min reduce_or rev reshape scatter sharding_constraint
slice sort split squeeze stack stop_gradient top_k transpose unstack
"""
"""Primitives that move numbers, or choose among them."""
_RANDOM = "random_bits random_clone random_fold_in random_seed random_split random_unwrap random_wrap threefry2x32"
"""Primitives for random bits, which are exact."""
_ELEMENTWISE = frozenset((_SAME_PLACE + _MOVING + _RANDOM).split())
_CONTAINERS = frozenset(
    ("checkpoint", "closed_call", "cond", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "jit", "pjit",
     "remat2")
)  # fmt: skip
"""Primitives that do what is inside them."""


def is_elementwise(jaxpr: Any) -> bool:
    """Whether no result of the (closed) `jaxpr` depends on a sum over other numbers, as far as is known."""
    for equation in by_use(jaxpr)[0]:
        name = equation.primitive.name
        if name in _CONTAINERS:
            inner = list(inside(equation))
            if not inner or not all(map(is_elementwise, inner)):
                return False
        elif name not in _ELEMENTWISE:
            return False
    return True


def traced_is_elementwise(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether a function that is called op by op is elementwise, as `is_elementwise`; False if it cannot be traced."""
    try:
        return is_elementwise(jax.make_jaxpr(function)(*arguments))
    except Exception:  # noqa: BLE001 - whatever a user's function raises when its arguments are abstract
        return False


def by_use(jaxpr: Any) -> tuple[list[Any], list[Any]]:
    """Return the equations of a (closed) jaxpr: those that reach an output or have an effect, and the others."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    alive = {var for var in jaxpr.outvars if not isinstance(var, Literal)}
    used: list[Any] = []
    dead: list[Any] = []
    for equation in reversed(jaxpr.eqns):
        if equation.effects or any(var in alive for var in equation.outvars):
            alive |= {var for var in equation.invars if not isinstance(var, Literal)}
            used.append(equation)
        else:
            dead.append(equation)
    return used[::-1], dead[::-1]


def inside(equation: Any) -> Iterator[Any]:
    """Yield the jaxprs in an equation's parameters: functions that it calls, and branches."""
    for value in equation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                yield getattr(part, "jaxpr", part)


_FOLDED_SHARE = 0.01
"""Share of the FLOPs given to XLA below which the work was done while compiling."""
_COSTLY = frozenset({
    "approx_top_k", "cholesky", "conv_general_dilated", "dot_general", "eig", "eigh", "fft", "geqrf",
    "householder_product", "lu", "qr", "ragged_dot", "scan", "schur", "sort", "svd", "top_k", "triangular_solve",
    "tridiagonal_solve", "while",
})  # fmt: skip
_WINDOWED = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "reduce_window")
"""Primitives, or beginnings of their names, that XLA gets as windows over whole axes. It counts each window in full,
and then computes them in a logarithmic number of passes."""
_OPAQUE = ("custom-call", "ynn_fusion", "__onednn", "__triton")
"""Names of library calls and kernels whose FLOPs XLA does not count."""


def of_program(program: StagedProgram) -> Iterator[WarningRaised]:
    before, after = program.lowered_flops, program.compiled_flops
    unknown = any(sign in program.hlo for sign in _OPAQUE) or _holds_windows(program.jaxpr)
    if before and not unknown and (after or 0.0) < _FOLDED_SHARE * before:
        yield WarningRaised(code="folded_constants", values={"before_flops": before, "after_flops": after or 0.0})
    dead = dead_operations(program.jaxpr)
    if dead:
        yield WarningRaised(code="dead_code", values={"operations": ", ".join(dict.fromkeys(dead))})


def _holds_windows(jaxpr: Any) -> bool:
    """Whether a (closed) jaxpr, or one inside it, has a primitive whose FLOPs XLA overcounts."""
    return any(
        equation.primitive.name.startswith(_WINDOWED) or any(map(_holds_windows, inside(equation)))
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns
    )


def dead_operations(jaxpr: Any) -> list[str]:
    """Return the costly primitives at a (closed) jaxpr's top level that reach no output and have no effect.

    Cheap ones are not reported, nor what differentiation leaves: `jax.grad` also computes the value, whose last product
    no gradient needs.
    """
    return [
        name
        for equation in by_use(jaxpr)[1]
        if "jvp(" not in str(getattr(getattr(equation, "source_info", None), "name_stack", ""))
        for name in _costly(equation)
    ]


def _costly(equation: Any) -> list[str]:
    if equation.primitive.name in _COSTLY:
        return [equation.primitive.name]
    return [name for jaxpr in inside(equation) for nested in jaxpr.eqns for name in _costly(nested)]


def dtype_warnings(arguments: tuple[Any, ...]) -> Iterator[WarningRaised]:
    """Yield a warning for NumPy inputs that JAX narrows (float64 to float32, unless x64 is on)."""
    changes = {}
    for array in filter(lambda leaf: isinstance(leaf, np.ndarray), jax.tree.leaves(arguments)):
        narrower = jax.dtypes.canonicalize_dtype(array.dtype)
        if narrower != array.dtype:
            changes[str(array.dtype)] = str(narrower)
    for wide, narrow in changes.items():
        yield WarningRaised(code="dtype_narrowed", values={"wide": wide, "narrow": narrow})


def recompile_warnings(ledger: CompileLedger, cause: str) -> Iterator[WarningRaised]:
    """Yield a warning for compilations where none was expected: at the `first_call`, or in the `steady_run`."""
    compiles = [span.function for span in ledger.spans if span.stage == "compile"]
    if compiles:
        functions = ", ".join(dict.fromkeys(compiles))
        yield WarningRaised(
            code="compiled_again", values={"count": len(compiles), "cause": cause, "functions": functions}
        )


def zero_copies(directions: list[str], *, calls: bool) -> Iterator[WarningRaised]:
    """Yield warnings for transfers (`in`, `out`) that moved nothing, and for timed calls that moved nothing."""
    if directions:
        yield WarningRaised(code="zero_copy", values={"directions": " and ".join(directions)})
    if calls:
        yield WarningRaised(code="zero_copy")
