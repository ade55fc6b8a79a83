"""Findings about functions that are compiled again and again, each with the reason in the ledger and its fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs.functions import (
    RECOMPILED_SHARE,
    FunctionCompiles,
    ReasonCount,
    Variation,
    argument_changes,
    most_frequent,
    row_seconds,
)
from jaxprof.analysis.programs.result import ProgramResult, is_single
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import counted, integer, percent, seconds
from jaxprof.events import Compiled, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import Claims, check
from jaxprof.findings.programs.compiling import free_traces, is_tracing_slow

AGAIN_CLEARED = 2
"""Number of programs compiled again after the caches were cleared from which they are reported."""
RECURS = 3
"""Recompilations from which a function object, or a static value, is another one each time. Two factories' functions,
or `train=True` and `train=False`, are programs of their own."""
MANY_SIZES = 20
"""Sizes from which arrays of one rank, in operations outside any jit, follow the data. A model's layers have fewer."""
FEW_COMPILATIONS = 3
"""Recompilations below which they are left to the finding about slow tracing, if they are nearly all tracing."""
NEARLY_ALL = 0.75
"""Share of a function's recompilations above which they are nearly all tracing."""
_MOST_VARYING = 4
_OTHER_OBJECT = (
    "JAX compares static arguments with == and hash, which treat every new object as a different one: make the "
    "object once, give its class __eq__ and __hash__ over what the program depends on (a frozen dataclass has "
    "them), or make it a pytree and pass it as an argument."
)
_UNEQUAL_OBJECT = (
    "Its class has an __eq__ of its own, by which the object is another one: something that it compares has changed, "
    "and is not a plain value (an array, or an object without __eq__). Leave that out of __eq__ and __hash__ where the "
    "program does not depend on it, else pass it as an argument."
)
_LIBRARYS_OBJECT = (
    "The library makes the object anew for each call from this line: if that call takes and returns arrays, make it in "
    "one function under jax.jit, made once; else call it once for all of the work where it can take that (chains, "
    "batches), or set jax_compilation_cache_dir: the same program is then read, not compiled."
)
_NAMED_WIDTH = 100
"""Largest number of columns for the arguments that vary: a function of many arrays has many of them."""


@check(
    "a new function object for each call",
    "JAX keeps programs by function object. A lambda, partial, nested def or jax.jit(...) made in the loop is a "
    "new object each time, so nothing is found in the cache and every iteration compiles.",
    "Make it once, at module level or before the loop; pass what changes as arguments.",
)
def recompile_in_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _unclaimed_recompiles(claims, "new_function", RECURS, alike=True):
        made = reason.called_from or function.defined_at
        line = f" at {made.short(result.directory)}" if made is not None else ""
        call = "each call" if reason.count > 1 else "another call"
        once = (
            f"Make it once: the lambda, the partial, the nested def or the jax.jit(...) that is made anew for {call}"
            f"{line} belongs before the loop or at module level; pass what changes as arguments."
        )
        under_jit = (  # who makes the function may be a library: an optimizer, a solver
            f"`{safe(function.function)}` runs outside any jit, on a function that is made anew for {call}{line}: "
            "make that call in one function under jax.jit, made once. Tracing it once makes the inner function once; "
            "what it computes with NumPy has to be jax.numpy there."
        )
        yield _recompile_finding(
            claims,
            function,
            reason,
            f"{_times_text(reason.count)}, {'each time ' if reason.count > 1 else ''}as a new function object",
            made,
            own_fix=under_jit if function.op_by_op else _keep_each(function, reason) or once,
        )


@check(
    "a factory makes a new function with new values each time",
    "A factory makes the compiled function anew, closing over values that change: each value is a new program.",
    "Call the factory once, before the loop, and pass what changes as an argument.",
)
def closure_varies(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _unclaimed_recompiles(claims, "closure", RECURS, alike=True):
        rows = reason.rows
        factory = next((row.factory for row in rows if row.factory), "")
        varying = list(dict.fromkeys(each.name for row in rows for each in row.closure))
        once = (
            f"Call {f'`{safe(factory)}`' if factory else 'what makes it'} once, before the loop, and pass what changes "
            f"({safe(', '.join(varying[:_MOST_VARYING])) or 'the values that it closes over'}) as an argument of the "
            "compiled function."
        )
        by = f" by `{safe(factory)}`" if factory else ""
        over = f", with other values of {safe(shorten(', '.join(varying), _NAMED_WIDTH))}" if varying else ""
        yield _recompile_finding(
            claims,
            function,
            reason,
            f"{_times_text(reason.count)}, made anew{by} each time{over}",
            most_frequent([row.made_at for row in rows]),
            reason.called_from,
            own_fix=_keep_each(function, reason, factory) or once,
        )


@check(
    "JAX's caches were cleared",
    "jax.clear_caches() dropped programs that were needed again, so they were traced and compiled once more.",
    "Leave the caches alone while the program still needs them; where they take too much memory, compile for "
    "fewer shapes, or run the parts in separate processes.",
)
def caches_cleared(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    rows = claims.free_rows(row for row in result.compiles if row.reason_code == "caches_cleared")
    took, count = sum(map(row_seconds, rows)), sum(row.count for row in rows)
    if count < AGAIN_CLEARED or not claims.worth(took):
        return
    cleared = most_frequent([row.cleared_at for row in rows])
    functions = len({row.function for row in rows})
    yield Finding(
        f"jax.clear_caches() was called, and {counted(functions, 'function')} had to be "
        f"compiled again, {integer(count)} times in all ({seconds(took)}, {percent(result.of_wall(took))} of the wall "
        "time)",
        (cleared, most_frequent([row.called_from for row in rows])),
        seconds=claims.take(rows=rows),
        saves_seconds=took,
    )


@check(
    "compiled again for other shapes",
    "Each shape of an argument is a program of its own: trace, lower and compile are paid for each.",
    "Pad and mask to one shape or a few fixed ones (the next power of two), or drop the last short batch.",
)
def varying_shapes(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield functions whose argument shapes differ between calls, so that each shape is a separate program, and then
    operations outside any jit, for which that is true as well."""
    for function, reason in _unclaimed_recompiles(claims, "shape"):
        if function.op_by_op:
            continue
        named = "; ".join(f"{each.name} {each.summary}" for each in reason.varying) or "its arguments"
        shapes = f"for {integer(reason.count)} other shapes" if reason.count > 1 else "once for another shape"
        text = f"{shapes}: {shorten(named, _NAMED_WIDTH)}"
        fix = _shape_fix(function)
        found = _recompile_finding(claims, function, reason, text, reason.called_from, own_fix=fix)
        # Operations outside any jit next to the function's call were compiled for other shapes as well: the same arrays
        # vary there, and the same padding fixes it.
        at = reason.called_from
        rows = (row for row in result.compiles if is_single(row) and row.reason_code == "shape" and at is not None)
        beside = claims.take(
            rows=[
                row
                for row in claims.free_rows(rows)
                if at is not None and (row.called_from.file, row.called_from.function) == (at.file, at.function)
            ]
        )
        own, saved = found.seconds or 0.0, found.saves_seconds or 0.0
        besides = f"; the operations around it {seconds(beside)}" if claims.worth(beside) else ""
        yield replace(
            found,
            message=found.message + besides,
            seconds=own + beside,
            saves_seconds=saved + beside * (saved / reason.seconds if reason.seconds else 1.0),
        )
    yield from _varying_operations(result, claims)


def _varying_operations(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield the functions of the user whose operations outside any jit were compiled for size after size. The finding
    is about the operation that cost most: the same arrays vary in the others, and the same padding fixes them."""
    rows = claims.free_rows(row for row in result.compiles if is_single(row) and row.reason_code == "shape")
    for of_caller in grouped(((row.called_from.file, row.called_from.function), row) for row in rows).values():
        by_name, took = totals((row.function, row_seconds(row)) for row in of_caller), sum(map(row_seconds, of_caller))
        name = max(by_name, key=lambda each: by_name[each])
        most = next(each for each in result.functions if each.function == name)
        own = [row for row in of_caller if row.function == name]
        count = sum(row.count for row in own)
        if most.padding is None or count < MANY_SIZES or took < RECOMPILED_SHARE * claims.work:
            continue
        claims.take(rows=of_caller)
        by_line = totals((row.called_from, row_seconds(row)) for row in own)
        varying = "; ".join(f"{each.name} {each.summary}" for each in argument_changes("shape", own)) or "its arguments"
        others = f", and {counted(len(by_name) - 1, 'other operation')} beside it" if len(by_name) > 1 else ""
        yield Finding(
            f"`{safe(name)}`, outside any jit, was compiled again for {integer(count)} other shapes: "
            f"{safe(shorten(varying, _NAMED_WIDTH))}{others} ({seconds(took)}, {percent(result.of_wall(took))} of the "
            "wall time)",
            (max(by_line, key=lambda line: by_line[line]),),
            own_fix=f"{_shape_fix(most)} jax.jit alone does not help: it compiles for each shape as well.",
            seconds=took,
            saves_seconds=_padding_saves(most, took),
        )


@check(
    "compiled again for other static values",
    "Each value of an argument in static_argnums or static_argnames is a program of its own. Objects without "
    "__eq__ and __hash__ are a new value each time.",
    "Pass it as an array where it is only computed with; give objects __eq__ and __hash__; use lax.cond, "
    "lax.switch or fori_loop where it steers control flow.",
)
def static_argument_varies(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _unclaimed_recompiles(claims, "static_argument", RECURS):
        if function.op_by_op:
            continue
        changed = [each for each in argument_changes("static_argument", reason.rows) if len(each.types) > 1]
        changed.sort(key=lambda each: "." not in each.name)  # `self.size` says more than all of `self`
        named = "; ".join(f"{each.name} = {each.summary}" for each in changed) or reason.text
        text = f"for {integer(reason.count)} other values of a static argument: {shorten(named, _NAMED_WIDTH)}"
        fix = _LIBRARYS_OBJECT if function.library and not changed else _static_fix(function, reason, changed)
        yield _recompile_finding(claims, function, reason, text, reason.called_from, own_fix=fix)


def _static_fix(function: FunctionCompiles, reason: ReasonCount, changed: Sequence[Variation]) -> str:
    """Return the fix for a static argument, by what changed of it and whether the programs then differ."""
    if not changed:
        unequal = any(each.kind == "unequal_object" for row in reason.rows for each in row.reasons)
        return _UNEQUAL_OBJECT if unequal else _OTHER_OBJECT
    attributes = [each.name for each in changed if "." in each.name]
    named = " and ".join(f"`{safe(name)}`" for name in attributes[:_MOST_VARYING])
    programs = {(row.operations, row.checksum) for row in function.rows if row.checksum is not None}
    ways = []
    if len(programs) < 2:
        ways.append(
            f"where {named} is only computed with, pass it as an array beside the object, and make the object once, or "
            "with __eq__ and __hash__ over the rest"
            if attributes
            else "where it is only computed with, take it out of static_argnums and pass it as an array"
        )
    if len(programs) != 1:
        ways.append("where it steers control flow, use lax.cond, lax.switch or fori_loop")
    ways.append("where it sets a shape, keep to a few values")
    fix = "; ".join(ways)
    return f"{fix[0].upper()}{fix[1:]}."


@check(
    "a Python number in one call, an array in the next",
    "A Python number is weakly typed; an array is not. A function that is given now one and now the other is "
    "compiled for both.",
    "Give the argument one dtype from the first call on: jnp.float32(x), jnp.asarray(x, dtype=...), "
    "jnp.zeros((), jnp.int32) for a counter that starts at 0, or jnp.full(shape, 0.1, jnp.float32): without a "
    "dtype, jnp.full and jnp.asarray keep a Python number's weak type. For a state that a library makes: "
    "jax.tree.map(lambda x: jnp.asarray(x, x.dtype), state), once before the first call.",
)
def weak_type_flips(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _unclaimed_recompiles(claims, "weak_type"):
        if not function.op_by_op:
            text = f"{_times_text(reason.count)} because of a weak type ({reason.text})"
            yield _recompile_finding(claims, function, reason, text, reason.called_from)


_OTHER = {
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


_JIT_OPTIONS = (
    "options of jax.jit",
    "Call jax.jit once with one set of options, and keep what it returns: the same function under other options is "
    "another program.",
)


@check(
    "compiled again for other dtypes, structures, shardings or settings",
    "Anything that distinguishes the arguments besides their values makes another program.",
    "Keep dtype, tree structure, sharding and jax.config the same from the first call on.",
)
def arguments_vary(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield functions compiled again for any other reason, each with its own fix."""
    for code, words in _OTHER.items():
        for function, reason in _unclaimed_recompiles(claims, code):
            if function.op_by_op:
                continue
            of_jit = code == "config" and not reason.text.startswith("config ")
            what, fix = _JIT_OPTIONS if of_jit else words
            fix = _static_part_fix(reason) or fix
            times = f"for {integer(reason.count)} other {what}" if reason.count > 1 else f"once for other {what}"
            text = f"{times}: {reason.text}"
            yield _recompile_finding(claims, function, reason, text, reason.called_from, own_fix=fix)


def _static_part_fix(reason: ReasonCount) -> str:
    """Return the fix where static parts of the arguments' trees changed; else empty."""
    changed = argument_changes("static_part", reason.rows)
    if not changed:
        return ""
    named = " and ".join(f"`{safe(each.name)}`" for each in changed[:_MOST_VARYING])
    if all(len(each.types) == 1 for each in changed):
        return f"Make {named} once, before the loop: a static part of an argument, it was another object each time."
    return (
        f"Each value of {named} is a program of its own, because it is a static part of the argument: make it an array "
        "(a leaf of the tree) where it is only computed with; where it sets a shape, keep to a few values."
    )


def _padding_saves(function: FunctionCompiles, took: float) -> float:
    """Return the seconds that padding saves of those that compiling for other shapes took."""
    padding = function.padding
    if padding is None or padding.buckets >= padding.shapes:
        return took
    kept = 1 if padding.largest < 2 * padding.smallest else padding.buckets
    return took * (1 - max(0, kept - 1) / max(1, padding.shapes - 1))  # the first compilation has a reason of its own


def _shape_fix(function: FunctionCompiles) -> str:
    """Return the fix for varying shapes, with the compilations that padding leaves."""
    padding = function.padding
    if padding is None:
        return "Bring the arguments to one shape before the call: pad and mask, or drop the last short batch."
    sizes = f"sizes {integer(padding.smallest)}..{integer(padding.largest)}"
    if padding.buckets <= 2 or padding.largest < 2 * padding.smallest:
        return f"Pad and mask to the largest ({sizes}): one compilation instead of {integer(padding.shapes)}."
    if padding.buckets == padding.shapes:
        return f"Pad and mask to a few fixed sizes ({sizes}): one compilation for each instead of {padding.shapes}."
    return (
        f"Pad and mask ({sizes}) to the next power of two: {counted(padding.buckets, 'compilation')} instead of "
        f"{integer(padding.shapes)}; to the largest alone: one."
    )


def _unclaimed_recompiles(
    claims: Claims, code: str, least: int = 1, *, alike: bool = False
) -> Iterator[tuple[FunctionCompiles, ReasonCount]]:
    """Yield the functions that were compiled for a reason, with those compilations that no finding has claimed, if they
    are worth a finding: at least so many of them, and a share of the program's own time. `alike`: only those of a
    program that was compiled before: the others are needed, whoever makes the function."""
    for function in claims.result.functions:
        reason = function.reason(code)
        if reason is None:
            continue
        repeated = set(map(id, function.repetitions())) if alike else None
        rows = tuple(row for row in claims.free_rows(reason.rows) if repeated is None or id(row) in repeated)
        count, took = sum(row.count for row in rows), sum(map(row_seconds, rows))
        # One or two that are nearly all tracing are of slow Python, which the first compilation pays as well.
        traced = sum(row.trace_seconds or 0.0 for row in rows)
        if count < FEW_COMPILATIONS and traced > NEARLY_ALL * took and is_tracing_slow(claims, free_traces(claims)):
            continue
        is_enough = count >= least or (count > 0 and _is_made_again(function, code, rows))
        if is_enough and took >= RECOMPILED_SHARE * claims.work > 0:
            yield function, replace(reason, count=count, seconds=took, rows=rows)


def _is_made_again(function: FunctionCompiles, code: str, rows: Sequence[Compiled]) -> bool:
    """Return whether each of these compilations made a program that was known to be there, for a new object: then one
    is as avoidable as many. A plain value that changes may be meant to."""
    repeated = set(map(id, function.repetitions()))
    by_value = any(len(each.types) > 1 for each in argument_changes(code, rows))
    return not by_value and all(id(row) in repeated and row.checksum is not None for row in rows)


def _keep_each(function: FunctionCompiles, reason: ReasonCount, factory: str = "") -> str:
    """Return the fix where what is made anew are several programs, some of them more than once; else empty."""
    repeated = set(map(id, function.repetitions()))
    others = sum(row.count for row in function.rows if row.reason_code == reason.code and id(row) not in repeated)
    if not others:
        return ""
    made = f"`{safe(factory)}`" if factory else "the function that makes them"
    return (
        f"{counted(others, 'other compilation')} made different programs, which are needed; these "
        f"made one again that was there: keep each where it is first made (functools.cache on {made}, called with what "
        "the program depends on)."
    )


def _recompile_finding(
    claims: Claims,
    function: FunctionCompiles,
    reason: ReasonCount,
    text: str,
    *places: SourceLocation | None,
    own_fix: str | None = None,
) -> Finding:
    """Claim a function's compilations for a reason, and return the finding about them. `text`: how often, and why;
    `places`: lines to change, before that of the definition."""
    saves = _padding_saves(function, reason.seconds) if reason.code == "shape" else reason.seconds
    share = claims.result.of_wall(reason.seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    return Finding(
        f"`{safe(function.function)}` was compiled again {text} ({seconds(reason.seconds)}{of_wall})",
        (*places, function.defined_at),
        own_fix=own_fix,
        function=function.function,
        seconds=claims.take(rows=reason.rows),
        saves_seconds=saves,
    )


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{integer(count)} times"
