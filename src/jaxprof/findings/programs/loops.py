"""Findings about the host's work in the hot loop while the device could compute: data, fetches, copies, dispatch,
other.

Seconds rest on stack samples and on the timed lines of the loop: they are estimates, and the findings are marked as
such. Each check claims what it reports. The saving of a fix is an upper bound if the device may be busy anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.programs import COMPILE, DATA, DEVICE, DISPATCH, HOST
from jaxprof.analysis.programs.functions import array_type, row_seconds
from jaxprof.analysis.programs.loop_time import BEYOND, IDLE, Spot, leaves_of
from jaxprof.analysis.programs.result import ProgramResult, is_single
from jaxprof.analysis.programs.verdict import interval
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import bytes_, counted, integer, percent, seconds
from jaxprof.events import STAGES, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import Claims, check

if TYPE_CHECKING:
    from jaxprof.events import Compiled

LARGE_BYTES = 1 << 20
"""Bytes of an array from which fetching it counts as a copy, not as a wait for a value."""
CALLS_SHARE = 0.5
"""Share of the hot loop from which calling compiled functions is what bounds it."""
WRAPPED_SHARE = 0.25
"""`CALLS_SHARE` if the reason for the calls' cost is known, or if no part of the loop is larger."""
MANY_LEAVES = 200
"""Number of argument leaves from which looking at them dominates a call: some 0.4 µs each."""
_OPERANDS = 4
"""Largest number of arguments that an operation uses on average."""
SYNC_SHARE = 0.25
"""Share of the hot loop spent waiting for values fetched in each iteration that is reported whatever a fix saves."""
SYNC_STEP_SECONDS = 0.02
"""Seconds of an iteration above which not waiting at the end of each iteration gains nothing."""
LEAST_SAVED = 0.05
"""Share of the hot loop that not waiting must save if its iterations are longer."""
SET_UP_ITERATIONS = 20
"""Number of iterations below which a loop may be a set-up that makes the parameters of some layers."""
MOSTLY_COMPILED = 4.0
"""Ratio of compiling a set-up loop's operations to running them above which only compiling counts."""
FEW_ITERATIONS = 0.5
"""Share of the loop's iterations below which a line already runs only every few iterations."""
BRIEF_SECONDS = 10e-6
"""Seconds below which a line of Python is a few operations of the interpreter, and no work that could be left out."""
SLOWEST = 2e8
"""Bytes of its largest argument that an elementwise operation reads in a second at least, on a busy machine, too."""
LEAST_OF_LOOP = 0.1
"""Share of the hot loop that the lines of a finding must take; below it they are not the first thing to change."""
KEPT_SHARE = 0.1
"""Share of a cost that remains if it is paid every ten iterations, or once for many."""
_STEPPING = ("", "range()", "enumerate()", "zip()", "reversed()")
"""Calls in the head of a loop that only step to the next number or item."""
_ONE_FUNCTION_SHARE = 2 / 3
"""Share of the operations that a function must hold to be the one to compile."""
_LINES_NAMED = 3
_FETCHES = re.compile(r"(^|\.)(device_get|asarray|array|copy|ascontiguousarray|tolist|save\w*|dump\w*)\(\)$")
_BY_NAME = re.compile(r"block_until_ready")
_FROM_ANOTHER = re.compile(r"\.(get|recv)\(\)$")
_DECIDE_SELDOM = (
    "While the host waits, it cannot dispatch the next step: look at the value every N iterations, or move the loop "
    "with its condition into one compiled function (jax.lax.while_loop)."
)
_BETWEEN = (
    "The next call is given what is made of this value, so that it can neither be fetched less often nor prepared "
    "ahead: compute what is made of it in the compiled function (jax.numpy), or do one round trip for many at once (a "
    "batch of problems, environments or sequences)."
)
_SELDOM = (
    "It is done in few iterations already, and takes this long all the same: do less of it, or less often still, or "
    "beside the loop (what waits in a thread, what computes in Python in a process)."
)
_CALLED_SELDOM = (
    "It is called in few iterations already, and takes this long all the same: do less in it, or return the values and "
    "use them after the loop; what jax.numpy can compute need not leave the compiled function."
)
_LIBRARY_LOOP = (
    "The loop is in {0}, which is not yours to change: give it options by which it does less in each iteration (no "
    "progress bar, log, checks or callbacks) or more work in fewer ones (larger batches or chunks), or call a part of "
    "{0} that loops in a compiled function."
)
_PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\](\w+)")
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
_KEEP = (
    "Keep the array itself: arrays of JAX never change, and `best = params` needs no copy. If the compiled function "
    "donates it, copy only what is used later, every N steps, or do not donate it."
)
_BOUND_LIBRARY = "flax.nnx"
"""Library whose compiled function a finding names, because the fix is about that function."""
_LIBRARIES = {
    _BOUND_LIBRARY: "nnx.jit takes the modules apart and puts them together again in each call: bind them once with "
    "nnx.cached_partial(step, model, optimizer), or, where they are, nnx.split them once, and jax.jit a function of "
    "the state.",
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
_WORKER_CALLS = re.compile(r"\.(get|recv|result)\(\)$")
"""Calls that already wait for another thread or process, if they wait for data at all."""
_MORE_WORKERS = (
    "What prepares the batches beside the loop is slower than the steps: give it less to do for each batch, more "
    "processes (more threads only where it waits or computes outside Python: Python runs in one at a time), or batches "
    "that were prepared once and kept; a longer queue only moves the wait."
)


def _of_lines(
    result: ProgramResult,
    claims: Claims,
    code: str,
    what: str,
    spots: Sequence[Spot],
    saves: float,
    within: str = "",
    own_fix: str | None = None,
) -> Finding:
    """Claim the spots, and return the finding about their lines; `within` follows their cost in its sentence. What is
    done in a library's loop is changed where the user calls it."""
    took = claims.take(spots)
    package = _PACKAGE.search(result.hot.key[0]) if result.hot.library and result.hot.key is not None else None
    if package is not None and code != "data_waits":
        own_fix = _LIBRARY_LOOP.format(safe(package[1]))
    return Finding(
        code,
        f"{what}: {_calls_text(result, spots)}, {_cost_text(result, took)}{within}{_lines_text(result, spots)}",
        _places(result, spots),
        own_fix=own_fix,
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


@check(
    "a compiled function calls Python in each iteration",
    "jax.debug.print, jax.debug.callback, io_callback and pure_callback leave the compiled function: their "
    "arguments are copied to the host, Python runs, and what depends on it waits.",
    "Call back every N iterations (jax.lax.cond around jax.debug.print or the callback), or return the values and "
    "use them after the loop; what jax.numpy can compute need not leave the compiled function.",
)
def callback_in_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    spots = [spot for spot in claims.free_spots(result.hot.spots) if spot.kind == "callback" and spot.sites]
    took = _seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not _is_worth_changing(result, claims, spots, saves):
        return
    what = "compiled functions of the loop call Python on the host, and wait for it"
    most = _most_through(spots)
    within = f", in {safe(most)}()" if most else ""
    fix = _CALLED_SELDOM if _is_seldom(result, spots) else None
    yield _of_lines(result, claims, "callback_in_loop", what, spots, saves, within, fix)


@check(
    "large arrays are copied to the host in each iteration",
    "np.asarray, jax.device_get or saving inside the loop waits for the device and copies the arrays each time.",
    "Fetch large arrays every N iterations, or after the loop; for checkpoints have a thread fetch and write them "
    "(orbax's AsyncCheckpointer), so that the loop goes on.",
)
def repeated_fetch(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    large = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.kind in ("transfer", "sync") and (spot.bytes or 0) >= LARGE_BYTES and _FETCHES.search(spot.call)
    ]
    lines = {spot.place for spot in large}
    spots = [
        spot for spot in claims.free_spots(loop.spots) if spot.place in lines and spot.kind in ("transfer", "sync")
    ]
    took = _seconds(spots)
    copied = _seconds(spot for spot in spots if spot.kind == "transfer")
    saves = (1 - KEPT_SHARE) * (copied + min(took - copied, max(0.0, claims.left - copied)))
    if not spots or not _in_each_iteration(result, spots) or not claims.worth(saves, _samples(spots)):
        return
    size = max(spot.bytes or 0 for spot in spots)
    what = f"each iteration of the loop copies arrays of up to {bytes_(size)} to the host"
    fix = _BETWEEN if _seconds(_between(result, spots)) > took / 2 else None
    yield _of_lines(result, claims, "repeated_fetch", what, spots, saves, own_fix=fix)


@check(
    "the host waits for a value in each iteration",
    "float(), .item(), print or a comparison needs a number on the host. JAX dispatches ahead of the device; a "
    "fetched value ends that, and the device idles while the host prepares the next step.",
    "While the host waits, it cannot dispatch the next step: keep the values as arrays and fetch them every N "
    "steps or after the loop (jax.device_get of a list), and print with jax.debug.print.",
    sampled=True,
)
def host_sync(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if (spot.kind == "sync" or (spot.kind == "read" and spot.state == "device_busy"))
        and not _BY_NAME.search(spot.call)
        and not _is_of_compiled_function(result, spot)
        and spot.sites
    ]
    read = {(spot.place, spot.call) for spot in spots if spot.kind == "read"}
    spots += [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot not in spots and spot.kind == "read" and (spot.place, spot.call) in read
    ]
    took = _seconds(spots)
    if not spots or not _in_each_iteration(result, spots):
        return
    iteration_seconds = loop.times.seconds / loop.times.count if loop.times.count else None
    brief = iteration_seconds is None or iteration_seconds < SYNC_STEP_SECONDS
    # Without this wait, a long step waits as long for a processor: its device computes on, and has the same ones.
    saves = min(took, max(0.0, claims.steady - took) if brief else max(0.0, claims.left - loop.preempted))
    low, _ = interval(min(1.0, took / loop.seconds), loop.samples) if loop.seconds else (0.0, 1.0)
    waits = low >= SYNC_SHARE and iteration_seconds is not None and iteration_seconds < SYNC_STEP_SECONDS
    gains = saves >= LEAST_SAVED * loop.seconds and claims.worth(saves, _samples(spots))
    if not gains and not (waits and took >= claims.least):
        return
    claims.waits = took if brief else None
    tested = _seconds(spot for spot in spots if spot.call == "bool()")  # by an `if` or a `while`
    fix = _DECIDE_SELDOM if tested > took / 2 else None
    if _seconds(_between(result, spots)) > took / 2:
        fix = _BETWEEN
    what = "the host waits for a value in each iteration of the loop"
    finding = _of_lines(result, claims, "host_sync", what, spots, saves, own_fix=fix)
    busy = "" if saves > took / 2 else "; the device is busy meanwhile"
    yield replace(finding, message=f"{finding.message}{busy}")


@check(
    "the same data is put on the device in each iteration",
    "jax.device_put, jnp.array or jnp.asarray is called in the loop with what nothing in the loop changes, as far as "
    "its source shows. A list is converted on the host first, number by number.",
    "Put it on the device once, before the loop, and pass that array.",
    sampled=True,
)
def unchanging_transfer(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if calls that put data on a device get the same in each iteration. New data in each iteration,
    such as the next batch, is none, and neither is what the source does not show to be the same."""
    loop = result.hot
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.kind in ("transfer", "data") and (site := spot.site_in(loop.key)) is not None and site.unchanging
    ]
    took = _seconds(spots)
    if not spots or not _in_each_iteration(result, spots) or not claims.worth(took, _samples(spots)):
        return
    converted = _seconds(spot for spot in spots if spot.kind == "data") > took / 2
    within = ", nearly all of it to convert it to an array on the host, not to copy it" if converted else ""
    what = "each iteration of the loop puts the same data on the device, as far as its source shows"
    yield _of_lines(result, claims, "unchanging_transfer", what, spots, took, within)


def _is_of_compiled_function(result: ProgramResult, spot: Spot) -> bool:
    """Return whether the call of a compiled function itself waits. Equinox's `filter_jit` does, to raise errors of the
    device where they arise."""
    name = spot.call.removesuffix("()").rpartition(".")[2]
    return bool(name) and any(row.function == name and not is_single(row) for row in result.compiles)


@check(
    "operations run one by one, outside any jit",
    "Each operation outside jit is a program of its own with a dispatch of its own; nothing is fused.",
    "Put the operations into one function with jax.jit.",
    sampled=True,
)
def op_by_op_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    called = {_loop_line(result, spot) for spot in loop.spots if _is_of_compiled_function(result, spot)}
    single = _operations(loop.spots)
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if _belongs_to_operations(result, spot)
        and not (spot.kind == "call" and _loop_line(result, spot) in called and (spot.place, spot.call) not in single)
    ]
    if (
        not any(spot.kind == "dispatch" for spot in spots) or loop.library or not _is_large_part(result, spots)
    ):  # a library's loop is not the reader's to change
        return
    rows = [row for row in claims.free_rows(result.compiles) if is_single(row) and _is_run_in(result, row, spots)]
    named = dict.fromkeys(spot.call for spot in spots if spot.kind == "dispatch")
    kinds = list(dict.fromkeys(row.function for row in rows)) or list(named)
    if len(kinds) < 2:
        return
    running, compiling = _seconds(spots), sum(map(row_seconds, rows))
    if running < LEAST_OF_LOOP * loop.seconds:
        return  # recompilations in the loop outweigh them
    if running < loop.parts[DEVICE]:
        return  # the device works meanwhile, and would be waited for all the same
    if not claims.worth((running + compiling) * (1 - 1 / len(kinds)), _samples(spots)):
        return
    if compiling > MOSTLY_COMPILED * running and loop.times.count < SET_UP_ITERATIONS:
        return  # a set-up, whose operations cost as much as compiling them
    took = claims.take(spots, rows)
    listed = ", ".join(kinds[:_LINES_NAMED]) + (", …" if len(kinds) > _LINES_NAMED else "")
    compiled = f"; compiling them {seconds(took - running, 2)}" if took > running else ""
    yield Finding(
        "op_by_op_loop",
        f"{integer(len(kinds))} kinds of operations run one by one in the loop ({safe(listed)}): "
        f"{_cost_text(result, running)}{compiled}",
        _places(result, spots),
        own_fix=f"Put the operations {_span(result, spots)} into one function with jax.jit: XLA fuses them, and there "
        "is one dispatch instead of one for each operation.",
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
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.kind in ("compiled", "dispatch")
        and (spot.place, spot.call) in single
        and _moves_large_arrays(result, spot, rows.get(spot.place, ()))
    ]
    took = _seconds(spots)
    if loop.library or not _is_worth_changing(result, claims, spots, took / 2):
        return
    claims.spared += _seconds(spot for spot in spots if loop.part(spot) == DEVICE)
    named = list(dict.fromkeys(row.function for spot in spots for row in rows[spot.place]))
    size = max(map(_largest_bytes, (row for spot in spots for row in rows[spot.place])))
    what = f"operations outside any jit ({safe(', '.join(named))}) on arrays of up to {bytes_(size)}"
    copied = set(named) <= {"copy"}
    saves = took if copied else took / 2  # the fused ones still write their results
    found = _of_lines(result, claims, "large_operations", what, spots, saves, own_fix=_KEEP if copied else None)
    yield replace(found, at_most=True)


def _moves_large_arrays(result: ProgramResult, spot: Spot, rows: Sequence[Compiled]) -> bool:
    """Return whether the operations at a line are all copies and the like, on large arrays, and take no longer than
    these: the host may also wait there for what the device computed before."""
    size = max(map(_largest_bytes, rows), default=0)
    if size < LARGE_BYTES or not all(row.function.strip("_") in _ONE_PASS for row in rows):
        return False
    site = spot.site_in(result.hot.key)
    each = result.hot.times.each(site.line) if site is not None and site == spot.sites[0] else None
    return each is None or each <= sum(map(_largest_bytes, rows)) / SLOWEST


def _largest_bytes(row: Compiled) -> int:
    """Return the bytes of the largest array among the arguments."""
    return max((array.bytes for leaf in row.signature if (array := array_type(leaf.type))), default=0)


def _operations(spots: Sequence[Spot]) -> set[tuple[SourceLocation, str]]:
    """Return the places and calls of operations outside any jit, a library's among them: `rngs.params()`."""
    return {(spot.place, spot.call) for spot in spots if spot.kind == "dispatch" and spot.call}


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
    return any((spot.place.file, spot.place.function) == (at.file, at.function) for spot in spots)


@check(
    "the loop waits for its data",
    "The device is idle until the host has made or fetched the next batch.",
    "Prepare the next batch while the device works: in a thread or in processes (a queue, grain, a DataLoader with "
    "workers), or prepare all batches once before the loop where they fit into memory.",
    sampled=True,
)
def data_waits(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if loop.part(spot) == DATA or (spot.state == "waiting" and _FROM_ANOTHER.search(spot.call))
    ]
    took = _seconds(spots)
    # one worker hides as much time as the device takes; two workers halve the wait
    saves = max(min(took, claims.steady - took), took / 2)
    if not _is_worth_changing(result, claims, spots, saves):
        return
    yield _of_lines(
        result, claims, "data_waits", "the loop waits for what it passes to the device", spots, saves,
        own_fix=_MORE_WORKERS if _WORKER_CALLS.search(spots[0].call) else None,
    )  # fmt: skip


@check(
    "host work between one compiled call and the next",
    "Python or NumPy makes of a call's results what the next call is given. The device waits for it, and it can "
    "neither run ahead nor be left out.",
    "Compute it in the compiled function (jax.numpy instead of NumPy), or do one round trip for many at once: a batch "
    "of problems, environments or sequences.",
    sampled=True,
)
def host_between(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if lines of the loop make arguments of its compiled functions from their results."""
    spots = list(_between(result, _host_spots(result, claims)))
    saves = (1 - KEPT_SHARE) * _seconds(spots)
    if _is_worth_changing(result, claims, spots, saves):
        what = "the loop makes on the host, of results, what its next call is given"
        yield _of_lines(result, claims, "host_between", what, spots, saves)


def _between(result: ProgramResult, spots: Sequence[Spot]) -> Iterator[Spot]:
    """Yield the spots that make arguments of the loop's compiled functions from their results."""
    return (spot for spot in spots if (site := spot.site_in(result.hot.key)) is not None and site.between)


@check(
    "host work in the loop that the device does not need",
    "Logging, plots, files, statistics or sleeping inside the loop make every iteration longer.",
    "Do it every N iterations, after the loop, or beside it (what waits in a thread, what computes in Python in a "
    "process); computations on arrays can go into the compiled function.",
    sampled=True,
)
def host_work(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if lines of the loop compute or wait on the host for nothing that its compiled functions use."""
    loop = result.hot
    every = _host_spots(result, claims)
    between = set(_between(result, every))
    spots = [spot for spot in every if spot not in between]
    took = _seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not _is_worth_changing(result, claims, spots, saves):
        return
    waits = _seconds(spot for spot in spots if spot.state == "waiting") > took / 2
    lines = {site.line for spot in spots if (site := spot.site_in(loop.key)) is not None}
    read = any(spot.call or site.call for spot in spots for site in spot.sites)  # without the source nobody knows
    beside = "" if lines & loop.working or not read else ", and no result of this goes to the device"
    what = f"the loop {'waits' if waits else 'works'} on the host{beside}"
    fix = _SELDOM if _is_seldom(result, spots) else None
    yield _of_lines(result, claims, "host_work", what, spots, saves, own_fix=fix)


def _host_spots(result: ProgramResult, claims: Claims) -> list[Spot]:
    """Return the spots of the loop at which the host computes or waits. Time that a program sleeps because it has
    nothing to do cannot be saved."""
    loop = result.hot
    asleep = loop.asleep if result.verdict.kind == IDLE else ()
    return [
        spot
        for spot in claims.free_spots(loop.spots)
        if loop.part(spot) == HOST
        and spot.kind != BEYOND  # it may be what a compiled function calls
        and spot.sites
        and spot not in asleep
        # The hot loop's own step to its next item is no work; a loop within it is.
        and not (
            spot.sites[0].key == loop.key and spot.place.line == spot.sites[0].loop_line and spot.call in _STEPPING
        )
        and not _is_brief(result, spot)
    ]


def _is_brief(result: ProgramResult, spot: Spot) -> bool:
    """Return whether the line takes too little time to contain work that could be left out, such as `step += 1`."""
    loop = result.hot
    site = spot.site_in(loop.key)
    line_seconds = loop.times.each(site.line) if site is not None else None
    return line_seconds is not None and line_seconds < BRIEF_SECONDS


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
    # Of a compiled function that the thread computes itself, launching it takes a part.
    inline = [spot for spot in claims.free_spots(loop.spots) if spot.kind == "inline" and spot.sites]
    whole = _seconds(spot for spot in loop.spots if spot.kind == "inline")
    share = loop.launching.get(DISPATCH, 0.0) / whole if whole else 0.0
    if share:
        spots += [replace(spot, seconds=share * spot.seconds, samples=share * spot.samples) for spot in inline]
    calls = [spot for spot in spots if spot.kind != "dispatch" and loop.is_accounted_for(spot)]
    places = {spot.place for spot in calls} | {_loop_line(result, spot) for spot in calls}
    compiled = [row for row in result.compiles if not is_single(row)]
    names = {name for spot in calls for name in (spot.call, spot.call.rpartition(".")[2].removesuffix("()")) if name}
    many_leaves = [
        row
        for row in compiled
        if (row.called_from in places or row.function in names) and leaves_of(row) >= MANY_LEAVES
    ]
    library, largest = _most_through(calls), max(many_leaves, key=leaves_of, default=None)
    library = library if _wraps(result, library) else ""
    certain = library or largest is not None or result.verdict.kind == f"{DISPATCH}-bound"
    least = WRAPPED_SHARE if certain else CALLS_SHARE
    took = _seconds(calls)
    saves = (1 - KEPT_SHARE) * took
    if not calls or took < least * loop.seconds or not claims.worth(saves, _samples(calls)):
        return
    rate = loop.times.per_second  # timing its lines makes a brief iteration longer
    each = f": {seconds(1 / rate, 2)} per iteration" if rate else ""
    does = "spends its time calling compiled functions"
    fix, function = _ONE_CALL, ""
    if library:
        functions = {row.function for row in compiled if row.called_from in places}
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
    found = _of_lines(result, claims, "dispatch_bound", f"the loop {does}{each}", calls, saves, own_fix=fix)
    yield replace(found, function=function)


def _wraps(result: ProgramResult, library: str) -> bool:
    """Return whether a compiled function was seen at work, or compiled, below a library's call of it. A library may
    also only call operations, next to the functions of the loop."""
    single = _operations(result.spots)
    inside = [spot for spot in result.spots if spot.through == library]
    working = (spot for spot in inside if spot.kind in ("compiled", "inline", "fed"))
    return any((spot.place, spot.call) not in single for spot in working) or any(
        spot.kind in STAGES and _is_of_compiled_function(result, spot) for spot in inside
    )


def _most_through(spots: Sequence[Spot]) -> str:
    """Return the library or callback that takes most of the spots' time; empty if most time goes through none."""
    took = totals((spot.through, spot.seconds) for spot in spots)
    return max(took, key=lambda name: took[name], default="")


def _seconds(spots: Sequence[Spot] | Iterator[Spot]) -> float:
    return sum(spot.seconds for spot in spots)


def _samples(spots: Sequence[Spot]) -> float:
    return sum(spot.samples for spot in spots)


def _is_large_part(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Return whether the spots take a part of the loop that is worth changing."""
    return _seconds(spots) >= LEAST_OF_LOOP * (result.hot.seconds - result.hot.parts.get(COMPILE, 0.0))


def _is_worth_changing(result: ProgramResult, claims: Claims, spots: Sequence[Spot], saves: float) -> bool:
    """Return whether there are spots, which take a part of the loop that is worth changing, and enough is saved."""
    return bool(spots) and _is_large_part(result, spots) and claims.worth(saves, _samples(spots))


def _in_each_iteration(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Return whether the line of most of these spots does its work in every iteration, as far as timings show. It must
    begin in most iterations, and its time must not come from only a few of them."""
    loop = result.hot
    if loop.key is None:
        return False
    at = [(site, spot.seconds) for spot in spots if (site := spot.site_in(loop.key)) is not None]
    by_line = totals((site.line, took) for site, took in at)
    conditional = {site.line for site, _ in at if site.conditional}
    line = max(by_line, key=lambda number: by_line[number], default=None)
    if line is None or not loop.times.count:
        return line is not None and line not in conditional
    if loop.times.uneven * loop.seconds > FEW_ITERATIONS * _seconds(spots):
        return False
    return loop.times.by_line.get(line, (0.0, 0))[1] >= FEW_ITERATIONS * loop.times.count


def _is_seldom(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Return whether the lines of most of these spots do their work in few of the loop's iterations."""
    return result.hot.key is not None and not _in_each_iteration(result, spots)


def _cost_text(result: ProgramResult, took: float) -> str:
    whole = result.hot.seconds
    share = f", {percent(took / whole)} of the loop" if whole > 0 and result.hot.key is not None else ""
    return f"about {seconds(took, 2)}{share}"


def _seconds_by(spots: Sequence[Spot], key: Callable[[Spot], SourceLocation]) -> dict[SourceLocation, float]:
    """Return the seconds of the spots by a location of each, longest first."""
    by_place = totals((key(spot), spot.seconds) for spot in spots)
    return dict(sorted(by_place.items(), key=lambda item: -item[1]))


def _loop_line(result: ProgramResult, spot: Spot) -> SourceLocation:
    """Return the line of the loop itself that leads to a spot."""
    site = spot.site_in(result.hot.key)
    return site.place if site is not None else spot.place


def _places(result: ProgramResult, spots: Sequence[Spot]) -> tuple[SourceLocation, ...]:
    """Return the lines of the loop that lead to the spots, unless they are a library's, then the most expensive lines
    below them."""
    at_loop = {} if result.hot.library else _seconds_by(spots, lambda spot: _loop_line(result, spot))
    below = _seconds_by(spots, lambda spot: spot.place)
    return tuple(dict.fromkeys([*list(at_loop)[:_LINES_NAMED], *list(below)[:_LINES_NAMED]]))


def _lines_text(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Return text such as `: train.py:91 (6.0 s), train.py:95 (1.2 s)`; empty for a line the finding names."""
    places = _seconds_by(spots, lambda spot: spot.place)
    if list(places) == [_loop_line(result, spots[0])] or (result.hot.library and len(places) == 1):
        return ""
    named = [f"{at.short(result.directory)} ({seconds(took, 2)})" for at, took in places.items()]
    more_lines = len(named) - _LINES_NAMED
    more = f" and {counted(more_lines, 'more line')}" if more_lines > 0 else ""
    return f": {safe(', '.join(named[:_LINES_NAMED]))}{more}"


def _calls_text(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Name the calls of the most expensive lines: in the loop, else below it."""
    at: dict[SourceLocation, str] = {}
    for spot in result.spots:
        at.setdefault(spot.place, spot.call)

    def call_of(spot: Spot) -> str:
        return spot.call or at.get(spot.place) or next((site.call for site in spot.sites if site.call), "")

    calls = totals((call, spot.seconds) for spot in spots if (call := call_of(spot)))
    ranked = sorted(calls, key=lambda call: -calls[call])
    # parts of an expression that is already named add nothing
    whole = [call for call in ranked if not any(call != other and call in other for other in ranked)]
    return safe(shorten(", ".join(whole[:_LINES_NAMED]), 80)) if whole else "Python"


def _span(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Return text such as `at train.py:40-44`, the lines of the function that holds most of the operations. If no
    function does, these are the lines of the loop that lead to them."""
    inside = _seconds_by(spots, lambda spot: replace(spot.place, line=None))
    function = next(iter(inside))
    places = [spot.place for spot in spots if replace(spot.place, line=None) == function]
    if inside[function] < _ONE_FUNCTION_SHARE * sum(inside.values()):
        places = [_loop_line(result, spot) for spot in spots]
    most = places[0]
    lines = [place.line for place in places if place.file == most.file and place.line is not None]
    if not lines:
        return "of the loop"
    last = f"-{max(lines)}" if max(lines) > min(lines) else ""
    return f"at {safe(SourceLocation(most.file, min(lines)).short(result.directory))}{last}"
