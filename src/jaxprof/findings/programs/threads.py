"""The finding about other Python threads of the program, which hold the interpreter's lock while its loop needs it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.programs import DISPATCH
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, seconds
from jaxprof.events.finding import Finding
from jaxprof.findings.programs.claims import LEAST_SAMPLES, Claims, check
from jaxprof.findings.programs.loop_lines import cost_text, is_worth_changing, lines_of, sum_seconds

CONTENDED = "contended"
HELD_SHARE = 0.5
"""CPU time of the threads at one line, as a share of the loop's waits, from which it is they that hold the lock."""
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
    if not is_worth_changing(result, claims, spots, waits):
        return
    threads = [
        (thread, min(thread.cpu_seconds, window.monotonic_seconds - window.began_seconds))
        for window in result.sample_windows
        if any(line.kind == CONTENDED for line in window.lines)
        for thread in window.threads
        if thread.at
    ]
    ran = totals((thread.at, took) for thread, took in threads)
    at = max(ran, key=lambda location: ran[location], default=None)
    if at is None or ran[at] < HELD_SHARE * waits:
        return
    there = [thread for thread, _ in threads if thread.at == at]
    if sum(thread.samples for thread in there) < LEAST_SAMPLES:
        return
    names = list(dict.fromkeys(safe(thread.name) for thread in there))
    who = f"the thread {names[0]} runs" if len(names) == 1 else f"the threads {and_more(names, _NAMES_LISTED)} run"
    lines = lines_of(result, spots)
    claims.is_lock_held = True
    # a call gives the lock away and has to get it back, so its time is not that of launching what it calls
    claims.take(spots)
    claims.take([spot for spot in result.hot.spots if result.hot.part(spot) == DISPATCH or spot.kind == "inline"])
    yield Finding(
        "lock_held",
        f"the loop waits for Python's lock, {cost_text(result, waits)}, and {who} Python "
        f"meanwhile: {seconds(ran[at], 2)} of CPU, mostly at {at.short(result.directory)}",
        (at, *lines),
        seconds=waits,
        saves_seconds=waits,
        estimate=True,
    )
