"""What keeps the host in the way: loops op by op, values that are fetched in the loop, copies that nobody asked for.

These rest on samples of the main thread's stack: seconds are estimates, and the findings are marked so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.copies import size_text
from jaxprof.results.programs.findings.finding import Finding, finding, is_single
from jaxprof.results.programs.places import Place, place
from jaxprof.safe_text import safe
from jaxprof.units import integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.results.programs.derive import ProgramResult
    from jaxprof.results.programs.parts import LineTime, Transfer

OP_BY_OP_PRIMITIVES: Final = 3
"""Different single operations that one function calls, before jit would have something to fuse."""
OP_BY_OP_SHARE: Final = 0.1
"""At these lines, of the time in which the program worked (without imports and compiling); below it jit would not be
noticed."""
STRETCHES: Final = 3
"""A line that was seen in so many stretches of the recording is in a loop, and was not passed once."""
SYNC_SHARE: Final = 0.05
"""That the host waits at such lines, of the time in which the program worked."""
LEAST_SECONDS: Final = 0.1
"""And at least so long: a few samples tell nothing."""
GUARD_COUNT: Final = 100
"""Implicit copies of one direction: fewer are the set-up."""
GUARD_BYTES: Final = 64 << 20
"""Or so many bytes: some 5 ms over PCIe, 64 MiB of host memory in any case."""
TRANSFER_SAMPLES: Final = 10
"""Samples in a copy at one line: fewer tell nothing."""
TRANSFER_SHARE: Final = 0.02
"""Of the wall time, of copies that only samples saw."""
_WAITING: Final = frozenset({"device_busy", "transfer", "waiting"})
_SYNC: Final = re.compile(
    r"^(float|int|bool|complex|print|str|repr|format)\(\)$|^f-string$|^(np|onp|numpy|math)\.\w|"
    r"\.(item|tolist|__\w+__)\(\)$|(^|\.)device_get\(\)$"
)
"""Calls that need the value, and so wait until the device has it. `block_until_ready` is asked for, and is not one."""
_LINES_NAMED: Final = 3


def op_by_op_loop(result: ProgramResult) -> Iterator[Finding]:
    """A function whose operations are dispatched one by one, and at whose lines the time goes."""
    primitives: dict[tuple[str, str], dict[str, None]] = {}
    for row in result.compiles:
        where = place(row.called_from) if is_single(row) else None
        if where is not None:
            primitives.setdefault((where.file, where.function), {})[row.function] = None
    eager, jitted = _called_lines(result) if primitives else (set(), set())
    for (file, function), names in primitives.items():
        lines = [
            line
            for line in result.lines
            if (line.place.file, line.place.function) == (file, function)
            and line.state in ("host_busy", "device_busy")
            and (line.place.file, line.place.line) not in jitted
            and not _is_sync(line)
        ]
        if not any((line.place.file, line.place.line) in eager for line in lines):
            continue
        took = sum(line.seconds for line in lines)
        if len(names) < OP_BY_OP_PRIMITIVES or not _matters(result, took, OP_BY_OP_SHARE):
            continue
        if max((line.stretches for line in lines), default=0) < STRETCHES and not _in_a_loop(result, lines):
            continue
        named = ", ".join(list(names)[:_LINES_NAMED]) + (", …" if len(names) > _LINES_NAMED else "")
        yield finding(
            "op_by_op_loop",
            f"`{safe(function or file)}` runs {integer(len(names))} kinds of operations one by one ({safe(named)}): "
            f"{_about(result, took)}{_named(result, lines)}",
            f"Put jax.jit on `{safe(function)}`, or on the body of its loop: one dispatch instead of one for each "
            "operation, and they are fused."
            if function and function != "<module>"
            else "Move the body of the loop into a function with jax.jit: one dispatch instead of one for each "
            "operation, and they are fused.",
            tuple(line.place for line in lines),
            seconds=took,
            estimate=True,
        )


def host_sync(result: ProgramResult) -> Iterator[Finding]:
    """Lines in the loop that need a value on the host, and wait for the device until it is there."""
    lines = [line for line in result.lines if line.state in _WAITING and _is_sync(line)]
    found = [line for line in lines if line.stretches >= STRETCHES or _in_a_loop(result, [line])]
    took = sum(line.seconds for line in found)
    if not _matters(result, took, SYNC_SHARE):
        return
    calls = ", ".join(dict.fromkeys(line.call for line in found[:_LINES_NAMED]))
    yield finding(
        "host_sync",
        f"the host waits for the device in the loop: {safe(calls)}, {_about(result, took)}{_named(result, found)}",
        "While it waits it cannot dispatch the next step: keep the values as arrays and fetch them every N steps or "
        "after the loop (jax.device_get of a list), and print with jax.debug.print.",
        tuple(line.place for line in found),
        seconds=took,
        estimate=True,
    )


_DIRECTIONS: Final = {
    "host_to_device": (
        "host to device",
        "Put what stays the same on the device once, before the loop (jax.device_put), and let batches come as jax "
        "arrays; NumPy arrays and Python numbers that are passed to a jitted function are copied at each call.",
    ),
    "device_to_host": (
        "device to host",
        "Fetch values less often and together (jax.device_get of a tree): NumPy functions and Python operators on a "
        "jax array copy it to the host.",
    ),
    "device_to_device": (
        "device to device",
        "Create or place the arrays with the sharding that the function expects, so that it need not copy them.",
    ),
}


def implicit_transfers(result: ProgramResult) -> Iterator[Finding]:
    """Copies in each direction: what JAX's guard counted, with the lines that samples saw. Lines that fetch a value
    by name (`float()`, `.item()`) are `host_sync`'s."""
    fetched = {(line.place.file, line.place.line) for line in result.lines if line.state in _WAITING and _is_sync(line)}
    for direction, (words, advice) in _DIRECTIONS.items():
        rows = [row for row in result.transfers if row.direction == direction]
        counted = [row for row in rows if row.source == "guard"]
        sampled = [
            row
            for row in rows
            if row.source != "guard" and row.count >= TRANSFER_SAMPLES and not _is_at(row.where, fetched)
        ]
        count, moved = sum(row.count for row in counted), sum(row.bytes or 0 for row in counted)
        took = sum(row.seconds or 0.0 for row in sampled)
        exact = count >= GUARD_COUNT or moved >= GUARD_BYTES
        if not exact and (result.of_wall(took) or 0.0) < TRANSFER_SHARE:
            continue
        said = (
            f"{integer(count)} implicit copies from {words}{size_text(counted)}"
            if count
            else f"implicit copies from {words}"
        )
        at = f"; by samples about {seconds(took, 2)}{_transfer_lines(result, sampled)}" if took else ""
        yield finding(
            "implicit_transfers",
            said + at,
            advice,
            tuple(row.where for row in sampled),
            seconds=took or None,
            estimate=not exact,
        )


def _is_at(where: Place | None, lines: set[tuple[str, int | None]]) -> bool:
    return where is not None and (where.file, where.line) in lines


def _matters(result: ProgramResult, took: float, share: float) -> bool:
    return took >= LEAST_SECONDS and took >= share * result.active_seconds


def _about(result: ProgramResult, took: float) -> str:
    return f"about {seconds(took, 2)}, {percent(result.of_wall(took))} of the wall time"


def _is_sync(line: LineTime) -> bool:
    return _SYNC.search(line.call) is not None


def _in_a_loop(result: ProgramResult, lines: Sequence[LineTime]) -> bool:
    """Whether one of the lines stands in the function of a loop whose steps were counted."""
    looping = {(loop.where.file, loop.where.function) for loop in result.loops if loop.where is not None}
    return any((line.place.file, line.place.function) in looping for line in lines)


def _called_lines(result: ProgramResult) -> tuple[set[tuple[str, int | None]], set[tuple[str, int | None]]]:
    """The lines (file, line) that single operations were compiled from, and those that only jitted functions were."""
    eager: set[tuple[str, int | None]] = set()
    jitted: set[tuple[str, int | None]] = set()
    for row in result.compiles:
        where = place(row.called_from)
        if where is not None:
            (eager if is_single(row) else jitted).add((where.file, where.line))
    return eager, jitted - eager


def _named(result: ProgramResult, lines: Sequence[LineTime]) -> str:
    """`: train.py:91 (6.0 s), train.py:95 (1.2 s)`; nothing for a single line, which the finding names anyway."""
    by_place: dict[Place, float] = {}
    for line in lines:
        by_place[line.place] = by_place.get(line.place, 0.0) + line.seconds
    if len(by_place) == 1:
        return ""
    named = [f"{at.short(result.directory)} ({seconds(took, 2)})" for at, took in by_place.items()]
    more = f" and {len(named) - _LINES_NAMED} more lines" if len(named) > _LINES_NAMED else ""
    return f": {safe(', '.join(named[:_LINES_NAMED]))}{more}"


def _transfer_lines(result: ProgramResult, rows: Sequence[Transfer]) -> str:
    """`, at train.py:88, train.py:91`; nothing for a single line, which the finding names anyway."""
    named = [row.where.short(result.directory) for row in rows if row.where is not None]
    return safe(f", at {', '.join(named[:_LINES_NAMED])}") if len(named) > 1 else ""
