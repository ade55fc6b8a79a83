"""Findings about what the hot loop calls: operations outside any jit, and compiled functions, each at a cost a call.

Their seconds are estimates, as in `loops`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import DEVICE, DISPATCH
from jaxprof.analysis.programs.call_bounds import leaves_of
from jaxprof.analysis.programs.functions import array_type, row_seconds
from jaxprof.analysis.programs.loop_time import HotLoop
from jaxprof.analysis.programs.result import ProgramResult, is_single
from jaxprof.analysis.programs.spots import Spot
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.base.units import bytes_, counted, integer, seconds
from jaxprof.events import STAGES, Compiled, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import (
    KEPT_SHARE,
    LARGE_BYTES,
    LEAST_OF_LOOP,
    LINES_NAMED,
    Claims,
    check,
    cost_text,
    finding_of_lines,
    is_large_part,
    is_of_compiled_function,
    is_worth_changing,
    lines_of,
    loop_line,
    most_through,
    seconds_by,
    sum_samples,
    sum_seconds,
)

CALLS_SHARE = 0.5
"""Share of the hot loop from which calling compiled functions is what bounds it."""
WRAPPED_SHARE = 0.25
"""`CALLS_SHARE` if the reason for the calls' cost is known, or if no part of the loop is known to be larger."""
MANY_LEAVES = 200
"""Number of argument leaves from which looking at them dominates a call: some 0.4 µs each."""
_OPERANDS = 4
"""Largest number of arguments that an operation uses on average."""
SET_UP_ITERATIONS = 20
"""Number of iterations below which a loop may be a set-up that makes the parameters of some layers."""
MOSTLY_COMPILED = 4.0
"""Ratio of compiling a set-up loop's operations to running them above which only compiling counts."""
SLOWEST = 2e8
"""Bytes of its largest argument that an elementwise operation reads in a second at least, on a busy machine, too."""
_ONE_FUNCTION_SHARE = 2 / 3
"""Share of the operations that a function must hold to be the one to compile."""
_ONE_CALL = (
    "Give one call more to do: many iterations in one compiled function (jax.lax.fori_loop or scan around them), "
    "or many independent problems at once (jax.vmap); and pass fewer, larger arrays."
)
_ONE_PASS = frozenset({
    "abs", "absolute", "add", "astype", "broadcast_in_dim", "clip", "concatenate", "convert_element_type", "copy",
    "divide", "exp", "full_like", "log", "maximum", "minimum", "multiply", "negative", "power", "select_n", "square",
    "sqrt", "subtract", "tanh", "true_divide", "where",
})  # fmt: skip
"""Operations that take as long as memory takes to read and write their arrays once."""
_FUSED_WITH_THEM = _ONE_PASS | {
    "all", "any", "cos", "erf", "gelu", "integer_pow", "log1p", "log_softmax", "logistic", "logsumexp", "max", "mean",
    "min", "prod", "reduce_max", "reduce_min", "reduce_sum", "relu", "rsqrt", "sigmoid", "silu", "sin", "softmax",
    "std", "sum", "var",
}  # fmt: skip
"""Operations that XLA fuses with those: reductions, and functions of each element."""
_ONE_FUNCTION = (
    "Put the operations {} into one function with jax.jit: XLA fuses them, and there is one dispatch instead of one "
    "for each operation."
)
_KEEP = (
    "Keep the array itself: arrays of JAX never change, and `best = params` needs no copy. If the compiled function "
    "donates it, copy only what is used later, every N steps, or do not donate it."
)
_BOUND_LIBRARY = "flax.nnx"
"""Library whose compiled function a finding names, because the fix is about that function."""
_LIBRARIES = {
    _BOUND_LIBRARY: "nnx.jit takes the modules apart and puts them together again in each call: bind them once with "
    "nnx.cached_partial(step, model, optimizer). Where they are bound already, nnx.split them once, and jax.jit a "
    "function of the state.",
    "equinox": "eqx.filter_jit sorts the leaves of its arguments in each call: eqx.partition the model once, and "
    "jax.jit a function of its arrays that combines them (eqx.combine), or put many iterations into one call.",
}
"""Fix by the library whose Python surrounds the calls."""
_PASS_USED = (
    "Pass only the leaves that it uses: each call looks at all of them, whether they are used or not, before it can "
    "launch anything."
)
_FEWER_LEAVES = (
    "Pass fewer, larger arrays (parameters of one shape stacked into one, as jax.lax.scan over layers takes them), or "
    "put many iterations into one call: each call looks at all of them before it can launch anything."
)


@check(
    "operations run one by one, outside any jit",
    "Each operation outside jit is a program of its own with a dispatch of its own; nothing is fused.",
    "Put the operations into one function with jax.jit.",
    sampled=True,
)
def op_by_op_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    called = {loop_line(result, spot) for spot in loop.spots if is_of_compiled_function(result, spot)}
    single = _operations(loop.spots)
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if _belongs_to_operations(result, spot)
        and not (spot.kind == "call" and loop_line(result, spot) in called and (spot.location, spot.call) not in single)
    ]
    if (
        not any(spot.kind == "dispatch" for spot in spots) or loop.library or not is_large_part(claims, spots)
    ):  # a library's loop is not the reader's to change
        return
    rows = [row for row in claims.free_rows(result.compiles) if is_single(row) and _is_run_in(result, row, spots)]
    named = dict.fromkeys(spot.call for spot in spots if spot.kind == "dispatch")
    kinds = list(dict.fromkeys(row.function for row in rows)) or list(named)
    if len(kinds) < 2:
        return
    running, compiling = sum_seconds(spots), sum(map(row_seconds, rows))
    if running < LEAST_OF_LOOP * claims.loop:
        return  # recompilations in the loop outweigh them
    if running < loop.parts[DEVICE]:
        return  # the device works meanwhile, and would be waited for all the same
    if not claims.worth((running + compiling) * (1 - 1 / len(kinds)), sum_samples(spots)):
        return
    if compiling > MOSTLY_COMPILED * running and loop.times.count < SET_UP_ITERATIONS:
        return  # a set-up, whose operations cost as much as compiling them
    took = claims.take(spots, rows)
    listed = ", ".join(kinds[:LINES_NAMED]) + (", …" if len(kinds) > LINES_NAMED else "")
    compiled = f"; compiling them {seconds(took - running, 2)}" if took > running else ""
    yield Finding(
        f"{integer(len(kinds))} kinds of operations run one by one in the loop ({safe(listed)}): "
        f"{cost_text(result, running)}{compiled}",
        lines_of(result, spots),
        own_fix=_ONE_FUNCTION.format(_span(result, spots)),
        seconds=took,
        saves_seconds=took * (1 - 1 / len(kinds)),
        estimate=True,
        announced_seconds=compiling,
    )


@check(
    "operations outside any jit on large arrays",
    "Each operation outside jit reads and writes its arrays whole. A copy of parameters, a sum of gradients or an "
    "average of weights then costs as much as memory takes for all of them, beside a step that computes little more.",
    "Put them into the compiled function whose results they take: XLA fuses them with what it computes, and with "
    "donate_argnums they are written in place. A copy is needed only of what is donated.",
    sampled=True,
)
def large_operations(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the device is busy with copies and elementwise operations on large arrays, dispatched one by
    one. Products and the like take as long in a compiled function."""
    loop = result.hot
    single = _operations(loop.spots)
    rows = grouped((row.called_from, row) for row in result.compiles if is_single(row))
    alone = all(map(is_single, result.compiles))  # no compiled function could take them in
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.kind in ("compiled", "dispatch")
        and (spot.location, spot.call) in single
        and _moves_large_arrays(result, spot, rows.get(spot.location, ()), _FUSED_WITH_THEM if alone else _ONE_PASS)
    ]
    took = sum_seconds(spots)
    if loop.library or not is_worth_changing(claims, spots, took / 2):
        return
    claims.spared += sum_seconds(spot for spot in spots if loop.part(spot) == DEVICE)
    named = list(dict.fromkeys(row.function for spot in spots for row in rows[spot.location]))
    size = max(map(_largest_bytes, (row for spot in spots for row in rows[spot.location])))
    what = f"operations outside any jit ({safe(', '.join(named))}) on arrays of up to {bytes_(size)}"
    copied = set(named) <= {"copy"}
    saves = took if copied else took / 2  # the fused ones still write their results
    fix = _ONE_FUNCTION.format(_span(result, spots)) if alone else None
    found = finding_of_lines(result, claims, what, spots, saves, own_fix=_KEEP if copied else fix)
    yield replace(found, at_most=True)


def _moves_large_arrays(result: ProgramResult, spot: Spot, rows: Sequence[Compiled], fused: Collection[str]) -> bool:
    """Return whether the operations at a line are all among `fused`, on large arrays, and take no longer than these:
    the host may also wait there for what the device computed before."""
    size = max(map(_largest_bytes, rows), default=0)
    if size < LARGE_BYTES or not all(row.function.strip("_") in fused for row in rows):
        return False
    loop = result.hot
    site, iterations = spot.site_in(loop.key), loop.times.iterations_in(loop.seconds)
    each = loop.times.each(site.line) if site is not None and site == spot.sites[0] else None
    if each is None and iterations:  # in a loop of a function that the loop calls, or not timed
        each = spot.seconds / iterations
    return each is None or each <= sum(map(_largest_bytes, rows)) / SLOWEST


def _largest_bytes(row: Compiled) -> int:
    """Return the bytes of the largest array among the arguments."""
    return max((array.bytes for leaf in row.signature if (array := array_type(leaf.type))), default=0)


def _operations(spots: Sequence[Spot]) -> set[tuple[SourceLocation, str]]:
    """Return the places and calls of operations outside any jit, a library's among them: `rngs.params()`."""
    return {(spot.location, spot.call) for spot in spots if spot.kind == "dispatch" and spot.call}


def _belongs_to_operations(result: ProgramResult, spot: Spot) -> bool:
    """Return whether a spot is an operation outside any jit, or the Python code around such operations."""
    if spot.kind == "dispatch":
        return bool(spot.sites)
    site = spot.site_in(result.hot.key)
    return site is not None and site.line in result.hot.eager and spot.kind in ("host", "data", "call")


def _is_run_in(result: ProgramResult, row: Compiled, spots: Sequence[Spot]) -> bool:
    """Return whether a single operation is called from the loop, or from a function that the loop calls."""
    at, key = row.called_from, result.hot.key
    if at.line is None or key is None:
        return False
    if (at.file, at.function) == key[:2]:
        return result.hot.holds(at)
    return any((spot.location.file, spot.location.function) == (at.file, at.function) for spot in spots)


@check(
    "much of the loop's time goes to calling compiled functions",
    "A call of a compiled function costs some 5 to 20 µs on the host, whatever it computes, and more for each "
    "leaf of its arguments, used or not. nnx.jit and eqx.filter_jit take modules apart in Python in each call, "
    "which can be milliseconds. Steps shorter than that leave the device idle.",
    "Give one call more to do: many iterations in lax.scan or fori_loop, many problems in vmap; pass fewer, larger "
    "arrays; nnx.cached_partial, or split or partition the model once and jax.jit a function of its arrays.",
    sampled=True,
)
def dispatch_bound(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the loop spends its time calling compiled functions. The functions are small, a library's
    Python surrounds them, or their arguments have many leaves."""
    loop = result.hot
    spots = [spot for spot in claims.free_spots(loop.spots) if loop.part(spot) == DISPATCH and spot.sites]
    # Where the thread computes the compiled function itself, launching takes only a part of the call.
    inline = [spot for spot in claims.free_spots(loop.spots) if spot.kind == "inline" and spot.sites]
    whole = sum_seconds(spot for spot in loop.spots if spot.kind == "inline")
    share = loop.launching.get(DISPATCH, 0.0) / whole if whole else 0.0
    if share:
        spots += [replace(spot, seconds=share * spot.seconds, samples=share * spot.samples) for spot in inline]
    calls = loop.spots_accounted_for([spot for spot in spots if spot.kind != "dispatch"])
    locations = {spot.location for spot in calls} | {loop_line(result, spot) for spot in calls}
    compiled = [row for row in result.compiles if not is_single(row)]
    names = {name for spot in calls for name in (spot.call, spot.call.rpartition(".")[2].removesuffix("()")) if name}
    many_leaves = [
        row
        for row in compiled
        if (row.called_from in locations or row.function in names) and leaves_of(row) >= MANY_LEAVES
    ]
    library, largest = most_through(calls), max(many_leaves, key=leaves_of, default=None)
    library = library if _wraps(result, library) else ""
    certain = library or largest is not None or _is_largest(loop)
    least = WRAPPED_SHARE if certain else CALLS_SHARE
    took = sum_seconds(calls)
    saves = (1 - KEPT_SHARE) * sum_seconds(spot for spot in calls if not claims.hides(spot))
    if not calls or took < least * claims.loop or not claims.worth(saves, sum_samples(calls)):
        return
    rate = loop.times.per_second  # timing its lines makes a brief iteration longer
    each = f" (an iteration takes {seconds(1 / rate, 2)})" if rate else ""
    does = "spends its time calling compiled functions"
    fix, function = _ONE_CALL, ""
    if library:
        functions = {row.function for row in compiled if row.called_from in locations}
        if library == _BOUND_LIBRARY and len(functions) == 1:
            function = functions.pop()
        does = f"calls compiled functions through {safe(library)}, whose Python takes the time"
        fix = _LIBRARIES.get(library, f"Call {safe(library)} less often: {_ONE_CALL[0].lower()}{_ONE_CALL[1:]}")
    elif largest is not None:
        mostly_unused = largest.operations is not None and largest.operations * _OPERANDS < leaves_of(largest)
        of = (
            f", most of them unused: its program has {counted(largest.operations or 0, 'operation')}"
            if mostly_unused
            else ""
        )
        does = f"calls `{safe(largest.function)}` with {integer(leaves_of(largest))} leaves{of}"
        fix, function = (_PASS_USED, largest.function) if mostly_unused else (_FEWER_LEAVES, "")
    found = finding_of_lines(result, claims, f"the loop {does}{each}", calls, saves, own_fix=fix)
    yield replace(found, function=function)


def _is_largest(loop: HotLoop) -> bool:
    """Return whether no part of the loop is known to take more than the calls; False if waits for a processor decide
    what each takes."""
    parts = loop.undelayed or loop.parts
    return loop.preempted + loop.waited <= loop.seconds / 2 and parts[DISPATCH] >= max(parts.values())


def _wraps(result: ProgramResult, library: str) -> bool:
    """Return whether a compiled function was seen at work, or compiled, below a library's call of it. A library may
    also only call operations, next to the functions of the loop."""
    single = _operations(result.spots)
    inside = [spot for spot in result.spots if spot.through == library]
    working = (spot for spot in inside if spot.kind in ("compiled", "inline", "fed"))
    return any((spot.location, spot.call) not in single for spot in working) or any(
        spot.kind in STAGES and is_of_compiled_function(result, spot) for spot in inside
    )


def _span(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Return text such as `at train.py:40-44`, the lines of the function that holds most of the operations. If no
    function does, these are the lines of the loop that lead to them."""
    inside = seconds_by(spots, lambda spot: replace(spot.location, line=None))
    function = next(iter(inside))
    locations = [spot.location for spot in spots if replace(spot.location, line=None) == function]
    if inside[function] < _ONE_FUNCTION_SHARE * sum(inside.values()):
        locations = [loop_line(result, spot) for spot in spots]
    most = locations[0]
    lines = [location.line for location in locations if location.file == most.file and location.line is not None]
    if not lines:
        return "of the loop"
    last = f"-{max(lines)}" if max(lines) > min(lines) else ""
    return f"at {safe(SourceLocation(most.file, min(lines)).short(result.directory))}{last}"
