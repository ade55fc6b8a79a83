"""Functions that are compiled again and again: each reason that the ledger knows, and its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.functions import most_frequent, row_seconds
from jaxprof.analysis.programs.result import ProgramFinding, finding, is_single
from jaxprof.text import safe, shorten
from jaxprof.units import counted, integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.functions import FunctionCompiles, ReasonCount
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import Compiled

AGAIN: Final = 3
"""Recompilations for one reason from which it is a finding: a last short batch and an evaluation make two."""
AGAIN_CLEARED: Final = 2
"""The same for programs that were compiled before the caches were cleared."""
_VARYING_NAMED: Final = 4
WEAK_TYPE_SECONDS: Final = 0.25
"""Seconds from which a single compilation for a weak type is reported: a cast saves it every time."""
DEAR_SECONDS: Final = 1.0
"""Seconds from which a single compilation for another dtype, structure, sharding or setting is reported: it is paid at
each start, and nothing was gained by it."""
_ANOTHER: Final = " → another "
"""Words of a reason: an object that prints like the previous one, and is not equal to it."""
_OTHER_VALUE: Final = (
    "Where it is only computed with, take it out of static_argnums and pass it as an array; where it steers control "
    "flow, use lax.cond, lax.switch or fori_loop; where it sets a shape, keep to a few values."
)
_OTHER_OBJECT: Final = (
    "JAX compares static arguments with == and hash, which treat every new object as a different one: make the "
    "object once, give its class __eq__ and __hash__ over what the program depends on (a frozen dataclass has "
    "them), or make it a pytree and pass it as an argument."
)
_NAMED_WIDTH: Final = 100
"""Columns of text for the arguments that vary: a function of many arrays has many of them."""


def recompile_in_loop(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """The function object is a new one each time, so JAX finds nothing in its caches."""
    for function, reason in _again(claims, "new_function"):
        if reason.count < AGAIN:
            continue
        made = reason.called_from or function.defined_at
        line = f" at {made.short(result.directory)}" if made is not None else ""
        yield finding(
            "recompile_in_loop",
            f"{_name(function)} was compiled again {_times(reason.count)}, each time as a new function "
            f"object{_cost(result, reason)}",
            f"Make it once: the lambda, the partial, the nested def or the jax.jit(...) that is made anew for each "
            f"call{line} belongs before the loop or at module level; pass what changes as arguments.",
            (made, function.defined_at),
            function=function.function,
            seconds=_claim(claims, function, reason.code),
            saves=_saved(function, reason),
        )


def closure_varies(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """A factory makes a new function each time, over other values: each one is a separate program."""
    for function, reason in _again(claims, "closure"):
        if reason.count < AGAIN:
            continue
        rows = [row for row in function.rows if row.reason_code == "closure"]
        made = most_frequent([row.made_at for row in rows])
        factory = next((row.factory for row in rows if row.factory), "")
        varying = list(dict.fromkeys(each.name for row in rows for each in row.closure))
        by = f" by `{safe(factory)}`" if factory else ""
        over = f", over other values of {safe(shorten(', '.join(varying), _NAMED_WIDTH))}" if varying else ""
        yield finding(
            "closure_varies",
            f"{_name(function)} was compiled again {_times(reason.count)}, made anew{by} each "
            f"time{over}{_cost(result, reason)}",
            f"Call {f'`{safe(factory)}`' if factory else 'what makes it'} once, before the loop, and pass what changes "
            f"({safe(', '.join(varying[:_VARYING_NAMED])) or 'the values that it closes over'}) as an argument of the "
            "compiled function.",
            (made, reason.called_from, function.defined_at),
            function=function.function,
            seconds=_claim(claims, function, reason.code),
            saves=_saved(function, reason),
        )


def caches_cleared(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """JAX's caches were cleared, and the same programs were compiled again."""
    rows = claims.free_rows(row for row in result.compiles if row.reason_code == "caches_cleared")
    took, count = sum(map(row_seconds, rows)), sum(row.count for row in rows)
    if count < AGAIN_CLEARED or not claims.worth(took):
        return
    cleared = most_frequent([row.cleared_at for row in rows])
    functions = len({row.function for row in rows})
    yield finding(
        "caches_cleared",
        f"jax.clear_caches() was called, and {counted(functions, 'function')} had to be "
        f"compiled again, {integer(count)} times in all ({seconds(took)}, {percent(result.of_wall(took))} of the wall "
        "time)",
        "Leave the caches alone while the program still needs them; where they take too much memory, compile for "
        "fewer shapes, or run the parts in separate processes.",
        (cleared, most_frequent([row.called_from for row in rows])),
        seconds=claims.take(rows=rows),
        saves=took,
    )


def varying_shapes(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """Shapes differ from call to call, and each is a separate program. Operations outside any jit are left out."""
    for function, reason in _again(claims, "shape"):
        if reason.count < AGAIN or function.op_by_op:
            continue
        named = "; ".join(f"{each.name} {each.summary}" for each in reason.varying) or "its arguments"
        own = _claim(claims, function, reason.code)
        beside = claims.take(rows=_operations_beside(claims, reason))
        saved = _saved(function, reason)
        besides = f"; the operations around it {seconds(beside)}" if claims.worth(beside) else ""
        yield finding(
            "varying_shapes",
            f"{_name(function)} was compiled again for {integer(reason.count)} other shapes: "
            f"{shorten(named, _NAMED_WIDTH)}{_cost(result, reason)}{besides}",
            _shape_advice(function, reason),
            (reason.called_from, function.defined_at),
            function=function.function,
            seconds=own + beside,
            saves=saved + beside * (saved / reason.seconds if reason.seconds else 1.0),
        )


def _operations_beside(claims: Claims, reason: ReasonCount) -> list[Compiled]:
    """Operations outside any jit that were compiled for other shapes, too, where that function is called from: the same
    arrays vary, and the same padding mends it."""
    at = reason.called_from
    rows = (row for row in claims.result.compiles if is_single(row) and row.reason_code == "shape")
    return [
        row
        for row in claims.free_rows(rows)
        if at is not None and (row.called_from.file, row.called_from.function) == (at.file, at.function)
    ]


def static_argument_varies(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """A static argument takes many values, each a separate program."""
    for function, reason in _again(claims, "static_argument"):
        if reason.count < AGAIN or function.op_by_op:
            continue
        named = "; ".join(f"{each.name} = {each.summary}" for each in function.varying if each.static) or reason.text
        yield finding(
            "static_argument_varies",
            f"{_name(function)} was compiled again for {integer(reason.count)} other values of a static argument: "
            f"{shorten(named, _NAMED_WIDTH)}{_cost(result, reason)}",
            _OTHER_OBJECT if _ANOTHER in reason.text else _OTHER_VALUE,
            (reason.called_from, function.defined_at),
            function=function.function,
            seconds=_claim(claims, function, reason.code),
            saves=_saved(function, reason),
        )


def weak_type_flips(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """A Python number in one call and an array in the next: two programs for one function."""
    for function, reason in _again(claims, "weak_type"):
        if function.op_by_op or (reason.count < AGAIN and reason.seconds < WEAK_TYPE_SECONDS):
            continue
        yield finding(
            "weak_type_flips",
            f"{_name(function)} was compiled again {_times(reason.count)} because of a weak type "
            f"({reason.text}){_cost(result, reason)}",
            "Give the argument one dtype from the first call on: jnp.float32(x), jnp.asarray(x, dtype=...), "
            "jnp.zeros((), jnp.int32) for a counter that starts at 0, or jnp.full(shape, 0.1, jnp.float32): without a "
            "dtype, jnp.full and jnp.asarray keep a Python number's weak type.",
            (reason.called_from, function.defined_at),
            function=function.function,
            seconds=_claim(claims, function, reason.code),
            saves=_saved(function, reason),
        )


_OTHER: Final = {
    "dtype": (
        "dtypes of its arguments",
        "Cast once where the data comes in (x.astype(...)): NumPy gives float64 and int64 where JAX has 32 bits.",
    ),
    "structure": (
        "structures of its arguments",
        "Keep the structure of the arguments the same: no keys that come and go, and no growing list; stack a list "
        "into one array.",
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


def arguments_vary(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """The other reasons for which a call compiles again, each with its own advice."""
    for code, (what, advice) in _OTHER.items():
        for function, reason in _again(claims, code):
            if function.op_by_op or (reason.count < AGAIN and reason.seconds < DEAR_SECONDS):
                continue
            times = f"for {integer(reason.count)} other {what}" if reason.count > 1 else f"once for other {what}"
            yield finding(
                "arguments_vary",
                f"{_name(function)} was compiled again {times}: {reason.text}{_cost(result, reason)}",
                advice,
                (reason.called_from, function.defined_at),
                function=function.function,
                seconds=_claim(claims, function, reason.code),
                saves=_saved(function, reason),
            )


def _shape_advice(function: FunctionCompiles, reason: ReasonCount) -> str:
    """How many compilations padding would leave, and how many seconds it would have saved; counted, not guessed."""
    padding = function.padding
    if padding is None:
        return "Bring the arguments to one shape before the call: pad and mask, or drop the last short batch."
    sizes = f"sizes {integer(padding.smallest)}..{integer(padding.largest)}"
    if padding.buckets <= 2 or padding.largest < 2 * padding.smallest:
        return f"Pad and mask to the largest ({sizes}): one compilation instead of {integer(padding.shapes)}."
    if padding.buckets == padding.shapes:
        return f"Pad and mask to a few fixed sizes ({sizes}): one compilation for each instead of {padding.shapes}."
    saved = reason.seconds * (1 - padding.buckets / padding.shapes)
    return (
        f"Pad and mask ({sizes}) to the next power of two: {counted(padding.buckets, 'compilation')} instead of "
        f"{integer(padding.shapes)}, about {seconds(saved, 2)} less; to the largest alone: one."
    )


def _again(claims: Claims, code: str) -> Iterator[tuple[FunctionCompiles, ReasonCount]]:
    """The functions that were compiled for that reason, with those compilations, where they are worth a finding."""
    for function in claims.result.functions:
        reason = function.reason(code)
        if reason is not None and claims.worth(reason.seconds):
            yield function, reason


def _claim(claims: Claims, function: FunctionCompiles, code: str) -> float:
    """The seconds of a function's compilations for a reason."""
    return claims.take(rows=claims.free_rows(row for row in function.rows if row.reason_code == code))


def _saved(function: FunctionCompiles, reason: ReasonCount) -> float:
    """All of a reason's seconds, minus what padding would leave; the first compilation has a reason of its own."""
    if reason.code != "shape" or function.padding is None or function.padding.buckets >= function.padding.shapes:
        return reason.seconds
    kept = 1 if function.padding.largest < 2 * function.padding.smallest else function.padding.buckets
    return reason.seconds * (1 - max(0, kept - 1) / max(1, function.padding.shapes - 1))


def _name(function: FunctionCompiles) -> str:
    return f"`{safe(function.function)}`"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{integer(count)} times"


def _cost(result: ProgramResult, reason: ReasonCount) -> str:
    share = result.of_wall(reason.seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    return f" ({seconds(reason.seconds)}{of_wall})"
