"""Phrases about a program that its reports and screens share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.analysis.programs import HOST, WAIT_BOUND
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.sentences import compile_reason
from jaxprof.analysis.programs.steps import StepFigures
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import UNKNOWN, counted, integer, percent, scaled, seconds
from jaxprof.events import Compiled

if TYPE_CHECKING:
    from jaxprof.analysis.programs.spots import Spot
    from jaxprof.analysis.programs.verdict import Verdict
    from jaxprof.events.finding import Finding

ARGV_WIDTH = 44
"""Most columns of the command line in a title; a longer command line follows below the title, whole."""


def title(program: ProgramResult) -> str:
    """Return the title of a program: `train.py --epochs 3  ·  exit code 0  ·  42.1 s  ·  161 steps/s`."""
    parts = [shorten(command(program), ARGV_WIDTH)]
    parts.append(condition(program))
    if program.wall_seconds:
        parts.append(seconds(program.wall_seconds))
    if program.steps is not None and program.steps.per_second is not None:
        parts.append(f"{scaled(program.steps.per_second)} steps/s")
    return "  ·  ".join(parts)


def condition(program: ProgramResult) -> str:
    """Return the state of a program: `running`, `standing still`, `ended well`, `failed, exit code 1`, `cancelled`,
    or `cut off` without a recorded end."""
    run, code = program.run, program.exit_code
    if program.stands_still:
        return "standing still"
    if not program.ended:
        return "running" if not run.deserted else "cut off"
    failed = run.status in ("failed", "crashed") or code or program.raised[2] is not None
    word = {"cancelled": "cancelled"}.get(run.status, "failed" if failed else "ended well")
    return f"{word}, exit code {code}" if code else word


def command(program: ProgramResult) -> str:
    """Return `sys.argv` of a program on one line, or the name of the workload if it is empty."""
    return safe(" ".join(program.argv)) or safe(program.run.plan.workload)


def words(name: str) -> str:
    """Return the name of a state or phase in words: `device busy` for `device_busy`."""
    return name.replace("_", " ")


def ledger_title(program: ProgramResult) -> str:
    """Return the title of the compile ledger: `428 compilations of 6 functions, 31.2 s, 74 % of the wall time`."""
    share = program.of_wall(program.compile_seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    functions = counted(len(program.functions), "function")
    return (
        f"{counted(program.compile_count, 'compilation')} of {functions}, {seconds(program.compile_seconds)}{of_wall}"
    )


def cache(rows: Sequence[Compiled]) -> str:
    """Return the hits and misses of the persistent cache, `3 hits, 1 miss`; a dash if it is off or unknown."""
    hits = sum(row.count for row in rows if row.cache == "hit")
    misses = sum(row.count for row in rows if row.cache == "miss")
    counts = [counted(hits, "hit")] if hits else []
    counts += [counted(misses, "miss")] if misses else []
    return ", ".join(counts) or UNKNOWN


def verdict(program: ProgramResult) -> str:
    """Return what bounds the hot loop, `data-bound: 86 % (80-91 %) of the loop at train.py:88`, or why that is unknown;
    an empty text if JAX was not at work."""
    bound, where = program.verdict, program.hot.where
    at = f"the loop at {where.short(program.directory)}" if where is not None else "the program's work"
    if bound.kind is None:
        return safe(f"what bounds {at} is unknown, because {bound.why_unknown}") if bound.seconds else ""
    if bound.otherwise is None:
        hot, parts = program.hot, [f"{_share(bound)} of {at}"]
        if bound.kind == WAIT_BOUND:
            parts.append(f"mostly{_longest(hot.waits, program.directory)}")
        if hot.preempted > 0.05 * hot.seconds:
            waited = percent(hot.preempted / hot.seconds)
            parts.append(f"without the {waited} of its time in which it waited for a processor")
        return safe(", ".join(parts))
    rest = bound.otherwise
    then = f"; when it works, {_share(rest)} of {at}" if rest.kind is not None else ""
    waits = _longest(program.hot.asleep, program.directory)
    return safe(f"{_share(bound)} of its time the program waits{waits}{then}")


def _longest(waits: Sequence[Spot], directory: str) -> str:
    """Return the call and the line of the longest wait: ` in time.sleep() at train.py:88`."""
    longest = max(waits, key=lambda spot: spot.seconds)
    call = longest.call or next((site.call for site in longest.sites), "")
    return f"{f' in {call}' if call else ''} at {longest.location.short(directory)}"


def _share(bound: Verdict) -> str:
    """Return the verdict with its share and interval: `data-bound: 86 % (80-91 %)`."""
    low, high = percent(bound.low), percent(bound.high)
    between = f" ({low.removesuffix(' %')}-{high})" if low != high else ""
    return f"{bound.kind}: {percent(bound.share)}{between}"


def verdict_parts(program: ProgramResult) -> str:
    """Return the other parts of the loop's time, `device 40 %, host 12 %`; empty without any."""
    bound, hot = program.verdict, program.hot
    parts = dict(hot.parts)
    if bound.kind == WAIT_BOUND:
        parts[HOST] -= sum(spot.seconds for spot in hot.waits)
    others = sorted(((took, name) for name, took in parts.items() if f"{name}-bound" != bound.kind), reverse=True)
    shares = [
        f"{name} {percent(took / bound.seconds)}"
        for took, name in others
        if bound.seconds and took > 0.01 * bound.seconds
    ]
    if bound.seconds and hot.unknown > 0.01 * bound.seconds:
        shares.append(f"unknown {percent(hot.unknown / bound.seconds)}")
    return ", ".join(shares)


def finding_text(program: ProgramResult, finding: Finding) -> str:
    """Return the message of a finding after its source line, and what it would save."""
    at = f"{finding.where.short(program.directory)}: " if finding.where is not None else ""
    return safe(f"{at}{finding.message}{' (estimate)' if finding.estimate else ''}{saving(finding)}")


def saving(finding: Finding) -> str:
    """Return `; would save about 3.9 s`; an empty text where that is not clearly less than the finding costs."""
    return f"; would save about {seconds(finding.saves_part, 2)}" if finding.saves_part is not None else ""


def widest_error(samples: int) -> float:
    """Return half the 95 % interval of a share of one half, the share with the widest one, from this many samples."""
    return float(0.98 / samples**0.5)


def loop(program: ProgramResult, steps: StepFigures) -> str:
    """Return a loop with its steps: `loop at train.py:88: 2 388 steps (step 12 to 2 399), median 6.20 ms`."""
    where = steps.where.short(program.directory)
    median = ""
    if steps.median_seconds is not None:
        median = f", median {seconds(steps.median_seconds)}"
        if steps.jitter is not None:
            median = f"{median}, jitter {percent(steps.jitter)}"
    iterations = program.iterations_of(steps)  # all from the first timed step to the last, if its steps were timed
    count = f"{counted(steps.count if iterations is None else iterations.count, 'step')} ({how_seen(program, steps)})"
    return safe(f"loop at {where}: {count}, {scaled(steps.per_second)} steps/s{median}")


def how_seen(program: ProgramResult, steps: StepFigures) -> str:
    """Return which counter numbers the steps of a loop, `step 7 to 599`, or how the steps were counted."""
    series = program.iterations_of(steps)
    if series is None:
        return "counted"
    seen = "read with the samples" if series.found_by == "number" else ""
    if not series.numbered_by:
        return seen or "each counted"
    numbers = f"{series.numbered_by} {integer(series.first)} to {integer(series.last)}"
    return f"{numbers}, {seen}" if seen else numbers


def why_again(row: Compiled) -> str:
    """Return why a function was compiled again; `first time` for a first compilation."""
    return compile_reason(row) or ("first time" if row.reason_code == "first" else row.reason_code.replace("_", " "))


def signature(row: Compiled) -> str:
    """Return the arguments of a compiled function, `(x: f32[4,128], n: 3, and 12 more)`; empty if unknown."""
    shown = row.signature[:4]
    more = len(row.signature) + row.signature_more - len(shown)
    parts = [f"{leaf.name}: {leaf.type}" + f" from NumPy {leaf.narrowed}".rstrip() * leaf.from_numpy for leaf in shown]
    parts += [f"and {integer(more)} more"] if more else []
    return f"({', '.join(parts)})" if parts else ""
