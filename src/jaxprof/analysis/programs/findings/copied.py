"""Implicit copies between host and device: NumPy arguments of compiled functions, and all others; and what a report
says below a table of copies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.result import ProgramFinding, finding
from jaxprof.events import SignatureLeaf, SourceLocation
from jaxprof.text import safe
from jaxprof.units import bytes_, integer, percent, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.parts import Transfer
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import Compiled
    from jaxprof.session import Run


def counted(run: Run) -> bool:
    """Whether JAX's transfer guard was set to log every implicit copy, and was not refused."""
    program = run.program
    asked = program is not None and program.started is not None and program.started.options.get("transfers") is True
    return asked and not any(warning.code == "transfers_not_counted" for warning in run.warnings)


def size_text(rows: Sequence[Transfer]) -> str:
    """`, 9.38 MiB` of copies that the guard counted, and how many copies have no known size."""
    sizes = [row.bytes for row in rows if row.bytes is not None]
    if not sizes:
        return ""
    silent = sum(row.count for row in rows if row.bytes is None)
    size = bytes_(sum(sizes))
    return f", {size}; JAX reports no size for {integer(silent)}" if silent else f", {size}"


def copies_remark(run: Run, rows: Sequence[Transfer]) -> str:
    """The note below a table of copies."""
    if not counted(run) and not any(row.source == "guard" for row in rows):
        return "Samples show the lines, not the number of copies: jaxprof script --transfers counts them exactly."
    silent = any(row.source == "guard" and row.bytes is None for row in rows)
    return (
        "The transfer guard counts every implicit copy, without its line. It sees neither explicit copies "
        "(device_put, device_get) nor, on a CPU, float(), .item() and np.asarray."
    ) + (" On the fast path of jitted calls JAX reports neither type nor bytes to it." if silent else "")


GUARD_COUNT: Final = 100
"""Implicit copies in one direction: fewer are the set-up."""
GUARD_BYTES: Final = 64 << 20
"""Or this many bytes: some 5 ms over PCIe, and 64 MiB of host memory in any case."""
LARGE_BYTES: Final = 1 << 20
"""Size of NumPy arguments from which the time of a call may be the copy: some 0.2 ms."""
_COPIES: Final = ("transfer", "dispatch", "call")
"""The other states that a call with NumPy arguments is seen in: the copy happens inside it."""
_ASKED: Final = re.compile(r"(^|\.)device_put\(\)$|^(jnp|jax\.numpy)\.\w+\(\)$")
"""Calls that make an array on the device: their copies are no implicit ones."""
_LINES_NAMED: Final = 3

_DIRECTIONS: Final = {
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
    "device_to_device": (
        "device to device",
        "Create or place the arrays with the sharding that the function expects, so that it need not copy them.",
    ),
}


def numpy_argument(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """A compiled function is called with NumPy arrays, which are copied to the device at every call."""
    loop = result.hot
    fed = {(row.place.file, row.place.line): row for row in _given_numpy(result)}
    spots = [
        spot
        for spot in claims.free_spots(loop.spots)
        if spot.sites and (spot.kind == "fed" or (spot.kind in _COPIES and (spot.place.file, spot.place.line) in fed))
    ]
    took = sum(spot.seconds for spot in spots)
    if not spots or not claims.worth(took, sum(spot.samples for spot in spots)):
        return
    claims.take(spots)
    rows = [fed[key] for key in dict.fromkeys((spot.place.file, spot.place.line) for spot in spots) if key in fed]
    size = max((row.bytes for row in rows), default=0)
    named = next((row.names for row in rows), "")
    function = f"`{safe(rows[0].function)}`" if rows else "a compiled function"
    whole = loop.seconds
    yield finding(
        "numpy_argument",
        f"{function} is called with NumPy arrays{f' ({safe(named)})' if named else ''} and copies "
        f"{f'{bytes_(size)} ' if size else 'them '}to the device at every call: about "
        f"{seconds(took, 2)}{f', {percent(took / whole)} of the loop' if whole else ''}",
        "Put what stays the same on the device once, before the loop (jax.device_put); keep a whole data set there "
        "and index it in the compiled function, so that only new data is copied, ahead of its step.",
        tuple(dict.fromkeys(spot.place for spot in spots)),
        seconds=took,
        saves=took,
        estimate=True,
    )


class _Given:
    """A call of a compiled function with NumPy arrays."""

    __slots__ = ("bytes", "function", "names", "place")

    def __init__(self, row: Compiled, where: SourceLocation) -> None:
        self.place, self.function, self.bytes = where, row.function, row.numpy_bytes
        leaves = [leaf for leaf in row.signature if leaf.from_numpy and not _is_kept(leaf)]
        leaves.sort(key=lambda leaf: -(leaf.bytes or 0))
        self.names = ", ".join(f"{leaf.name}: {leaf.type}" for leaf in leaves[:_LINES_NAMED])


def _is_kept(leaf: SignatureLeaf) -> bool:
    """Whether a NumPy argument is not copied at every call: it is used in place, or replaced by the result."""
    return leaf.zero_copy or leaf.replaced


def _given_numpy(result: ProgramResult) -> Iterator[_Given]:
    for row in result.compiles:
        if row.numpy_bytes >= LARGE_BYTES and row.called_from:
            yield _Given(row, row.called_from)


def implicit_transfers(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """Copies in each direction: those that JAX's guard counted, with the lines that samples saw."""
    for direction, (words, advice) in _DIRECTIONS.items():
        rows = [row for row in result.transfers if row.direction == direction]
        counted = [row for row in rows if row.source == "guard"]
        spots = [
            spot
            for spot in claims.free_spots(result.spots)
            if spot.kind == "transfer" and spot.sites and not _ASKED.search(spot.call)
        ]
        sampled = [row for row in rows if row.source != "guard"]
        lines = {(row.where.file, row.where.line) for row in sampled if row.where is not None}
        spots = [spot for spot in spots if (spot.place.file, spot.place.line) in lines]
        count, moved = sum(row.count for row in counted), sum(row.bytes or 0 for row in counted)
        took = sum(spot.seconds for spot in spots)
        exact = count >= GUARD_COUNT or moved >= GUARD_BYTES
        if not exact and not (spots and claims.worth(took, sum(spot.samples for spot in spots))):
            continue
        claims.take(spots)
        message = (
            f"{integer(count)} implicit copies from {words}{size_text(counted)}"
            if count
            else f"implicit copies from {words}"
        )
        at = f"; by samples about {seconds(took, 2)}{_transfer_lines(result, sampled)}" if took else ""
        yield finding(
            "implicit_transfers",
            message + at,
            advice,
            tuple(row.where for row in sampled),
            seconds=took or None,
            saves=took or None,
            estimate=not exact,
        )


def _transfer_lines(result: ProgramResult, rows: Sequence[Transfer]) -> str:
    """`, at train.py:88, train.py:91`; nothing for a single line, which the finding names anyway."""
    named = list(dict.fromkeys(row.where.short(result.directory) for row in rows if row.where is not None))
    return safe(f", at {', '.join(named[:_LINES_NAMED])}") if len(named) > 1 else ""
