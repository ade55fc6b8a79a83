"""A process that has larger shards than the others, by the arguments for which its functions were compiled.

What the ledger has is exact, but an array that is spread over the devices of several processes has its whole shape
there. Its shards are of the same size on all devices (JAX divides evenly), so only arrays that lie on one device are
compared, and only functions that every process has compiled once: which shape is used how often is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from jaxprof.analysis.jobs.figures import OwnArguments, ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.verdict import DEVICE
from jaxprof.units import bytes_, seconds

LEAST_MORE: Final = 0.25
"""Of the bytes on the others."""
LEAST_BYTES: Final = 64 << 10
"""By which they differ: of less a device does not become late."""
_ADVICE: Final = (
    "Give each process as much: the same number of rows, the remainder dropped or padded on all, and long examples "
    "spread by their length."
)


def uneven_shards(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """The processes with a function whose own arguments are larger than on the middle one of the others; of several
    functions the one that differs by most."""
    known = [process for process in processes if process.own_arguments is not None]
    if len(known) < 2 or len(known) < len(processes):
        return
    tables = [{(each.function, each.defined_line): each for each in process.own_arguments or ()} for process in known]
    shared = set.intersection(*(set(table) for table in tables))
    comparable = [key for key in sorted(shared, key=str) if len({_names(table[key]) for table in tables}) == 1]
    in_order = {key: sorted((table[key] for table in tables), key=lambda each: each.bytes) for key in comparable}
    for place, process in enumerate(known):
        most: tuple[int, OwnArguments, OwnArguments] | None = None
        for key, ranked in in_order.items():
            mine, other = tables[place][key], _middle_of_others(ranked, tables[place][key])
            more = mine.bytes - other.bytes
            if more >= max(LEAST_BYTES, LEAST_MORE * other.bytes) and (most is None or more > most[0]):
                most = more, mine, other
        if most is not None:
            _, mine, other = most
            yield JobFinding(
                "uneven-shards",
                process.index,
                f"process {process.index} on {process.host} has larger shards: {mine.function} is compiled for "
                f"arguments of {bytes_(mine.bytes)} of its own, {bytes_(other.bytes)} on the others "
                f"({_difference(mine, other)})",
                _ADVICE,
                DEVICE,
                where=mine.called_from,
            )


def with_cost(uneven: Sequence[JobFinding], slow: Sequence[JobFinding]) -> list[JobFinding]:
    """Both, where a device that computes for longer and has larger shards is one finding, with what it costs."""
    costs = {finding.index: finding for finding in slow}
    known = {finding.index for finding in uneven}
    return [
        *(_with_cost(finding, costs[finding.index]) if finding.index in costs else finding for finding in uneven),
        *(finding for finding in slow if finding.index not in known),
    ]


def _with_cost(finding: JobFinding, slow: JobFinding) -> JobFinding:
    waited = seconds(slow.seconds)
    message = (
        f"{finding.message}; in the captured time it arrives last at the collectives, and the others wait {waited}"
    )
    return replace(finding, message=message, seconds=slow.seconds)


def _names(arguments: OwnArguments) -> frozenset[str]:
    """What is spread over processes on one of them is not among another's: such functions are not alike."""
    return frozenset(name for name, _, _ in arguments.arguments)


def _middle_of_others(ranked: Sequence[OwnArguments], mine: OwnArguments) -> OwnArguments:
    """Of all but `mine`, which is one of those `ranked` by their bytes: the middle one, of two the larger."""
    middle = (len(ranked) - 1) // 2
    place = bisect_left(ranked, mine.bytes, key=lambda each: each.bytes)
    return ranked[middle + (place <= middle)]


def _difference(mine: OwnArguments, other: OwnArguments) -> str:
    """The argument that differs by most."""
    theirs = {name: (type_, size) for name, type_, size in other.arguments}
    name, type_, _ = max(mine.arguments, key=lambda each: each[2] - theirs[each[0]][1])
    return f"{name}: {type_} against {theirs[name][0]}"
