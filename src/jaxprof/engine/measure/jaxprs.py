"""Walks a jaxpr: which of its equations count, what is inside one, and whether the result is elementwise.

Elementwise: each number of the result is independent of the others. Then none carries the rounding of a sum, and each
is compared at its own magnitude (`workloads.check`). An unlisted primitive counts as one that sums: the looser check
never rejects a right result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import Literal

_SAME_PLACE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex conj cos
cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag integer_pow is_finite le lgamma log
log1p log2 logistic lt max min mul ne neg nextafter not one_minus_square or polygamma population_count pow real
reduce_precision
regularized_incomplete_beta rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh
sqrt square sub tan tanh xor zeta convert_element_type bitcast_convert_type
"""
"""Arithmetic and functions of one number, or of numbers at the same place."""
_MOVING = """
argmax argmin broadcast_in_dim concatenate copy copy_p device_put dynamic_slice dynamic_update_slice empty expand_dims
gather iota optimization_barrier pad reduce_and reduce_max reduce_min reduce_or rev reshape scatter sharding_constraint
slice sort split squeeze stack stop_gradient top_k transpose unstack
"""
"""Moving numbers, and choosing among them."""
_RANDOM = "random_bits random_clone random_fold_in random_seed random_split random_unwrap random_wrap threefry2x32"
"""Random bits, which are exact."""
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
    """Like `is_elementwise`, for a function that is called op by op; False for one that cannot be traced."""
    try:
        return is_elementwise(jax.make_jaxpr(function)(*arguments))
    except Exception:  # noqa: BLE001 - whatever a user's function raises when its arguments are abstract
        return False


def by_use(jaxpr: Any) -> tuple[list[Any], list[Any]]:
    """The equations of a (closed) jaxpr: first those that reach an output or have an effect, then the others."""
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
    """The jaxprs in an equation's parameters: of a function that it calls, of its branches."""
    for value in equation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                yield getattr(part, "jaxpr", part)
