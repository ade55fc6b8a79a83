"""Compute how long a collective takes over the links of a machine: a lower bound, and an estimate for its algorithm.

The **bound** holds for any algorithm. The bytes that a unit (a device, a chip, a host) must send to the others follow
from what the others lack, and its bandwidth is known; the slowest level decides. Of an array of S bytes, in m units:

    all-gather, reduce-scatter   S (m - 1) / m
    all-reduce                   2 S (m - 1) / m, or S if the switch can add
    all-to-all                   what its devices have for devices of other units
    collective-permute           what its devices send to devices of other units

(Chan et al., "Collective communication: theory, practice, and experience", Concurrency and Computation 19(13), 2007;
Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.) Groups that exchange at the same time
share a unit's bandwidth.

The **estimate** is the time of a ring or a tree, with latencies: for GPUs by the model with which NCCL itself chooses
(`src/graph/tuning.cc`, version 2.8), for TPUs with a microsecond per hop (Austin et al., "How to Scale Your Model",
2025). It includes neither contention nor the network's protocol overhead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.devices.targets.machine import Level, Machine
    from jaxprof.hlo.analysis.collectives import Collective


@dataclass(frozen=True, slots=True)
class Exchange:
    """One execution of a collective on a machine. Times in seconds; None if the links or the groups are unknown."""

    bound_seconds: float | None
    """Lower bound: no algorithm is faster."""
    estimate_seconds: float | None
    """Time by the model of its algorithm; never below the bound."""
    link: str
    """Name of the level that takes longest; empty if none is known, or if nothing leaves a device."""
    way: str
    """Algorithm of the estimate: `ring`, `tree`, `direct`; empty if there is none."""
    busy: tuple[float, ...]
    """Least time that each level of the machine is in use."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """Spread of the groups of a collective over the units of a level."""

    units: int
    """Largest number of units that one group spans."""
    members: int
    """Largest number of devices that one group has in one unit."""
    groups: int
    """Largest number of groups that cross the border of one unit."""


UNKNOWN: Final = Exchange(None, None, "", "", ())


def exchange(collective: Collective, machine: Machine) -> Exchange:
    """Return the times of one execution of `collective` on `machine`, whose devices are numbered host by host."""
    if not machine.levels or collective.groups is None:
        return UNKNOWN
    sent = [_sent(collective, level) for level in machine.levels]
    busy = tuple(_least_seconds(collective, at, sent, machine) for at in range(len(sent)))
    slowest = max(range(len(busy)), key=lambda at: busy[at])
    if not any(busy):
        # One device exchanges nothing; no document gives the speed between the devices of one chip.
        alone = all(len(group) == 1 for group in collective.groups)
        return Exchange(0.0, 0.0, "", "", busy) if alone else Exchange(None, None, "", "", busy)
    estimate, way = _estimate(collective, machine)
    return Exchange(busy[slowest], max(estimate, busy[slowest]), machine.levels[slowest].name, way, busy)


def _least_seconds(collective: Collective, at: int, sent: list[float], machine: Machine) -> float:
    """Return the least seconds that a level is in use.

    If units have different numbers of links and all of them take part, the one with the fewest links must send what it
    has (and receive what it lacks), and all links together must carry what all units send.
    """
    level = machine.levels[at]
    if level.units is None or not sent[at] or _spread(collective, level.devices).units < level.units:
        return sent[at] / _bandwidth(at, sent, machine)
    if collective.opcode != "all-reduce":
        return sent[at] / level.least
    return max(collective.bytes / level.least, sent[at] / level.mean)


def _bandwidth(at: int, sent: list[float], machine: Machine) -> float:
    """Return the bytes per second that a unit of a level can send: over the level itself, to units further away over
    its share of the outer levels."""
    level = machine.levels[at]
    outer = (further for further, moved in zip(machine.levels[at + 1 :], sent[at + 1 :], strict=True) if moved)
    return level.bandwidth + sum(further.bandwidth * level.devices / further.devices for further in outer)


def _sent(collective: Collective, level: Level) -> float:
    """Return the least bytes that the busiest unit of a level sends, for all groups together."""
    whole = float(collective.bytes)
    if collective.opcode == "collective-permute":
        return whole * _crossing_pairs(collective, level.devices)
    spread = _spread(collective, level.devices)
    if spread.units < 2:
        return 0.0
    part = (spread.units - 1) / spread.units
    if collective.opcode == "all-reduce":
        return whole * spread.groups * (1.0 if level.reduces else 2 * part)
    if collective.opcode in ("all-to-all", "ragged-all-to-all"):
        return whole * spread.groups * spread.members * part
    if collective.opcode == "collective-broadcast":
        return whole * spread.groups
    return whole * spread.groups * part


def _crossing_pairs(collective: Collective, devices: int) -> int:
    """Return the number of pairs that leave the busiest unit, or enter it."""
    leaving: dict[int, int] = {}
    entering: dict[int, int] = {}
    for source, target in collective.groups or ():
        if source // devices != target // devices:
            leaving[source // devices] = leaving.get(source // devices, 0) + 1
            entering[target // devices] = entering.get(target // devices, 0) + 1
    return max((*leaving.values(), *entering.values()), default=0)


def _spread(collective: Collective, devices: int) -> _Spread:
    units = members = 0
    crossing: dict[int, int] = {}
    for group in collective.groups or ():
        inside: dict[int, int] = {}
        for number in group:
            inside[number // devices] = inside.get(number // devices, 0) + 1
        units, members = max(units, len(inside)), max(members, *inside.values())
        if len(inside) > 1:
            for unit in inside:
                crossing[unit] = crossing.get(unit, 0) + 1
    return _Spread(units, members, max(crossing.values(), default=0))


# -- the estimate ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Protocol:
    """A protocol of NCCL: microseconds to begin, for a step over NVLink and over the network, and the share of the
    bandwidth that carries data."""

    begin: float
    nvlink: float
    network: float
    efficiency: float


_RING: Final = (
    _Protocol(3.6, 0.47, 2.7, 0.25),
    _Protocol(10.0, 1.9, 4.0, 0.92),
    _Protocol(8.4, 3.4, 9.6, 1.0),
)
_TREE: Final = (
    _Protocol(4.4, 0.52, 5.0, 0.9 / 3.8),
    _Protocol(4.4, 1.2, 8.5, 0.9 * 0.915),
    _Protocol(0.0, 28.0, 50.0, 0.9),
)
"""Protocols LL, LL128 and Simple, with the constants of `ncclTopoTuneModel`."""
_HOP: Final = 1e-6
"""Seconds for a hop over ICI."""


def _estimate(collective: Collective, machine: Machine) -> tuple[float, str]:
    if machine.levels[0].latency == "ici":
        return _over_ici(collective, machine)
    sent = [_expected(collective, level) for level in machine.levels]
    moving = max(sent)
    if collective.opcode not in ("all-reduce", "all-gather", "reduce-scatter"):
        far = any(moved for moved, level in zip(sent, machine.levels, strict=True) if level.latency == "network")
        steps = (
            (each.begin + (each.network if far else each.nvlink)) * 1e-6 + moving / each.efficiency for each in _RING
        )
        return min(steps), "direct"
    whole = max(len(group) for group in collective.groups or ((),))
    outer = machine.levels[-1]
    hosts = _spread(collective, outer.devices).units if outer.latency == "network" else 1
    twice = 2 if collective.opcode == "all-reduce" else 1
    ring = min(
        (protocol.begin + twice * ((whole - hosts) * protocol.nvlink + (hosts - 1) * protocol.network)) * 1e-6
        + moving / protocol.efficiency
        for protocol in _RING
    )
    if collective.opcode != "all-reduce":
        return ring, "ring"
    # Up the tree and down again each host sends the array once, a leaf in one direction only.
    up_and_down = max(_expected(collective, level, once=True) for level in machine.levels)
    tree = min(
        (protocol.begin + 2 * ((ceil(whole / hosts) - 1) * protocol.nvlink + ceil(log2(hosts)) * protocol.network))
        * 1e-6
        + 2 * up_and_down / protocol.efficiency
        for protocol in _TREE
    )
    return (tree, "tree") if tree < ring else (ring, "ring")


def _expected(collective: Collective, level: Level, *, once: bool = False) -> float:
    """Return the seconds that a level is in use, at the bandwidth of the devices in use, if its switches do not add."""
    spread = _spread(collective, level.devices)
    if collective.opcode == "all-reduce" and spread.units > 1:
        # A ring of all devices passes each border once: it sends (n - 1) / n twice, whatever the size of a unit.
        size = max(len(group) for group in collective.groups or ((),))
        times = 1.0 if once else 2 * (size - 1) / size
        return collective.bytes * spread.groups * times / level.expected
    return _sent(collective, level) / level.expected


def _over_ici(collective: Collective, machine: Machine) -> tuple[float, str]:
    """Return the time of rings along the dimensions, all of them for a whole slice, one for a part of it; and the
    algorithm."""
    (level,) = machine.levels
    spread = _spread(collective, level.devices)
    sent = _sent(collective, level)
    if collective.opcode in ("collective-permute", "collective-broadcast"):
        return sent * 2 / level.expected + _HOP, "direct"
    whole = level.units is not None and spread.units == level.units
    one_way = level.expected / 2  # two neighbours have one link between them
    moving = sent / (level.least if whole else one_way if spread.units == 2 else level.expected)
    dimensions = 2 if whole else 1
    hops = dimensions * ceil(spread.units ** (1 / dimensions) / 2)
    return moving + (2 if collective.opcode == "all-reduce" else 1) * hops * _HOP, "ring"
