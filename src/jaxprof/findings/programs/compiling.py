"""Findings about the cost of compiling.

One group is about functions that are compiled again and again, each with the reason in the ledger and its fix. The
other is about the program as a whole: the share of compiling, tracing, the cache, and constants.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.programs.functions import (
    RECOMPILED_SHARE,
    FunctionCompiles,
    ReasonCount,
    Variation,
    argument_changes,
    most_frequent,
    row_seconds,
)
from jaxprof.analysis.programs.result import (
    TINY_OPERATIONS,
    ProgramResult,
    is_single,
)
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import bytes_, counted, integer, percent, seconds
from jaxprof.events.finding import Finding
from jaxprof.events.programs import UNROLLED
from jaxprof.findings.programs.claims import Claims, check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.events import Compiled, SourceLocation

AGAIN_CLEARED = 2
"""Number of programs compiled again after the caches were cleared from which they are reported."""
RECURS = 3
"""Recompilations from which a function object, or a static value, is another one each time. Two factories' functions,
or `train=True` and `train=False`, are programs of their own."""
MANY_SIZES = 20
"""Sizes from which arrays of one rank, in operations outside any jit, follow the data. A model's layers have fewer."""
_MOST_VARYING = 4
_OTHER_OBJECT = (
    "JAX compares static arguments with == and hash, which treat every new object as a different one: make the "
    "object once, give its class __eq__ and __hash__ over what the program depends on (a frozen dataclass has "
    "them), or make it a pytree and pass it as an argument."
)
_UNEQUAL_OBJECT = (
    "Its class has an __eq__ of its own, by which the object is another one: something that it compares has changed, "
    "and is no plain value (an array, or an object without __eq__). Leave that out of __eq__ and __hash__ where the "
    "program does not depend on it, else pass it as an argument."
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
    for function, reason in _recompiled(claims, "new_function", RECURS, alike=True):
        made = reason.called_from or function.defined_at
        line = f" at {made.short(result.directory)}" if made is not None else ""
        once = (
            f"Make it once: the lambda, the partial, the nested def or the jax.jit(...) that is made anew for each "
            f"call{line} belongs before the loop or at module level; pass what changes as arguments."
        )
        yield _compiled_again(
            claims,
            "recompile_in_loop",
            function,
            reason,
            f"{_times_text(reason.count)}, each time as a new function object",
            made,
            own_fix=_keep_each(function, reason) or once,
        )


@check(
    "a factory makes a new function with new values each time",
    "A factory makes the compiled function anew, closing over values that change: each value is a new program.",
    "Call the factory once, before the loop, and pass what changes as an argument.",
)
def closure_varies(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _recompiled(claims, "closure", RECURS, alike=True):
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
        yield _compiled_again(
            claims,
            "closure_varies",
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
        "caches_cleared",
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
    operations outside any jit, of which that is true as well."""
    for function, reason in _recompiled(claims, "shape"):
        if function.op_by_op:
            continue
        named = "; ".join(f"{each.name} {each.summary}" for each in reason.varying) or "its arguments"
        shapes = f"for {integer(reason.count)} other shapes" if reason.count > 1 else "once for another shape"
        text = f"{shapes}: {shorten(named, _NAMED_WIDTH)}"
        fix = _shape_fix(function)
        found = _compiled_again(claims, "varying_shapes", function, reason, text, reason.called_from, own_fix=fix)
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
            "varying_shapes",
            f"`{safe(name)}`, outside any jit, was compiled again for {integer(count)} other shapes: "
            f"{safe(shorten(varying, _NAMED_WIDTH))}{others} ({seconds(took)}, {percent(result.of_wall(took))} of the "
            "wall time)",
            (max(by_line, key=lambda place: by_line[place]),),
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
    for function, reason in _recompiled(claims, "static_argument", RECURS):
        if function.op_by_op:
            continue
        changed = [each for each in argument_changes("static_argument", reason.rows) if len(each.types) > 1]
        named = "; ".join(f"{each.name} = {each.summary}" for each in changed) or reason.text
        text = f"for {integer(reason.count)} other values of a static argument: {shorten(named, _NAMED_WIDTH)}"
        fix = _static_fix(function, reason, changed)
        yield _compiled_again(claims, "static_argument_varies", function, reason, text, reason.called_from, own_fix=fix)


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
    "dtype, jnp.full and jnp.asarray keep a Python number's weak type.",
)
def weak_type_flips(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function, reason in _recompiled(claims, "weak_type"):
        if not function.op_by_op:
            text = f"{_times_text(reason.count)} because of a weak type ({reason.text})"
            yield _compiled_again(claims, "weak_type_flips", function, reason, text, reason.called_from)


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
        for function, reason in _recompiled(claims, code):
            if function.op_by_op:
                continue
            of_jit = code == "config" and not reason.text.startswith("config ")
            what, fix = _JIT_OPTIONS if of_jit else words
            fix = _static_part_fix(reason) or fix
            times = f"for {integer(reason.count)} other {what}" if reason.count > 1 else f"once for other {what}"
            text = f"{times}: {reason.text}"
            yield _compiled_again(claims, "arguments_vary", function, reason, text, reason.called_from, own_fix=fix)


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


def _recompiled(
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
        if count < FEW_COMPILATIONS and traced > _MOSTLY * took and _is_tracing_slow(claims, _traced_rows(claims)):
            continue
        if count >= least and took >= RECOMPILED_SHARE * claims.work > 0:
            yield function, replace(reason, count=count, seconds=took, rows=rows)


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


def _compiled_again(
    claims: Claims,
    code: str,
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
        code,
        f"`{safe(function.function)}` was compiled again {text} ({seconds(reason.seconds)}{of_wall})",
        (*places, function.defined_at),
        own_fix=own_fix,
        function=function.function,
        seconds=claims.take(rows=reason.rows),
        saves_seconds=saves,
    )


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{integer(count)} times"


MANY = 20
"""Number of tiny programs from which they are reported; fewer are the set-up of any script."""
TINY_SHARE = 0.05
"""Share of the program's own time that compiling the tiny programs as one would save."""
TINY_SECONDS = 0.2
"""Seconds that tiny programs must cost together: enough for a person to notice."""
DOMINATES = 0.5
"""Share of the wall time from which the program mostly compiles."""
DOMINATES_SECONDS = 1.0
"""Seconds that compiling must take at least: a script of half a second compiles for half of it, whatever it does."""
TRACING = 0.15
"""Share of the program's own time from which tracing is slow."""
LARGE_SHARE = 0.1
"""Share of the program's own time from which compiling one large program is reported."""
FEW_COMPILATIONS = 3
_MOSTLY = 0.75
TRACING_SECONDS = 1.0
"""Least seconds of tracing that are reported."""
CACHE_SECONDS = 2.0
"""Backend seconds, repeated at every start, from which switching on the persistent cache is recommended."""
CACHE_KEEPS_SECONDS = 1.0
"""Compile time above which JAX caches a program (jax_persistent_cache_min_compile_time_secs, its default)."""
_CACHE_FOLDER = "jax_compilation_cache_dir"
CONSTANT_BYTES = 1 << 20
"""Bytes of constants in one program; smaller ones fold in milliseconds and hardly enlarge the executable."""
UNROLLED_OPERATIONS = 5_000
"""Number of operations above which a program is probably a Python loop that tracing unrolled."""
LARGE_OPERATIONS = 1_000
"""Operations of a large program if compiling it is most of the work: XLA needs 1 or 2 ms for each."""
MOST_SHARE = 0.25
"""`LARGE_SHARE` for a program of `LARGE_OPERATIONS`, which may need its size."""
LARGE_SECONDS = 1.0
"""Least seconds of compiling a large program that are reported."""
_LINES_NAMED = 3
_UNROLLED_SHARE = 0.5
"""Share of a function's tracing from which a loop is named."""
_LIBRARY_TRACED = (
    "Tracing was mostly in the Python of {}, which is not yours to change: call it from fewer places and with options "
    "that trace less (fewer stages or layers), otherwise keep {}."
)


@check(
    "many compilations of tiny programs",
    "Each of many small functions or single operations is traced and compiled on its own, which takes longer than "
    "running it ever will.",
    "Call those in your own code (initialisation included) from one function under jax.jit: one program "
    "compiles once and is dispatched once. For those that a library calls, the persistent cache with "
    "jax_persistent_cache_min_compile_time_secs at 0 keeps them for the next start.",
)
def many_tiny_jits(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    tiny = [
        row
        for row in claims.free_rows(result.compiles)
        if (row.operations is None or row.operations <= TINY_OPERATIONS)
        # A recompilation with a reason of its own is reported under that reason.
        and (is_single(row) or (row.reason_code == "first" and row.operations is not None))
    ]
    count, took = sum(row.count for row in tiny), sum(map(row_seconds, tiny))
    saves = took * (1 - 1 / TINY_OPERATIONS)
    if count < MANY or took < TINY_SECONDS or saves < TINY_SHARE * claims.work:
        return
    claims.take(rows=tiny)
    single = sum(row.count for row in tiny if is_single(row))
    where = most_frequent([row.called_from for row in tiny])
    of_them = (
        f", {'all' if single == count else integer(single)} of them single operations outside any jit" if single else ""
    )
    most = f", most at {where.short(result.directory)}" if where is not None else ""
    yield Finding(
        "many_tiny_jits",
        f"{integer(count)} compilations built programs of at most {TINY_OPERATIONS} operations{of_them}: "
        f"{seconds(took)}, {percent(took / result.compile_seconds)} of the compile time{most}",
        (where,),
        seconds=took,
        saves_seconds=saves,
    )


@check(
    "most of the run was compiling",
    "More than half of the wall time went into tracing, lowering and compiling. True of nearly every short run.",
    "Compile fewer programs (the ledger shows what is compiled again), and keep them in the persistent cache "
    "(JAX_COMPILATION_CACHE_DIR); in a longer run compiling is a smaller share.",
)
def compile_dominates(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    took = result.main_compile_seconds
    share = result.of_wall(took)
    if share is None or share < DOMINATES or took < DOMINATES_SECONDS or not result.functions:
        return
    most = result.functions[0]
    operations = max((row.operations for row in most.rows if row.operations is not None), default=None)
    size = f" ({counted(operations, 'operation')})" if operations is not None else ""
    count = "one compilation" if most.count == 1 else f"{integer(most.count)} compilations"
    yield Finding(
        "compile_dominates",
        f"tracing, lowering and compiling took {seconds(took)}, {percent(share)} of the wall time; the largest part "
        f"for `{safe(most.function)}`{size}: {seconds(most.seconds)} in {count}",
    )


@check(
    "so many operations that compiling the program takes long",
    "Tracing unrolls Python loops: each layer, step or example becomes operations of its own, and the time of "
    "tracing, lowering and compiling grows with them.",
    "Most operations of a program this large are the same ones over and over: layers, steps or stages that tracing "
    "wrote out one by one. jax.lax.scan, fori_loop or jax.vmap over them compiles their body once; otherwise keep "
    "the program in the persistent cache.",
)
def large_program(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    traced = _traced_library(result)
    for function in result.functions:
        if function.library:
            continue  # its loops are not the reader's to change
        rows = [row for row in claims.free_rows(function.rows) if (row.operations or 0) > LARGE_OPERATIONS]
        took = sum(map(row_seconds, rows))
        huge = any((row.operations or 0) > UNROLLED_OPERATIONS for row in rows)
        if took < (LARGE_SHARE if huge else MOST_SHARE) * claims.work or took < LARGE_SECONDS:
            continue
        claims.take(rows=rows)
        operations = max(row.operations or 0 for row in rows)
        loops = _unrolled_loops(result, rows)
        # below the larger size, a model that needs this size is as likely as an unrolled loop that no sample shows
        saves = took * (1 - LARGE_OPERATIONS / (2 * operations)) * (1.0 if huge or loops else 0.5)
        yield Finding(
            "large_program",
            f"the program of `{safe(function.function)}` has {integer(operations)} operations: tracing, lowering and "
            f"compiling it took {seconds(took)}, {percent(result.of_wall(took))} of the wall time"
            f"{_unrolled_text(result, loops)}",
            (*loops, function.defined_at, function.called_from),
            own_fix=_LIBRARY_TRACED.format(traced, "the program in the persistent cache") if traced else None,
            function=function.function,
            seconds=took,
            saves_seconds=saves,
        )


@check(
    "tracing the Python code takes long",
    "Tracing runs the Python function; loops over layers or examples and NumPy work inside it are paid at each "
    "compilation.",
    "Use lax.scan or vmap instead of Python loops over layers, steps or examples, "
    "and compute what does not depend on the arguments beforehand, with NumPy.",
)
def slow_tracing(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    rows = _traced_rows(claims)
    if not _is_tracing_slow(claims, rows):
        return
    took = sum(row.trace_seconds or 0.0 for row in rows)
    share, traced, loops = result.of_wall(took), _traced_library(result), _unrolled_loops(result, rows)
    claims.take(rows=rows)
    by_line = totals((line.place, line.seconds) for line in result.lines if line.state == "trace")
    lines = sorted(by_line.items(), key=lambda item: -item[1])[:_LINES_NAMED]
    named = ", ".join(f"{where.short(result.directory)} {seconds(spent, 2)}" for where, spent in lines)
    slowest = max(
        result.functions, key=lambda function: sum(row.trace_seconds or 0.0 for row in function.rows), default=None
    )
    most = f", the most for `{safe(slowest.function)}`" if slowest is not None else ""
    yield Finding(
        "slow_tracing",
        f"tracing took {seconds(took)}, {percent(share)} of the wall time{most}"
        f"{_unrolled_text(result, loops)}{f'; by samples: {named}' if named else ''}",
        (*loops, *(where for where, _ in lines), slowest.defined_at if slowest is not None else None),
        own_fix=_LIBRARY_TRACED.format(traced, "what was traced with jax.export") if traced else None,
        seconds=took,
        saves_seconds=took / 2,
    )


def _traced_rows(claims: Claims) -> list[Compiled]:
    """Return the compilations of the main thread whose tracing no finding has claimed."""
    return [row for row in claims.free_rows(claims.result.compiles) if not row.thread and row.trace_seconds]


def _is_tracing_slow(claims: Claims, rows: Sequence[Compiled]) -> bool:
    took = sum(row.trace_seconds or 0.0 for row in rows)
    return took >= TRACING_SECONDS and took >= TRACING * claims.work


def _unrolled_loops(result: ProgramResult, rows: Sequence[Compiled]) -> list[SourceLocation]:
    """Return the user's loops that took most of the tracing of these compilations, outermost first."""
    functions = {row.function for row in rows}
    traced = sum(row.trace_seconds or 0.0 for row in result.compiles if row.function in functions)
    of_loop = totals(
        (each.where, each.seconds) for each in result.statements if each.kind == UNROLLED and each.name in functions
    )
    return [where for where, took in of_loop.items() if took > _UNROLLED_SHARE * traced]


def _unrolled_text(result: ProgramResult, loops: Sequence[SourceLocation]) -> str:
    """Return text such as `; tracing unrolls the loop at train.py:7`; empty without a loop."""
    named = [loop.short(result.directory) for loop in loops[:_LINES_NAMED]]
    return f"; tracing unrolls the loop at {safe(', in it '.join(named))}" if named else ""


def _traced_library(result: ProgramResult) -> str:
    """Return the library whose Python most samples of tracing were in; empty if most were in none."""
    by_library = totals((spot.through, spot.seconds) for spot in result.spots if spot.kind == "trace")
    most = max(by_library, key=lambda name: by_library[name], default="")
    return safe(most) if 2 * by_library.get(most, 0.0) > sum(by_library.values()) else ""


@check(
    "the persistent compilation cache is off",
    "The same programs are compiled again at every start.",
    "Set JAX_COMPILATION_CACHE_DIR to a permanent folder.",
)
def cache_off(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    times = [(row.compile_seconds or 0.0, row.count) for row in result.compiles if row.cache == "off"]
    took = sum(spent for spent, _ in times)
    if took < CACHE_SECONDS:
        return
    kept_seconds = sum(spent for spent, count in times if spent >= CACHE_KEEPS_SECONDS * count)
    small = (
        " Most of them compile in under 1 s: to keep those too, set jax_persistent_cache_min_compile_time_secs to 0."
        if kept_seconds < took / 2
        else ""
    )
    yield Finding(
        "cache_off",
        f"the persistent compilation cache is off: {seconds(took)} of backend compilation are repeated at each start",
        own_fix="Set JAX_COMPILATION_CACHE_DIR to a permanent folder, or call "
        f"jax.config.update('jax_compilation_cache_dir', ...) before the first compilation.{small}",
        seconds=took,
    )


_NEW_FOLDERS = {
    "temporary": "it is a temporary one",
    "process": "its name holds the id of the process",
    "job": "its name holds the id of the job",
    "random": "its name is random",
    "time": "its name holds the time",
}
NEW_CACHE_SHARE = 0.05
"""Share of the program's own time that a cache must have saved to be missed."""


@check(
    "the persistent compilation cache has a new folder at each start",
    "A cache keeps what was compiled for the next start, which looks into another folder: nothing is ever found, and "
    "each start also writes its programs.",
    "Give it one permanent folder: jax.config.update('jax_compilation_cache_dir', ...) with a fixed path, or "
    "JAX_COMPILATION_CACHE_DIR in the environment.",
)
def cache_never_found(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if no program was found in the cache, and its folder is another one at each start. The first
    start with a permanent folder finds nothing either."""
    why = next((window.new_cache for window in reversed(result.sample_windows) if window.new_cache), "")
    missed = [row for row in result.compiles if row.cache == "miss"]
    took = sum(row.compile_seconds or 0.0 for row in missed)
    if not why or any(row.cache == "hit" for row in result.compiles) or took < NEW_CACHE_SHARE * claims.work:
        return
    places = (window.debug_settings_at.get(_CACHE_FOLDER) for window in reversed(result.sample_windows))
    yield Finding(
        "cache_never_found",
        f"the persistent compilation cache had none of {counted(sum(row.count for row in missed), 'program')}, and its "
        f"folder is new at each start ({_NEW_FOLDERS.get(why, why)}): {seconds(took)} of backend compilation are "
        "repeated each time",
        (next(filter(None, places), None),),
        seconds=sum(row.compile_seconds or 0.0 for row in claims.free_rows(missed)) or None,
    )


_SETTINGS = {
    "jax_debug_nans": "each call waits for its results and looks for NaN in them",
    "jax_debug_infs": "each call waits for its results and looks for infinities in them",
    "jax_disable_jit": "functions under jax.jit run one operation at a time",
    "jax_disable_most_optimizations": "XLA leaves out most of its optimisations",
    "jax_check_tracer_leaks": "each trace is searched for leaked tracers, and none is kept",
}
_STILL = 0.95
"""Share of the last sample window with the profiler on from which it was on at its end."""
_MOSTLY = 0.5
"""Share of the program's own time under a setting from which the whole program counts as running with it."""


@check(
    "a debugging option is on",
    "jax_debug_nans, jax_debug_infs, jax_disable_jit, jax_disable_most_optimizations and jax_check_tracer_leaks "
    "make calls or compilations slower on purpose. Figures taken with them are not those of the program.",
    "Turn it off, and measure again. jax.debug_nans() as a context manager looks at a part of the program.",
)
def debug_settings(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    worked = [
        (window, sum(took for state, took in window.states.items() if state != "import"))
        for window in result.sample_windows
    ]
    whole = sum(took for _, took in worked)
    for name, words in _SETTINGS.items():
        took = sum(took for window, took in worked if name in window.debug_settings)
        if took > _MOSTLY * whole:
            yield Finding(
                "debug_settings",
                f"{name} was on: {words}",
                (next((window.debug_settings_at.get(name) for window in reversed(result.sample_windows)), None),),
                own_fix=f"Turn it off, and measure again: jax.config.update('{name}', False), or {name.upper()}=0 in "
                "the environment.",
            )


@check(
    "the program's own profiler is on for most of the run",
    "While jax.profiler.start_trace is on, each operation of the host and of the device is written down in memory: "
    "short steps take longer, memory grows, and stop_trace takes as long as there is to write.",
    "Profile some steps after the first ones: jax.profiler.start_trace before them, stop_trace after them. Figures "
    "taken with it on are not those of the program.",
)
def profiler_on(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the program had the profiler on for most of its own time, or never switched it off."""
    windows = result.sample_windows
    whole = sum(took for window in windows for state, took in window.states.items() if state != "import")
    took = sum(window.profiled_seconds for window in windows)
    if not took or took <= _MOSTLY * whole:
        return
    last = windows[-1]
    on_at_end = last.profiled_seconds >= _STILL * (last.monotonic_seconds - last.began_seconds)
    never = ", and never stopped" if result.ended and on_at_end else ""
    yield Finding(
        "profiler_on",
        f"jax.profiler was on for {seconds(took)}, {percent(min(1.0, took / whole))} of the program's own time{never}",
        (next((window.profiled_from for window in reversed(windows) if window.profiled_from), None),),
    )


@check(
    "large arrays closed over become constants",
    "An array that a function closes over is copied into its program: by every compilation, which may fold it for "
    "minutes, and in device memory once for each program.",
    "Pass the arrays as arguments instead of closing over them.",
)
def captured_constants(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function in result.functions:
        rows = [row for row in function.rows if row.constants and _constant_bytes(row) >= CONSTANT_BYTES]
        if not rows:
            continue
        row = max(rows, key=_constant_bytes)
        types = [constant.type for constant in row.constants]
        named = ", ".join(types[:_LINES_NAMED]) + (", …" if len(types) > _LINES_NAMED else "")
        copies = sum(each.count for each in rows)
        again = f", in each of its {integer(copies)} compilations" if copies > 1 else ""
        yield Finding(
            "captured_constants",
            f"the program of `{safe(function.function)}` holds {bytes_(_constant_bytes(row))} of constants "
            f"({safe(named)}){again}",
            (function.defined_at, function.called_from),
            function=function.function,
            bytes=_constant_bytes(row),
        )


def _constant_bytes(row: Compiled) -> int:
    return sum(constant.bytes or 0 for constant in row.constants)
