"""What the host does in the hot loop while the device could work: data, fetched values, copies, dispatch, other work.

Seconds rest on samples of the stack and on the timed lines of the loop: they are estimates, and the findings are marked
so. Each check claims what it reports; what a fix saves is an upper bound where the device may be busy anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.finding import Finding
from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.result import is_single
from jaxprof.analysis.programs.verdict import COMPILE, DATA, DISPATCH, HOST, IDLE, interval, leaves_of
from jaxprof.events import SourceLocation
from jaxprof.text import safe, shorten
from jaxprof.units import bytes_, counted, integer, percent, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.analysis.programs.verdict import Spot
    from jaxprof.events import Compiled

LARGE_BYTES: Final = 1 << 20
"""Size of an array from which fetching it counts as a copy, not as a wait for a value."""
CALLS_SHARE: Final = 0.5
"""Share of the hot loop that calling compiled functions must take to be what bounds it."""
WRAPPED_SHARE: Final = 0.25
"""The same where the reason is known."""
MANY_LEAVES: Final = 200
"""Leaves of arguments from which looking at them is what a call takes its time for: some 0.4 µs each."""
_OPERANDS: Final = 4
"""Arguments that an operation uses, at most, on average."""
SYNC_SHARE: Final = 0.25
"""Share of the hot loop, spent waiting for values fetched in each pass, that is reported whatever a fix saves."""
SYNC_STEP_SECONDS: Final = 0.02
"""Where passes take longer than this, not waiting at the end of each gains nothing."""
LEAST_SAVED: Final = 0.05
"""Share of the hot loop that not waiting must save where its passes are longer."""
SET_UP_PASSES: Final = 20
"""A loop of fewer passes may be a set-up that makes the parameters of some layers."""
MOSTLY_COMPILED: Final = 4.0
"""Ratio of compiling a loop's operations to running them above which, in a set-up, compiling is all that counts."""
FEW_PASSES: Final = 0.5
"""A line that a smaller share of the loop's passes reach is already run only every few passes."""
BRIEF_SECONDS: Final = 10e-6
"""A line of Python that takes less is a few operations of the interpreter, and no work that could be left out."""
LEAST_OF_LOOP: Final = 0.1
"""Share of the hot loop that the lines of a finding must take: below it they are not what to change first."""
KEPT_SHARE: Final = 0.1
"""Share that is left of a cost that is paid every ten passes, or once for many."""
_STEPPING: Final = ("", "range()", "enumerate()", "zip()", "reversed()")
"""Calls in the head of a loop that only step on to the next number or item."""
_OF_ONE_FUNCTION: Final = 2 / 3
"""Share of the operations that a function must hold to be the one to compile."""
_LINES_NAMED: Final = 3
_FETCHES: Final = re.compile(r"(^|\.)(device_get|asarray|array|copy|ascontiguousarray|tolist|save\w*|dump\w*)\(\)$")
_BY_NAME: Final = re.compile(r"block_until_ready")
_FROM_ANOTHER: Final = re.compile(r"\.(get|recv)\(\)$")
_FETCH_SELDOM: Final = (
    "While it waits it cannot dispatch the next step: keep the values as arrays and fetch them every N steps or after "
    "the loop (jax.device_get of a list), and print with jax.debug.print."
)
_DECIDE_SELDOM: Final = (
    "While it waits it cannot dispatch the next step: look at the value every N passes, or move the loop with its "
    "condition into one compiled function (jax.lax.while_loop)."
)
_ONE_CALL: Final = (
    "Give one call more to do: many passes in one compiled function (jax.lax.fori_loop or scan around them), or "
    "many independent problems at once (jax.vmap); and pass fewer, larger arrays."
)
_BOUND: Final = "flax.nnx"
"""The library whose functions `--try` binds their modules to."""
_LIBRARIES: Final = {
    _BOUND: "nnx.jit takes the modules apart and puts them together again in each call: bind them once with "
    "nnx.cached_partial(step, model, optimizer), or nnx.split them once, and jax.jit a function of the state.",
    "equinox": "eqx.filter_jit sorts the leaves of its arguments in each call: eqx.partition the model once, and "
    "jax.jit a function of its arrays that combines them (eqx.combine), or put many passes into one call.",
}
"""What helps, by the library whose Python is around the calls."""
_PASS_USED: Final = (
    "Pass only the leaves that it uses: each call looks at all of them, whether they are used or not, before it can "
    "launch anything."
)
_FEWER_LEAVES: Final = (
    "Pass fewer, larger arrays (parameters of one shape stacked into one, as jax.lax.scan over layers takes them), or "
    "put many passes into one call: each call looks at all of them before it can launch anything."
)
_OF_WORKERS: Final = re.compile(r"\.(get|recv|result)\(\)$")
"""What already waits for another thread or process, if it is a wait for data at all."""
_PREFETCH: Final = (
    "Prepare the next batch while the device works: in a thread or in processes (a queue, grain, a DataLoader with "
    "workers), or prepare all batches once before the loop where they fit into memory."
)
_MORE_WORKERS: Final = (
    "What prepares the batches beside the loop is slower than the steps: give it more threads or processes, less to do "
    "for each batch, or batches that were prepared once and kept; a longer queue only moves the wait."
)


def callback_in_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Compiled functions of the loop that call Python on the host, and wait for it."""
    spots = [spot for spot in claims.free_spots(result.hot.spots) if spot.kind == "callback" and spot.sites]
    took = _seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not spots or not _of_loop(result, spots) or not claims.worth(saves, _samples(spots)):
        return
    claims.take(spots)
    yield Finding(
        "callback_in_loop",
        f"compiled functions of the loop call Python on the host, and wait for it: {_calls(result, spots)}, "
        f"{_about(result, took)}{_called_back(spots)}{_named(result, spots)}",
        "Call back every N passes (jax.lax.cond around jax.debug.print or the callback), or return the values and use "
        "them after the loop; what jax.numpy can compute need not leave the compiled function.",
        _places(result, spots),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


def repeated_fetch(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Large arrays are copied to the host in each pass of the loop."""
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
    if not spots or not _each_pass(result, spots) or not claims.worth(saves, _samples(spots)):
        return
    size = max(spot.bytes or 0 for spot in spots)
    claims.take(spots)
    yield Finding(
        "repeated_fetch",
        f"each pass of the loop copies arrays of up to {bytes_(size)} to the host: {_calls(result, spots)}, "
        f"{_about(result, took)}{_named(result, spots)}",
        "Fetch large arrays every N passes, or after the loop; for checkpoints have a thread fetch and write them "
        "(orbax's AsyncCheckpointer), so that the loop goes on.",
        _places(result, spots),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


def host_sync(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Lines of the loop that need a value on the host in each pass, and wait for the device until it is there."""
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
    if not spots or not _each_pass(result, spots):
        return
    each = loop.times.seconds / loop.times.iterations if loop.times.iterations else None
    brief = each is None or each < SYNC_STEP_SECONDS
    saves = min(took, max(0.0, loop.seconds - took) if brief else claims.left)
    low, _ = interval(min(1.0, took / loop.seconds), loop.samples) if loop.seconds else (0.0, 1.0)
    waits = low >= SYNC_SHARE and each is not None and each < SYNC_STEP_SECONDS
    gains = saves >= LEAST_SAVED * loop.seconds and claims.worth(saves, _samples(spots))
    if not gains and not (waits and took >= claims.least):
        return
    claims.take(spots)
    claims.waits = took if brief else None
    busy = "" if saves > took / 2 else "; the device is busy meanwhile"
    yield Finding(
        "host_sync",
        f"the host waits for a value in each pass of the loop: {_calls(result, spots)}, {_about(result, took)}"
        f"{_named(result, spots)}{busy}",
        _DECIDE_SELDOM if _steers(result, spots) else _FETCH_SELDOM,
        _places(result, spots),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


def _steers(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Whether most of the waiting is for values that an `if` or `while` decides by."""
    return 2 * _seconds([spot for spot in spots if spot.call == "bool()"]) > _seconds(spots)


def _is_of_compiled_function(result: ProgramResult, spot: Spot) -> bool:
    """Whether the call of a compiled function itself waits: equinox's `filter_jit` does, to raise errors of the device
    where they arise."""
    name = spot.call.removesuffix("()").rpartition(".")[2]
    return bool(name) and any(row.function == name and not is_single(row) for row in result.compiles)


def op_by_op_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Operations of the loop that are dispatched one by one, outside any jit, with the cost of compiling them."""
    loop = result.hot
    spots = [spot for spot in claims.free_spots(loop.spots) if _is_of_operations(result, spot)]
    if (
        not any(spot.kind == "dispatch" for spot in spots) or loop.library or not _of_loop(result, spots)
    ):  # a library's loop is not the reader's to change
        return
    rows = [row for row in claims.free_rows(result.compiles) if is_single(row) and _is_run_in(result, row, spots)]
    named = dict.fromkeys(spot.call for spot in spots if spot.kind == "dispatch")
    kinds = list(dict.fromkeys(row.function for row in rows)) or list(named)
    if len(kinds) < 2:
        return
    running, compiling = _seconds(spots), sum(map(row_seconds, rows))
    if running < LEAST_OF_LOOP * loop.seconds:
        return  # what the loop compiles again and again outweighs them
    if not claims.worth((running + compiling) * (1 - 1 / len(kinds)), _samples(spots)):
        return
    if compiling > MOSTLY_COMPILED * running and loop.times.iterations < SET_UP_PASSES:
        return  # a set-up, whose operations cost what compiling them costs
    took = claims.take(spots, rows)
    listed = ", ".join(kinds[:_LINES_NAMED]) + (", …" if len(kinds) > _LINES_NAMED else "")
    compiled = f"; compiling them {seconds(took - running, 2)}" if took > running else ""
    first = _places(result, spots)
    yield Finding(
        "op_by_op_loop",
        f"{integer(len(kinds))} kinds of operations run one by one in the loop ({safe(listed)}): "
        f"{_about(result, running)}{compiled}",
        f"Put the operations {_span(result, spots)} into one function with jax.jit: XLA fuses them, and there is one "
        "dispatch instead of one for each operation.",
        first,
        seconds=took,
        saves_seconds=took * (1 - 1 / len(kinds)),
        estimate=True,
        announced_seconds=compiling,
    )


def _is_of_operations(result: ProgramResult, spot: Spot) -> bool:
    """Whether a spot is an operation outside any jit, or the Python code around such operations, which goes with
    them."""
    if spot.kind == "dispatch":
        return bool(spot.sites)
    key = result.hot.key
    site = spot.site_in(key) if key is not None else None
    return site is not None and site.line in result.hot.eager and spot.kind in ("host", "data", "call")


def _is_run_in(result: ProgramResult, row: Compiled, spots: Sequence[Spot]) -> bool:
    """Whether a single operation is called from the loop, or from a function that it calls."""
    at, key, last = row.called_from, result.hot.key, result.hot.last_line
    if at.line is None or key is None or last is None:
        return False
    if (at.file, at.function) == key[:2]:
        return key[2] <= at.line <= last
    return any((spot.place.file, spot.place.function) == (at.file, at.function) for spot in spots)


def data_waits(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """The loop waits for the arguments of its compiled functions, whatever produces them."""
    loop = result.hot
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if loop.part(spot) == DATA or (spot.state == "waiting" and _FROM_ANOTHER.search(spot.call))
    ]
    took = _seconds(spots)
    # one worker hides as much as the device takes; two workers halve the wait
    saves = max(min(took, loop.seconds - took), took / 2)
    if not spots or not _of_loop(result, spots) or not claims.worth(saves, _samples(spots)):
        return
    claims.take(spots)
    yield Finding(
        "data_waits",
        f"the loop waits for what it passes to the device: {_calls(result, spots)}, {_about(result, took)}"
        f"{_named(result, spots)}",
        _MORE_WORKERS if _OF_WORKERS.search(spots[0].call) else _PREFETCH,
        _places(result, spots),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


def host_work(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Lines of the loop that compute or wait on the host, where no result goes into its compiled functions. What a
    program sleeps that has nothing to do cannot be saved."""
    loop = result.hot
    asleep = loop.asleep if result.verdict.kind == IDLE else ()
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if loop.part(spot) == HOST
        and spot.sites
        and spot not in asleep
        and not _is_head(spot)
        and not _is_brief(result, spot)
    ]
    took = _seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not spots or not _of_loop(result, spots) or not claims.worth(saves, _samples(spots)):
        return
    claims.take(spots)
    waits = _seconds(spot for spot in spots if spot.state == "waiting") > took / 2
    yield Finding(
        "host_work",
        f"the loop {'waits' if waits else 'works'} on the host, and no result of this goes to the device: "
        f"{_calls(result, spots)}, {_about(result, took)}{_named(result, spots)}",
        "Do it every N passes, after the loop, or in a separate thread or process; computations on arrays can go "
        "into the compiled function.",
        _places(result, spots),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
    )


def _is_head(spot: Spot) -> bool:
    """Whether the spot is the loop's own step to its next item."""
    return spot.place.line == spot.sites[0].loop_line and spot.call in _STEPPING


def _is_brief(result: ProgramResult, spot: Spot) -> bool:
    """Whether the line of the loop is over before it could do anything that need not be done: `step += 1`."""
    loop = result.hot
    site = spot.site_in(loop.key) if loop.key is not None else None
    each = loop.times.each(site.line) if site is not None else None
    return each is not None and each < BRIEF_SECONDS


def dispatch_bound(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """The loop spends its time calling compiled functions: they are small, or a library's Python is around them, or
    their arguments have many leaves."""
    loop = result.hot
    spots = [spot for spot in claims.free_spots(loop.spots) if loop.part(spot) == DISPATCH and spot.sites]
    calls = [spot for spot in spots if spot.kind != "dispatch" and loop.is_accounted_for(spot)]
    around, many = _library_around(calls), _most_leaves(result, calls)
    least = WRAPPED_SHARE if around or many is not None else CALLS_SHARE
    took = _seconds(calls)
    saves = (1 - KEPT_SHARE) * took
    if not calls or took < least * loop.seconds or not claims.worth(saves, _samples(calls)):
        return
    claims.take(calls)
    steps = loop.times
    each = f" {seconds(steps.seconds / steps.iterations, 2)} a pass:" if steps.iterations else ""
    does = "spends its time calling compiled functions"
    advice, function = _ONE_CALL, ""
    if around:
        function = _only_function(result, calls) if around == _BOUND else ""
        does = f"calls compiled functions through {safe(around)}, whose Python takes the time"
        advice = _LIBRARIES.get(around, f"Call {safe(around)} less often: {_ONE_CALL[0].lower()}{_ONE_CALL[1:]}")
    elif many is not None:
        few = many.operations is not None and many.operations * _OPERANDS < leaves_of(many)
        of = f", most of them unused: its program has {counted(many.operations or 0, 'operation')}" if few else ""
        does = f"calls `{safe(many.function)}` with {integer(leaves_of(many))} leaves{of}"
        advice, function = (_PASS_USED, many.function) if few else (_FEWER_LEAVES, "")
    yield Finding(
        "dispatch_bound",
        f"the loop {does}:{each} {_calls(result, calls)}, {_about(result, took)}{_named(result, calls)}",
        advice,
        _places(result, calls),
        seconds=took,
        saves_seconds=saves,
        estimate=True,
        function=function,
    )


def _only_function(result: ProgramResult, calls: Sequence[Spot]) -> str:
    """The one function that is compiled where these calls are; empty if there are several."""
    places = {spot.place for spot in calls} | {_loop_line(result, spot) for spot in calls}
    names = {row.function for row in result.compiles if not is_single(row) and row.called_from in places}
    return next(iter(names)) if len(names) == 1 else ""


def _library_around(calls: Sequence[Spot]) -> str:
    """The library whose Python most of the calls go through; empty if most go through none."""
    by_library: dict[str, float] = {}
    for spot in calls:
        by_library[spot.through] = by_library.get(spot.through, 0.0) + spot.seconds
    return max(by_library, key=lambda name: by_library[name], default="")


def _most_leaves(result: ProgramResult, calls: Sequence[Spot]) -> Compiled | None:
    """The function called there whose arguments have most leaves; None if they are few."""
    places = {spot.place for spot in calls} | {_loop_line(result, spot) for spot in calls}
    names = {name for spot in calls for name in (spot.call, spot.call.rpartition(".")[2].removesuffix("()")) if name}
    rows = [
        row
        for row in result.compiles
        if not is_single(row) and (row.called_from in places or row.function in names) and leaves_of(row) >= MANY_LEAVES
    ]
    return max(rows, key=leaves_of, default=None)


def _seconds(spots: Sequence[Spot] | Iterator[Spot]) -> float:
    return sum(spot.seconds for spot in spots)


def _samples(spots: Sequence[Spot]) -> float:
    return sum(spot.samples for spot in spots)


def _of_loop(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Whether the spots take a part of the loop that is worth changing."""
    whole = result.hot.seconds - result.hot.parts.get(COMPILE, 0.0)
    return _seconds(spots) >= LEAST_OF_LOOP * whole


def _each_pass(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Whether the line of most of these does its work in every pass, as far as passes and lines were timed: it begins
    in most of them, and no few of them take the time that it takes."""
    loop = result.hot
    if loop.key is None:
        return False
    by_line: dict[int, float] = {}
    conditional: set[int] = set()
    for spot in spots:
        site = spot.site_in(loop.key)
        if site is not None:
            by_line[site.line] = by_line.get(site.line, 0.0) + spot.seconds
            conditional |= {site.line} if site.conditional else set()
    line = max(by_line, key=lambda number: by_line[number], default=None)
    if line is None or not loop.times.iterations:
        return line is not None and line not in conditional
    if loop.times.uneven * loop.seconds > FEW_PASSES * _seconds(spots):
        return False
    return loop.times.by_line.get(line, (0.0, 0))[1] >= FEW_PASSES * loop.times.iterations


def _about(result: ProgramResult, took: float) -> str:
    whole = result.hot.seconds
    share = f", {percent(took / whole)} of the loop" if whole > 0 and result.hot.key is not None else ""
    return f"about {seconds(took, 2)}{share}"


def _grouped(
    result: ProgramResult, spots: Sequence[Spot], key: Callable[[Spot], SourceLocation]
) -> dict[SourceLocation, float]:
    by_place: dict[SourceLocation, float] = {}
    for spot in spots:
        at = key(spot)
        by_place[at] = by_place.get(at, 0.0) + spot.seconds
    return dict(sorted(by_place.items(), key=lambda item: -item[1]))


def _loop_line(result: ProgramResult, spot: Spot) -> SourceLocation:
    """The line of the loop itself that leads to a spot."""
    key = result.hot.key
    site = spot.site_in(key) if key is not None else None
    return site.place if site is not None else spot.place


def _places(result: ProgramResult, spots: Sequence[Spot]) -> tuple[SourceLocation, ...]:
    """The lines of the loop that lead to the spots, then the lines below them that take most."""
    at_loop = _grouped(result, spots, lambda spot: _loop_line(result, spot))
    below = _grouped(result, spots, lambda spot: spot.place)
    return tuple(dict.fromkeys([*list(at_loop)[:_LINES_NAMED], *list(below)[:_LINES_NAMED]]))


def _named(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """`: train.py:91 (6.0 s), train.py:95 (1.2 s)`; nothing for a single line, which the finding names anyway."""
    places = _grouped(result, spots, lambda spot: spot.place)
    if list(places) == [_loop_line(result, spots[0])]:
        return ""
    named = [f"{at.short(result.directory)} ({seconds(took, 2)})" for at, took in places.items()]
    left = len(named) - _LINES_NAMED
    more = f" and {counted(left, 'more line')}" if left > 0 else ""
    return f": {safe(', '.join(named[:_LINES_NAMED]))}{more}"


def _calls(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """What the lines that take most call: in the loop, else below it."""
    at: dict[SourceLocation, str] = {}
    for spot in result.spots:
        at.setdefault(spot.place, spot.call)
    calls: dict[str, float] = {}
    for spot in spots:
        call = spot.call or at.get(spot.place) or next((site.call for site in spot.sites if site.call), "")
        if call:
            calls[call] = calls.get(call, 0.0) + spot.seconds
    ranked = sorted(calls, key=lambda call: -calls[call])
    # parts of an expression that is named say nothing more
    whole = [call for call in ranked if not any(call != other and call in other for other in ranked)]
    return safe(shorten(", ".join(whole[:_LINES_NAMED]), 80)) if whole else "Python"


def _called_back(spots: Sequence[Spot]) -> str:
    """`, in plot()`: the function that compiled code calls and that takes most of the time; empty if none was seen."""
    took: dict[str, float] = {}
    for spot in spots:
        took[spot.through] = took.get(spot.through, 0.0) + spot.seconds
    most = max(took, key=lambda name: took[name])
    return f", in {safe(most)}()" if most else ""


def _span(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """`at train.py:40-44`: the lines of the function that holds most of the operations; where no function does, those
    of the loop that lead to them."""
    inside = _grouped(result, spots, lambda spot: replace(spot.place, line=None))
    function = next(iter(inside))
    places = [spot.place for spot in spots if replace(spot.place, line=None) == function]
    if inside[function] < _OF_ONE_FUNCTION * sum(inside.values()):
        places = [_loop_line(result, spot) for spot in spots]
    most = places[0]
    lines = [place.line for place in places if place.file == most.file and place.line is not None]
    if not lines:
        return "of the loop"
    last = f"-{max(lines)}" if max(lines) > min(lines) else ""
    return f"at {safe(SourceLocation(most.file, min(lines)).short(result.directory))}{last}"
