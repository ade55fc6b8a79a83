"""Findings about arrays and memory: implicit copies between host and device, live arrays or compiled programs that keep
growing, and donated arrays that no output can reuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from jaxprof.analysis.programs import DEVICE
from jaxprof.analysis.programs.functions import array_type, most_frequent
from jaxprof.analysis.programs.loop_time import wait_after
from jaxprof.analysis.programs.result import ProgramResult, is_single
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, counted, integer, percent, seconds
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import (
    LARGE_BYTES,
    Claims,
    check,
    finding_of_lines,
    in_each_iteration,
    is_in_loop,
    is_worth_changing,
    sum_seconds,
)

COUNTS = 6
"""Number of counts after the start that growth needs."""
START = 0.25
"""Share of the counts that belong to the start, when every program creates its arrays; they are left out."""
RISES = 0.8
"""Share of the counts that must be at or above the previous one; a cache that is filled and emptied fails this."""
GROWN = 0.2
"""Relative growth since just after the start, in arrays or in bytes."""
GROWN_ARRAYS = 50
"""Smallest growth in arrays; for a few large arrays, `GROWN_BYTES` applies instead."""
LEAST_BYTES = 1 << 20
"""Bytes that the arrays must hold together: some hundred scalars, kept to be fetched at the end, are no leak."""
MANY_ARRAYS = 5_000
"""Number of arrays that is reported whatever they hold, because each has Python objects."""
ONE_JUMP = 0.5
"""Share of the growth that one count may add in less than half of that share of the time. Parameters that are joined
once by their gradients or by an optimizer's state are no leak."""
LONG_GAP, GAP_SHARE = 0.2, 0.25
"""Share of the time from which two counts are far apart, and how much of its share of the growth such a gap must have:
what grew before it and after it, but not in it, was set up in two steps."""
FALLS = 0.25
"""Share of the growth by which a count may be below an earlier one. Losses that are kept for an epoch and dropped at
its end are no leak, though they may end at the top."""
GROWN_BYTES = 64 << 20
UNUSED_BYTES = 1 << 20
"""Bytes of donated arrays below which reusing their memory gains nothing."""
BY_PROGRAMS = 0.5
"""Share of the host's growth that must fall into times in which programs were compiled, and not be of live arrays."""
BY_RECOMPILES = 0.25
"""Share of the new programs that must be of functions compiled again; each brings some operations with it."""
MOST_PROGRAM_BYTES = 16 << 20
"""Most bytes that a compiled program takes on the host; small ones took 0.8 to 2 MiB. Faster growth is
of something else."""
_LEAVES_NAMED = 3


@check(
    "live arrays keep growing in number or size",
    "Something keeps what each step makes: a list of losses, states or gradients, a closure, a cache. Memory runs "
    "out in a longer run.",
    "Keep numbers (jax.device_get every N steps) instead of arrays, and drop references to old states.",
)
def arrays_grow(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    if result.arrays is None:
        return
    counts = result.arrays.counts[int(START * len(result.arrays.counts)) :]
    if len(counts) < COUNTS:
        return
    times = [at for at, _, _ in counts]
    numbers, sizes = [float(count) for _, count, _ in counts], [float(size) for _, _, size in counts]
    by_number = _grows_steadily(times, numbers, GROWN_ARRAYS) and (
        sizes[-1] - sizes[0] >= LEAST_BYTES or numbers[-1] - numbers[0] >= MANY_ARRAYS
    )
    if not by_number and not _grows_steadily(times, sizes, GROWN_BYTES):
        return
    chosen = numbers if by_number else sizes
    a_minute = 60 * (chosen[-1] - chosen[0]) / (times[-1] - times[0])
    rate = f"{integer(a_minute)} arrays" if by_number else bytes_(a_minute)
    loop = result.steps
    yield Finding(
        f"live arrays keep growing: {integer(numbers[0])} ({bytes_(sizes[0])}) to {integer(numbers[-1])} "
        f"({bytes_(sizes[-1])}) in {seconds(times[-1] - times[0])}, {rate} a minute; {percent(_rise_share(chosen))} of "
        f"{len(counts)} counts rose or stayed level",
        (loop.where if loop is not None else None,),
        estimate=True,
        bytes=int(sizes[-1] - sizes[0]),
    )


@check(
    "compiled programs fill the memory of the host",
    "JAX keeps each compiled program for as long as its function lives: a new shape, static value or closure in each "
    "call is one more program, of 1 to 2 MiB. Memory runs out in a longer run.",
    "Compile fewer programs: pad to a few shapes, make the function once and pass what changes as an argument. Where "
    "the programs are needed only once, drop the functions, or call jax.clear_caches() now and then.",
)
def programs_grow(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the host's memory grows, mostly while programs are compiled, and not by live arrays."""
    counts = result.memory[int(START * len(result.memory)) :]
    if len(counts) < COUNTS or not _grows_steadily(
        [each.seconds for each in counts], [float(each.host_bytes) for each in counts], 0.0
    ):
        return
    first, last = counts[0], counts[-1]
    took, grown, programs = (
        getattr(last, name) - getattr(first, name) for name in ("seconds", "host_bytes", "programs")
    )
    has_own_memory = result.arrays is not None and bool(result.arrays.device_peak_bytes)
    of_arrays = 0 if has_own_memory else max(0, last.array_bytes - first.array_bytes)
    compiling = sum(
        after.host_bytes - before.host_bytes for before, after in pairwise(counts) if after.programs > before.programs
    )
    if min(compiling, grown - of_arrays) < BY_PROGRAMS * grown or grown - of_arrays > MOST_PROGRAM_BYTES * programs:
        return
    began, ended = result.began_seconds + first.seconds, result.began_seconds + last.seconds
    rows = [row for row in result.compiles if began <= row.monotonic_seconds <= ended]
    again = [row for row in rows if row.reason_code != "first" and not is_single(row)]
    if sum(row.count for row in again) < BY_RECOMPILES * programs:
        return  # a set-up compiles one function after the other, and is over at some time
    compiled = totals((row.function, row.count) for row in again)
    most = max(compiled, key=lambda function: compiled[function])
    yield Finding(
        f"the host's memory grows by {bytes_(60 * grown / took)} a minute: {bytes_(first.host_bytes)} to "
        f"{bytes_(last.host_bytes)} in {seconds(took)}, while the compiled programs that it holds went from "
        f"{integer(first.programs)} to {integer(last.programs)} (`{safe(most)}` was compiled again "
        f"{counted(compiled[most], 'time')}); live arrays are {percent(of_arrays / grown)} of that",
        (most_frequent([row.called_from for row in again if row.function == most]),),
        function=most,
        estimate=True,
        bytes=grown,
    )


@check(
    "donated arrays that no output can take",
    "A donated argument is given up by the caller; where no output has its shape and dtype, no memory is saved.",
    "Donate (donate_argnums) only arrays that come back with the same shape and dtype, or return the new "
    "array with the dtype of the old one.",
)
def unused_donation(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    for function in result.functions:
        rows = [row for row in function.rows if row.unused_donations]
        sizes = [(sum(leaf.bytes or 0 for leaf in row.unused_donations), row) for row in rows]
        size, row = max(sizes, key=lambda item: item[0], default=(0, None))
        if row is None or size < UNUSED_BYTES:
            continue
        leaves = sorted(row.unused_donations, key=lambda leaf: -(leaf.bytes or 0))
        named = and_more([f"{leaf.name}: {leaf.type}" for leaf in leaves], _LEAVES_NAMED)
        yield Finding(
            f"`{safe(function.function)}` donates {bytes_(size)} that no output can reuse ({safe(named)}): the "
            "caller loses the arrays, and no memory is saved",
            (function.called_from, function.defined_at),
            function=function.function,
            bytes=size,
        )


def _grows_steadily(times: Sequence[float], values: Sequence[float], least: float) -> bool:
    """Return whether the values rise all the way: enough in total, in most counts, and in the second half as in the
    first. `times` are the times of the counts, which are more frequent at first."""
    grown = values[-1] - values[0]
    if grown < least or grown < GROWN * values[0] or _rise_share(values) < RISES:
        return False
    highest, lowest = list(accumulate(values, max)), list(accumulate(reversed(values), min))[::-1]
    duration = times[-1] - times[0]
    if duration <= 0:
        return False
    for (began, ended), before, after in zip(pairwise(times), highest, lowest[1:], strict=False):
        share, gap = (after - before) / grown, (ended - began) / duration
        if share < -FALLS:
            return False
        if gap > LONG_GAP and share < GAP_SHARE * gap and before - values[0] >= GROWN * grown:
            return False
        if share > ONE_JUMP and share * duration > 2 * (ended - began):
            return False
    half = len(values) // 2
    return values[-1] - values[half] >= grown / 4  # growth that stops after a while is a longer start


def _rise_share(values: Sequence[float]) -> float:
    steps = list(pairwise(values))
    return sum(after >= before for before, after in steps) / len(steps)


_COPIES = ("transfer", "dispatch", "call")
"""Other kinds of work in which samples see a call with NumPy arguments; the copy happens inside the call."""
_EXPLICIT = re.compile(r"(^|\.)device_put\(\)$|^(jnp|jax\.numpy)\.\w+\(\)$")
"""Calls that create an array on the device; their copies are not implicit."""
_WIDE = frozenset({"f32", "f64", "i32", "i64", "u32", "u64"})
"""Dtypes whose data may fit into a narrower one."""
_LINES_NAMED = 3

_DIRECTIONS = {
    "host_to_device": (
        "host to device",
        "Put what stays the same on the device once, before the loop (jax.device_put), and supply batches as jax "
        "arrays; NumPy arrays and Python numbers that are passed to a jitted function are copied at each call.",
    ),
    "device_to_host": (
        "device to host",
        "Fetch values together and less often (jax.device_get of a tree): NumPy functions and Python operators on a "
        "jax array copy it to the host.",
    ),
}


@check(
    "NumPy arrays are copied to the device at each call",
    "A NumPy array passed to a compiled function is copied at every call, even if it never changes.",
    "Put what stays the same on the device once, before the loop (jax.device_put); keep a whole data set there "
    "and index it in the compiled function, so that only new data is copied, ahead of its step.",
)
def numpy_argument(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    loop = result.hot
    calls = [row for row in result.compiles if row.numpy_bytes >= LARGE_BYTES and row.called_from]
    fed = {(row.called_from.file, row.called_from.line): row for row in calls}
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if is_in_loop(result, spot)
        and (spot.kind == "fed" or (spot.kind in _COPIES and (spot.location.file, spot.location.line) in fed))
    ]
    took = sum(spot.seconds for spot in spots)
    if not spots or not claims.worth(took, sum(spot.samples for spot in spots)):
        return
    claims.take(spots)
    rows = [fed[key] for key in dict.fromkeys((spot.location.file, spot.location.line) for spot in spots) if key in fed]
    size = max((row.numpy_bytes for row in rows), default=0)
    copied = [
        leaf for row in rows[:1] for leaf in row.signature if leaf.from_numpy and not (leaf.zero_copy or leaf.replaced)
    ]
    copied.sort(key=lambda leaf: -(leaf.bytes or 0))
    named = ", ".join(f"{leaf.name}: {leaf.type}" for leaf in copied[:_LINES_NAMED])
    wide = and_more(list(dict.fromkeys(leaf.narrowed for leaf in copied if leaf.narrowed)), _LINES_NAMED)
    function = f"`{safe(rows[0].function)}`" if rows else "a compiled function"
    whole = loop.seconds
    yield Finding(
        f"{function} is called with NumPy arrays{f' ({safe(named)})' if named else ''} and copies "
        f"{f'{bytes_(size)} ' if size else 'them '}to the device at every call"
        f"{f' (converted from {safe(wide)})' if wide else ''}: about "
        f"{seconds(took, 2)}{f', {percent(took / whole)} of the loop' if whole else ''}",
        tuple(dict.fromkeys(spot.location for spot in spots)),
        own_fix=f"Make them 32-bit once, in NumPy (x.astype(np.float32)). {numpy_argument.fix}" if wide else None,
        seconds=took,
        saves_seconds=took,
        estimate=True,
    )


_ONCE = "Put what fits on the device there once, before the loop, and index it in the compiled function"
_NARROW = "copy the rest in the smallest dtype that holds it (images as uint8), and convert it in that function"
_AHEAD = (
    "Put the next batch on the device after this step's call and before the loop waits for its result: calls return "
    "before their work is done, so the device computes during the copy."
)
_SMALL = (
    "Pass arrays this small to the compiled function as NumPy arrays, which costs less than a call for each; or put "
    "several batches on the device at once, and index them in that function."
)
_SHARED = (
    " On a CPU, jax.device_put uses a NumPy array in place that begins at a multiple of 64 bytes (it must not change "
    "then); jnp.array copies it."
)


@check(
    "data is copied to the device in each iteration",
    "jax.device_put, jnp.array or jnp.asarray copies a NumPy array in the loop, such as the next batch. A step that "
    "needs it can only begin then, so that copies that take longer than the steps set the pace.",
    f"{_ONCE}; {_NARROW}.",
    sampled=True,
)
def batch_copies(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if calls that put NumPy arrays on a device take a part of the loop. An array that the device
    shares takes no time, and what is the same in each iteration is `unchanging_transfer`."""
    loop = result.hot
    spots = [spot for spot in claims.free_spots(loop.spots) if spot.kind == "transfer" and spot.put_bytes]
    # A CPU's own device computes while the copying thread waits for a processor, so that wait is not the copy's.
    took = sum_seconds(spots) - sum(spot.delay for spot in spots)
    waits = [spot for spot in loop.spots if spot.kind == "sync" and loop.part(spot) == DEVICE]
    # The device computes while the host waits for results in each iteration, so the next copy can go on then.
    hidden = min(took, sum_seconds(waits)) if in_each_iteration(result, waits) else 0.0
    queued = wait_after(result.sample_windows, loop.key) if loop.key is not None else None
    # Half as many bytes take half the time. Work that is waited for after the loop was behind the copies.
    saves = max(hidden, took / 2 - (queued[1] if queued is not None else 0.0))
    if not in_each_iteration(result, spots) or not is_worth_changing(claims, spots, saves):
        return
    size = max(spot.put_bytes or 0 for spot in spots)
    leaves = (array_type(leaf.type) for row in result.compiles for leaf in row.signature)
    dtypes = {leaf.dtype for leaf in leaves if leaf is not None and leaf.bytes == size}
    fix = _ONCE + (f"; {_NARROW}." if not dtypes or dtypes & _WIDE else ".")
    if hidden >= took / 2:
        fix = _AHEAD
    elif size < LARGE_BYTES:
        fix = _SMALL
    what = f"each iteration of the loop copies arrays of up to {bytes_(size)} to the device"
    fix += _SHARED if loop.shares_processors else ""
    yield finding_of_lines(result, claims, what, spots, saves, own_fix=fix)


@check(
    "implicit copies between host and device",
    "Python numbers and NumPy arrays passed to compiled functions, and NumPy functions applied to jax arrays, "
    "copy between host and device implicitly.",
    "Place arrays on the device once (jax.device_put) and fetch values together and less often.",
)
def implicit_transfers(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for direction, (words, fix) in _DIRECTIONS.items():
        rows = [row for row in result.transfers if row.direction == direction]
        spots = [
            spot
            for spot in claims.free_spots(result.spots)
            if spot.kind == "transfer" and spot.sites and not _EXPLICIT.search(spot.call)
        ]
        lines = {(row.file, row.line) for row in rows}
        spots = [spot for spot in spots if (spot.location.file, spot.location.line) in lines]
        if not spots or not claims.worth(sum(each.seconds for each in spots), sum(each.samples for each in spots)):
            continue
        took = claims.take(spots)
        named = list(dict.fromkeys(row.where.short(result.directory) for row in rows if row.where is not None))
        at = f", at {', '.join(named[:_LINES_NAMED])}" if len(named) > 1 else ""  # a single line is named anyway
        yield Finding(
            f"implicit copies from {words}; by samples about {seconds(took, 2)}{safe(at)}",
            tuple(row.where for row in rows),
            own_fix=fix,
            seconds=took,
            saves_seconds=took,
            estimate=True,
        )
