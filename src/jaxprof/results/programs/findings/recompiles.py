"""Functions that are compiled again and again: each reason that the ledger knows, and what mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings.finding import Finding, finding
from jaxprof.safe_text import safe, shorten
from jaxprof.units import integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.results.programs.derive import ProgramResult
    from jaxprof.results.programs.functions import FunctionCompiles, ReasonCount

AGAIN: Final = 3
"""So many compilations for one reason, the first one not counted: a last short batch and an evaluation make two."""
WEAK_TYPE_SECONDS: Final = 0.25
"""A single compilation for a weak type is told from here: it is one that a cast would have saved, every time."""
_ANOTHER: Final = " → another "
"""In the words of a reason: an object that reads as the one before, and is not equal to it."""
_OTHER_VALUE: Final = (
    "Take it out of static_argnums and pass it as an array where it is only computed with; where it steers control "
    "flow use lax.cond, lax.switch or fori_loop; where it sets a shape, keep to a few values."
)
_OTHER_OBJECT: Final = (
    "JAX compares static arguments with == and hash, which tell every new object from the last one: make the object "
    "once, give its class __eq__ and __hash__ over what the program depends on (a frozen dataclass has them), or make "
    "it a pytree and pass it as an argument."
)
_NAMED_WIDTH: Final = 100
"""Columns for the arguments that vary: a function of many arrays has as many."""


def recompile_in_loop(result: ProgramResult) -> Iterator[Finding]:
    """The function object is a new one each time, so that JAX knows nothing of it."""
    for one, reason in _again(result, "new_function"):
        if reason.count < AGAIN:
            continue
        made = reason.called_from or one.defined_at
        line = made.short(result.directory) if made is not None else ""
        away = f", away from {line}," if line else ""
        yield finding(
            "recompile_in_loop",
            f"{_name(one)} was compiled {integer(reason.count)} times more, each time as "
            f"a new function object{_cost(result, reason)}",
            "Make it once: move jax.jit(...), the lambda, the partial or the nested def out of the loop"
            f"{away} to module level or before the loop, and pass what changes as "
            "arguments.",
            (made, one.defined_at),
            seconds=reason.seconds,
        )


def varying_shapes(result: ProgramResult) -> Iterator[Finding]:
    """Shapes differ from call to call, and each is a program of its own. Operations outside any jit are left out."""
    for one, reason in _again(result, "shape"):
        if reason.count < AGAIN or one.op_by_op:
            continue
        named = "; ".join(f"{each.name} {each.summary}" for each in reason.varying) or "its arguments"
        yield finding(
            "varying_shapes",
            f"{_name(one)} was compiled again for {integer(reason.count)} other shapes: "
            f"{shorten(named, _NAMED_WIDTH)}{_cost(result, reason)}",
            _shape_advice(one, reason),
            (reason.called_from, one.defined_at),
            seconds=reason.seconds,
        )


def static_argument_varies(result: ProgramResult) -> Iterator[Finding]:
    """A static argument takes many values, each a program of its own."""
    for one, reason in _again(result, "static_argument"):
        if reason.count < AGAIN or one.op_by_op:
            continue
        named = "; ".join(f"{each.name} = {each.summary}" for each in one.varying if each.static) or reason.text
        yield finding(
            "static_argument_varies",
            f"{_name(one)} was compiled again for {integer(reason.count)} other values of a static argument: "
            f"{shorten(named, _NAMED_WIDTH)}{_cost(result, reason)}",
            _OTHER_OBJECT if _ANOTHER in reason.text else _OTHER_VALUE,
            (reason.called_from, one.defined_at),
            seconds=reason.seconds,
        )


def weak_type_flips(result: ProgramResult) -> Iterator[Finding]:
    """A Python number in one call and an array in the next: two programs for one function."""
    for one, reason in _again(result, "weak_type"):
        if one.op_by_op or (reason.count < AGAIN and reason.seconds < WEAK_TYPE_SECONDS):
            continue
        yield finding(
            "weak_type_flips",
            f"{_name(one)} was compiled {_times(reason.count)} more because of a weak type ({reason.text})"
            f"{_cost(result, reason)}",
            "Give the argument one dtype from the first call on: jnp.float32(x), jnp.asarray(x, dtype=...), or "
            "jnp.zeros((), jnp.int32) for a counter that starts at 0.",
            (reason.called_from, one.defined_at),
            seconds=reason.seconds,
        )


_OTHER: Final = {
    "dtype": (
        "dtypes of its arguments",
        "Cast once where the data comes in (x.astype(...)): NumPy gives float64 and int64 where JAX has 32 bits.",
    ),
    "structure": (
        "structures of its arguments",
        "Keep the tree of the arguments the same: no keys that come and go, no list that grows; stack it to one array.",
    ),
    "sharding": (
        "shardings of its arguments",
        "Give the arguments their sharding before the first call (jax.device_put with the NamedSharding that the "
        "function returns), or fix both with in_shardings and out_shardings.",
    ),
    "config": (
        "settings of JAX",
        "Set jax.config once, before the first compilation; a context manager inside the loop makes a second program.",
    ),
}


def arguments_vary(result: ProgramResult) -> Iterator[Finding]:
    """The other reasons that a call can give: each has its own advice."""
    for code, (what, advice) in _OTHER.items():
        for one, reason in _again(result, code):
            if reason.count < AGAIN or one.op_by_op:
                continue
            yield finding(
                "arguments_vary",
                f"{_name(one)} was compiled again for {integer(reason.count)} other {what}: {reason.text}"
                f"{_cost(result, reason)}",
                advice,
                (reason.called_from, one.defined_at),
                seconds=reason.seconds,
            )


def _shape_advice(one: FunctionCompiles, reason: ReasonCount) -> str:
    """How many compilations padding would leave, and what it would have saved; counted, not guessed."""
    found = one.padding
    if found is None:
        return "Bring the arguments to one shape before the call: pad and mask, or drop the last short batch."
    sizes = f"sizes {integer(found.smallest)}..{integer(found.largest)}"
    if found.buckets <= 2 or found.largest < 2 * found.smallest:
        return f"Pad and mask to the largest ({sizes}): one compilation instead of {integer(found.shapes)}."
    if found.buckets == found.shapes:
        return f"Pad and mask to a few fixed sizes ({sizes}): one compilation for each instead of {found.shapes}."
    saved = reason.seconds * (1 - found.buckets / found.shapes)
    return (
        f"Pad and mask ({sizes}) to the next power of two: {integer(found.buckets)} compilations instead of "
        f"{integer(found.shapes)}, some {seconds(saved, 2)} less; to the largest alone: one."
    )


def _again(result: ProgramResult, code: str) -> Iterator[tuple[FunctionCompiles, ReasonCount]]:
    """The functions that were compiled for that reason, each with its compilations for it."""
    for one in result.functions:
        reason = one.reason(code)
        if reason is not None:
            yield one, reason


def _name(one: FunctionCompiles) -> str:
    return f"`{safe(one.function)}`"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{integer(count)} times"


def _cost(result: ProgramResult, reason: ReasonCount) -> str:
    share = result.of_wall(reason.seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    return f" ({seconds(reason.seconds)}{of_wall})"
