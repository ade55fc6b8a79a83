"""Findings about the host's work in the hot loop while the device could compute: callbacks, fetches, waits for Python's
lock, data, other.

Seconds rest on stack samples and on the timed lines of the loop: they are estimates, and the findings are marked as
such. Each check claims what it reports. The saving of a fix is an upper bound if the device may be busy anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import DATA, DEVICE, DISPATCH, HOST
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.spots import BEYOND, IDLE, Spot
from jaxprof.analysis.programs.verdict import interval
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, seconds
from jaxprof.events import STAGES
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import (
    KEPT_SHARE,
    LARGE_BYTES,
    LEAST_SAMPLES,
    Claims,
    check,
    cost_text,
    finding_of_lines,
    in_each_iteration,
    is_in_loop,
    is_of_compiled_function,
    is_seldom,
    is_worth_changing,
    lines_of,
    loop_line,
    most_through,
    sum_samples,
    sum_seconds,
)

SYNC_SHARE = 0.25
"""Share of the hot loop spent waiting for values fetched in each iteration that is reported whatever a fix saves."""
SYNC_STEP_SECONDS = 0.02
"""Seconds of an iteration above which not waiting at the end of each iteration gains nothing."""
LEAST_SAVED = 0.05
"""Share of the hot loop that not waiting must save if its iterations are longer."""
BRIEF_SECONDS = 10e-6
"""Seconds below which a line of Python is a few operations of the interpreter, and no work that could be left out."""
_STEPPING = ("", "range()", "enumerate()", "zip()", "reversed()")
"""Calls in the head of a loop that only step to the next number or item."""
_FETCHES = re.compile(r"(^|\.)(device_get|asarray|array|copy|ascontiguousarray|tolist|save\w*|dump\w*)\(\)$")
_BY_NAME = re.compile(r"block_until_ready")
_FROM_ANOTHER = re.compile(r"\.(get|recv)\(\)$")
_DECIDE_SELDOM = (
    "While the host waits, it cannot dispatch the next step: look at the value every N iterations, or move the loop "
    "with its condition into one compiled function (jax.lax.while_loop)."
)
_BETWEEN = (
    "The next call needs a result of this value, so that it can be fetched neither less often nor ahead: compute that "
    "result in the compiled function (jax.numpy), or do one round trip for many at once (a batch of problems, "
    "environments or sequences)."
)
_SELDOM = (
    "Only a few iterations do this, and yet it takes this long: do less of it, do it even less often, or do it outside "
    "the loop (in a thread if it waits, in a process if it computes in Python)."
)
_CALLED_SELDOM = (
    "Only a few iterations call it, and yet it takes this long: do less in it, or return the values and use them after "
    "the loop; what jax.numpy can compute need not leave the compiled function."
)
_WORKER_CALLS = re.compile(r"\.(get|recv|result)\(\)$")
"""Calls that already wait for another thread or process, if they wait for data at all."""
_MORE_WORKERS = (
    "The workers that prepare batches are slower than the steps: give them less to do for each batch, use more "
    "processes (more threads only where they wait or compute outside Python, which runs in one thread at a time), or "
    "keep batches that were prepared once; a longer queue only moves the wait."
)
_IN_PROCESSES = (
    "Prepare the next batch in processes while the device works (grain, a DataLoader with workers, multiprocessing), "
    "not in one more thread, which would wait for Python's lock as well; or prepare all batches once before the loop "
    "where they fit into memory."
)


@check(
    "a compiled function calls Python in each iteration",
    "jax.debug.print, jax.debug.callback, io_callback and pure_callback leave the compiled function: their "
    "arguments are copied to the host, Python runs, and what depends on it waits.",
    "Call back every N iterations (jax.lax.cond around jax.debug.print or the callback), or return the values and "
    "use them after the loop; what jax.numpy can compute need not leave the compiled function.",
)
def callback_in_loop(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    spots = [
        spot for spot in claims.free_spots(result.hot.spots) if spot.kind == "callback" and is_in_loop(result, spot)
    ]
    took = sum_seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not is_worth_changing(claims, spots, saves):
        return
    what = "compiled functions of the loop call Python on the host, and wait for it"
    most = most_through(spots)
    within = f", in {safe(most)}()" if most else ""
    fix = _CALLED_SELDOM if is_seldom(result, spots) else None
    yield finding_of_lines(result, claims, what, spots, saves, within, fix)


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
    lines = {spot.location for spot in large}
    spots = [
        spot for spot in claims.free_spots(loop.spots) if spot.location in lines and spot.kind in ("transfer", "sync")
    ]
    took = sum_seconds(spots)
    copied = sum_seconds(spot for spot in spots if spot.kind == "transfer")
    saves = (1 - KEPT_SHARE) * (copied + min(took - copied, max(0.0, claims.left - copied)))
    if not spots or not in_each_iteration(result, spots) or not claims.worth(saves, sum_samples(spots)):
        return
    size = max(spot.bytes or 0 for spot in spots)
    what = f"each iteration of the loop copies arrays of up to {bytes_(size)} to the host"
    fix = _BETWEEN if sum_seconds(_between(result, spots)) > took / 2 else None
    yield finding_of_lines(result, claims, what, spots, saves, own_fix=fix)


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
        if (spot.kind == "sync" or (spot.kind == "read" and _read_waits(result, spot)))
        and not _BY_NAME.search(spot.call)
        and not is_of_compiled_function(result, spot)
        and is_in_loop(result, spot)
    ]
    took = sum_seconds(spots)
    if not spots or not in_each_iteration(result, spots):
        return
    iteration_seconds = loop.times.seconds / loop.times.count if loop.times.count else None
    inner = grouped((spot.sites[0].key, spot) for spot in loop.spots if spot.sites and spot.sites[0].key != loop.key)
    calls = [inside for inside in inner.values() if {"compiled", "fed", "dispatch"} & {spot.kind for spot in inside}]
    brief = iteration_seconds < SYNC_STEP_SECONDS if iteration_seconds is not None else not calls
    # Without this wait, a long step waits as long for a processor: its device computes on, and has the same ones.
    # An inner loop that waits for nothing is ahead of the device: this wait does not delay what the host does there.
    ahead = sum_seconds(
        spot
        for spots_inside in calls
        if not {"sync", "read"} & {spot.kind for spot in spots_inside}
        for spot in spots_inside
        if spot.kind not in STAGES and loop.part(spot) != DEVICE
    )
    saves = min(took, max(0.0, claims.steady - took) if brief else max(0.0, claims.left - loop.preempted - ahead))
    low, _ = interval(min(1.0, took / loop.seconds), loop.samples) if loop.seconds else (0.0, 1.0)
    waits = (
        low >= SYNC_SHARE * claims.factor and iteration_seconds is not None and iteration_seconds < SYNC_STEP_SECONDS
    )
    gains = saves >= LEAST_SAVED * claims.loop and claims.worth(saves, sum_samples(spots))
    if not gains and not (waits and took >= claims.least):
        return
    claims.waits = took if brief else None
    tested = sum_seconds(spot for spot in spots if spot.call == "bool()")  # by an `if` or a `while`
    fix = _DECIDE_SELDOM if tested > took / 2 else None
    if sum_seconds(_between(result, spots)) > took / 2:
        fix = _BETWEEN
    what = "the host waits for a value in each iteration of the loop"
    finding = finding_of_lines(result, claims, what, spots, saves, own_fix=fix)
    busy = "" if saves > took / 2 else "; the device is busy meanwhile"
    yield replace(finding, message=f"{finding.message}{busy}")


@check(
    "the same data is put on the device in each iteration",
    "jax.device_put, jnp.array or jnp.asarray gets data in the loop that nothing there changes, as far as the source "
    "shows. A list is converted on the host first, number by number.",
    "Put it on the device once, before the loop, and pass that array.",
    sampled=True,
)
def unchanging_transfer(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if calls that put data on a device get the same data in each iteration, by the source. New data,
    such as the next batch, is no finding."""
    loop = result.hot
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.kind in ("transfer", "data") and (site := spot.site_in(loop.key)) is not None and site.unchanging
    ]
    took = sum_seconds(spots)
    if not spots or not in_each_iteration(result, spots) or not claims.worth(took, sum_samples(spots)):
        return
    converted = sum_seconds(spot for spot in spots if spot.kind == "data") > took / 2
    within = ", nearly all of it to convert it to an array on the host, not to copy it" if converted else ""
    what = "each iteration of the loop puts the same data on the device, as far as its source shows"
    yield finding_of_lines(result, claims, what, spots, took, within)


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
    took = sum_seconds(spots)
    # one worker hides as much time as the device takes; two workers halve the wait
    saves = max(min(took, claims.steady - took), took / 2)
    if not is_worth_changing(claims, spots, saves):
        return
    fix = _IN_PROCESSES if claims.is_lock_held else None
    if _WORKER_CALLS.search(spots[0].call):
        fix = _MORE_WORKERS
    what = "the loop waits for its data"
    yield finding_of_lines(result, claims, what, spots, saves, own_fix=fix, of_library="")


@check(
    "host work between one compiled call and the next",
    "Python or NumPy computes arguments of the next call from results of the last one. The device waits meanwhile, and "
    "this work can be done neither ahead nor less often.",
    "Compute it in the compiled function (jax.numpy instead of NumPy), or do one round trip for many at once: a batch "
    "of problems, environments or sequences.",
    sampled=True,
)
def host_between(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if lines of the loop make arguments of its compiled functions from their results."""
    spots = list(_between(result, _host_spots(result, claims)))
    saves = (1 - KEPT_SHARE) * sum_seconds(spots)
    if is_worth_changing(claims, spots, saves):
        what = "the loop computes arguments of its next call on the host, from results"
        yield finding_of_lines(result, claims, what, spots, saves)


def _between(result: ProgramResult, spots: Sequence[Spot]) -> Iterator[Spot]:
    """Yield the spots that make arguments of the loop's compiled functions from their results."""
    return (spot for spot in spots if (site := spot.site_in(result.hot.key)) is not None and site.between)


_WAITS = {
    re.compile(r"(^|\.)(u?sleep|pause)\(\)$"): (
        "the loop sleeps",
        "Leave the sleep out if nothing depends on it. What it lets pass can be waited for itself, with the sleep as "
        "the timeout (threading.Event.wait, queue.get, select).",
    ),
    re.compile(r"(^|\.)(input|readline)\(\)$"): ("the loop waits for input", None),
    re.compile(r"(^|\.)(acquire|wait|join|result)\(\)$"): ("the loop waits for another thread or process", None),
}
"""What calls wait for, in words, with the fix if it is not that of all waits. Whatever else was blocked waits for
something unknown: a file, a server, a process."""
_WAITS_FOR_SOMETHING = ("the loop waits for something outside it", None)


@check(
    "the loop waits on the host",
    "The thread is blocked, by its CPU clock: it sleeps, or waits for input, a lock, another process, a file or a "
    "server. It computes nothing meanwhile, and neither does the device once its queue is empty.",
    "Have a thread wait for it outside the loop, from before its result is needed. That saves at most the wait, and "
    "nothing where the next iteration depends on it.",
    sampled=True,
)
def host_waits(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the thread was blocked under lines of the loop for more of their time than it ran there: what
    such a line writes and waits for is changed together."""
    every = [(loop_line(result, spot), spot) for spot in _host_spots(result, claims)]
    took = totals((line, spot.seconds) for line, spot in every)
    blocked = totals((line, spot.seconds) for line, spot in every if spot.state == "waiting")
    spots = [spot for line, spot in every if 2 * blocked.get(line, 0.0) > took[line]]
    saves = sum_seconds(spots)
    if not is_worth_changing(claims, spots, saves):
        return
    reasons = totals((_wait_of(spot), spot.seconds) for spot in spots)
    what, fix = max(reasons, key=lambda reason: reasons[reason])
    found = finding_of_lines(result, claims, what, spots, saves, own_fix=fix)
    yield replace(found, at_most=fix is None)  # a sleep is left out, and other waits are for what takes as long


def _wait_of(spot: Spot) -> tuple[str, str | None]:
    call = spot.call or next((site.call for site in spot.sites), "")
    return next((words for pattern, words in _WAITS.items() if pattern.search(call)), _WAITS_FOR_SOMETHING)


@check(
    "host work in the loop that the device does not need",
    "Logging, plots, files or statistics inside the loop make every iteration longer.",
    "Do it every N iterations, after the loop, or outside it (in a thread if it waits, in a process if it computes in "
    "Python); computations on arrays can go into the compiled function.",
    sampled=True,
)
def host_work(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if lines of the loop compute on the host what its compiled functions do not use."""
    loop = result.hot
    every = _host_spots(result, claims)
    between = set(_between(result, every))
    spots = [spot for spot in every if spot not in between]
    took = sum_seconds(spots)
    saves = (1 - KEPT_SHARE) * took
    if not is_worth_changing(claims, spots, saves):
        return
    lines = {site.line for spot in spots if (site := spot.site_in(loop.key)) is not None}
    read = any(spot.call or site.call for spot in spots for site in spot.sites)  # unknown without the source
    beside = "" if lines & loop.working or not read else ", and no result of this goes to the device"
    what = f"the loop works on the host{beside}"
    fix = _SELDOM if is_seldom(result, spots) else None
    yield finding_of_lines(result, claims, what, spots, saves, own_fix=fix)


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
        and is_in_loop(result, spot)
        and spot not in asleep
        and not (spot.kind == "read" and _read_waits(result, spot))
        # The hot loop's own step to its next item is no work; a loop within it is.
        and not (
            spot.sites[0].key == loop.key and spot.location.line == spot.sites[0].loop_line and spot.call in _STEPPING
        )
        and not _is_brief(result, spot)
    ]


def _read_waits(result: ProgramResult, spot: Spot) -> bool:
    """Return whether a call that reads an array mostly waits for the device; what runs there is then the end of that
    wait, and what waits in one that mostly runs is no reason for it."""
    reads = [
        each
        for each in result.hot.spots
        if each.kind == "read" and (each.location, each.call) == (spot.location, spot.call)
    ]
    return sum_seconds(each for each in reads if each.state == "device_busy") > sum_seconds(reads) / 2


def _is_brief(result: ProgramResult, spot: Spot) -> bool:
    """Return whether the line takes too little time to contain work that could be left out, such as `step += 1`."""
    loop = result.hot
    site = spot.site_in(loop.key)
    line_seconds = loop.times.each(site.line) if site is not None else None
    return line_seconds is not None and line_seconds < BRIEF_SECONDS


CONTENDED = "contended"
HELD_SHARE = 0.5
"""Time for which the threads in one function ran, or were kept from running, as a share of the loop's waits, from which
it is they that hold the lock."""
_NAMES_LISTED = 3


@check(
    "another thread holds Python's lock (the GIL)",
    "Python runs in one thread at a time. A thread that computes in Python keeps the loop from making its next call, "
    "for 5 ms each time, also while the device has nothing to do.",
    "Move what that thread computes into a process (multiprocessing, concurrent.futures.ProcessPoolExecutor), do it "
    "less often, or use functions that release the lock (NumPy on large arrays, compression, files). A free-threaded "
    "Python has no such lock.",
    sampled=True,
)
def lock_held(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the loop waits for the lock, and another thread computed at that time, by its own clock, while
    samples that found the lock held saw it at a line of the user's."""
    spots = [spot for spot in claims.free_spots(result.hot.spots) if spot.kind == CONTENDED]
    waits = sum_seconds(spots)
    if not is_worth_changing(claims, spots, waits):
        return
    threads = [
        (thread, min(thread.cpu_seconds + thread.delay_seconds, window.monotonic_seconds - window.began_seconds))
        for window in result.sample_windows
        if any(line.kind == CONTENDED for line in window.lines)
        for thread in window.threads
        if thread.at
    ]
    held = totals((replace(thread.at, line=None), took) for thread, took in threads)
    where = max(held, key=lambda function: held[function], default=None)
    if where is None or held[where] < HELD_SHARE * waits:
        return
    there = [thread for thread, _ in threads if replace(thread.at, line=None) == where]
    if sum(thread.samples for thread in there) < LEAST_SAMPLES:
        return
    seen = totals((thread.at, thread.samples) for thread in there)
    at, ran = max(seen, key=lambda line: seen[line]), sum(thread.cpu_seconds for thread in there)
    names = list(dict.fromkeys(safe(thread.name) for thread in there))
    who = f"the thread {names[0]} runs" if len(names) == 1 else f"the threads {and_more(names, _NAMES_LISTED)} run"
    lines = lines_of(result, spots)
    claims.is_lock_held = True
    # a call gives the lock away and has to get it back, so its time is not that of launching what it calls
    claims.take(spots)
    claims.take([spot for spot in result.hot.spots if result.hot.part(spot) == DISPATCH or spot.kind == "inline"])
    yield Finding(
        f"the loop waits for Python's lock, {cost_text(result, waits)}, and {who} Python "
        f"meanwhile: {seconds(ran, 2)} of CPU, mostly at {at.short(result.directory)}",
        (at, *lines),
        seconds=waits,
        saves_seconds=waits,
        estimate=True,
    )
