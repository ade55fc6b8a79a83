"""Compute how long a collective takes at least over the links of a machine, whatever its algorithm.

The bytes that a unit (a device, a chip, a host) must send to the others follow
from what the others lack, and its bandwidth is known; the slowest level decides. Of an array of S bytes, in m units:

    all-gather, reduce-scatter   S (m - 1) / m
    all-reduce                   2 S (m - 1) / m, or S if the switch can add
    all-to-all                   what its devices have for devices of other units
    collective-permute           what its devices send to devices of other units

(Chan et al., "Collective communication: theory, practice, and experience", Concurrency and Computation 19(13), 2007;
Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.) Groups that exchange at the same time
share a unit's bandwidth. Latencies, contention and the network's protocol overhead are not in the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.devices.targets.machine import Level, Machine
    from jaxprof.hlo.analysis.collectives import Collective


@dataclass(frozen=True, slots=True)
class Exchange:
    """The least time of a collective on a machine, in seconds; None if the links or the groups are unknown."""

    bound_seconds: float | None
    """Lower bound: no algorithm is faster."""
    link: str
    """Name of the level that takes longest; empty if none is known, or if nothing leaves a device."""
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


UNKNOWN: Final = Exchange(None, "", ())


def exchange(collective: Collective, machine: Machine) -> Exchange:
    """Return the least time of one execution of `collective` on `machine`, whose devices are numbered host by host."""
    if not machine.levels or collective.groups is None:
        return UNKNOWN
    sent = [_sent(collective, level) for level in machine.levels]
    busy = tuple(_least_seconds(collective, at, sent, machine) for at in range(len(sent)))
    slowest = max(range(len(busy)), key=lambda at: busy[at])
    if not any(busy):
        # One device exchanges nothing; no document gives the speed between the devices of one chip.
        alone = all(len(group) == 1 for group in collective.groups)
        return Exchange(0.0 if alone else None, "", busy)
    return Exchange(busy[slowest], machine.levels[slowest].name, busy)


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
