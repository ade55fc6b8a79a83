"""Machines that disturb what is measured on them, each in a way that is known: for calibrating the statistics.

Time goes by in blocks. A machine as a whole drifts, swings, and has a neighbour that takes a core in bursts; each
process is faster or slower than others of its program (its launch effect) and wanders about that. The truth of a
comparison is what was planted.
"""

import math
from dataclasses import dataclass

import numpy as np

from jaxprof.stats.blocks import Block, LaunchBlocks
from jaxprof.stats.turns import block_order

CALL_SECONDS = 0.005
BLOCK_MILLISECONDS = 10
CALLS = 2


def neighbours(random, count, correlation):
    """Values of standard deviation 1 that resemble the ones before them; at a correlation of 1 a random walk."""
    values = random.normal(size=count)
    own = math.sqrt(1 - correlation**2) or 1.0
    for at in range(1, count):
        values[at] = correlation * values[at - 1] + own * values[at]
    return values.tolist()


@dataclass(frozen=True)
class Machine:
    """All deviations are of the logarithm of a call's time."""

    launch: float = 0.0
    """Standard deviation between processes of the same program."""
    drift: float = 0.0
    """How much slower everything is at the end than at the beginning (on half of the days: faster)."""
    swing: float = 0.0
    """Amplitude of a slow sine, of one to four periods in the time measured."""
    wander: float = 0.0
    """Standard deviation of a process about its own mean, a first-order autoregression from block to block."""
    persistence: float = 0.9
    """How much of that is left a block later."""
    bursts: bool = False
    """A neighbour that works for 50 to 800 ms and rests as long, and slows everything by 1.3 to 2 times."""
    noise: float = 0.02
    """Deviation of a call; one call of a hundred takes half as long again."""

    def measure(self, random, orders, slower=0.0):
        """What is measured with the sides in this order, for each launch, where side 2 (with two sides: 1) is `slower`
        by that share."""
        total = sum(len(order) for order in orders)
        weather = self._weather(random, total)
        launches, at = [], 0
        for order in orders:
            sides = np.asarray(order)
            logs = weather[at : at + len(order)].copy()
            at += len(order)
            for side in set(order):
                own = sides == side
                logs[own] += random.normal() * self.launch + self._wandering(random, int(own.sum()))
            logs[sides == max(1, int(sides.max()))] += math.log1p(slower)
            calls = logs[:, None] + np.abs(random.normal(size=(len(order), CALLS))) * self.noise
            calls[random.random(calls.shape) < 0.01] += math.log(1.5)
            times = (CALL_SECONDS * np.exp(calls)).tolist()
            blocks = tuple(Block(side, tuple(seconds)) for side, seconds in zip(order, times, strict=True))
            launches.append(LaunchBlocks(blocks))
        return launches

    def _weather(self, random, blocks):
        """How much slower everything is in each block."""
        time = np.arange(blocks) / blocks
        phase, periods = random.uniform(0, 2 * math.pi), random.uniform(1, 4)
        found = self.swing * np.sin(2 * math.pi * periods * time + phase)
        found += random.choice([-1, 1]) * self.drift * time
        if self.bursts:
            found += self._bursts(random, blocks)
        return found

    def _bursts(self, random, blocks):
        milliseconds = np.zeros(blocks * BLOCK_MILLISECONDS)
        at, busy = -int(random.integers(400)), bool(random.integers(2))
        while at < len(milliseconds):
            lasts = int(random.integers(50, 801))
            if busy:
                milliseconds[max(at, 0) : max(at + lasts, 0)] = math.log(random.uniform(1.3, 2.0))
            at, busy = at + lasts, not busy
        return milliseconds.reshape(blocks, BLOCK_MILLISECONDS).mean(axis=1)

    def _wandering(self, random, blocks):
        steps = random.normal(size=blocks) * self.wander * math.sqrt(1 - self.persistence**2)
        if self.wander == 0 or blocks == 0:
            return steps
        steps[0] = random.normal() * self.wander
        for at in range(1, blocks):
            steps[at] += self.persistence * steps[at - 1]
        return steps


MACHINES = {
    "quiet": Machine(launch=0.005),
    "launches differ by 2 %": Machine(launch=0.02),
    "launches differ by 10 %": Machine(launch=0.10),
    "drift": Machine(launch=0.01, drift=0.3),
    "swing": Machine(launch=0.01, swing=0.1),
    "processes wander": Machine(launch=0.01, wander=0.03),
    "bursts": Machine(launch=0.01, bursts=True),
    "all at once": Machine(launch=0.02, drift=0.1, swing=0.05, wander=0.02, bursts=True),
}


def in_turns(random, launches, blocks=60, sides=2):
    """The order of each launch: `blocks` for each side, balanced."""
    return [block_order(sides, blocks, int(random.integers(1 << 30))) for _ in range(launches)]
