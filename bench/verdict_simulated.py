"""How often a verdict is wrong, how often a difference is found, how often the interval holds the truth: simulated.

    python bench/verdict_simulated.py [--sessions 100] [--json FILE] [--smoke]

The machines of `tests/stats/machines.py` drift, swing, have a neighbour that works in bursts, and processes that differ
from launch to launch. On each, the same program is compared with itself, and with one that is 10 % slower (30 % beside
the neighbour). Ours takes turns in blocks of 10 ms; the other ways measure one side after the other, as their tools do:

- *bootstrap of calls*: a process a side, as long as three of our launches, and an i.i.d. bootstrap of both medians.
- *pyperf compare_to*: 20 processes a side of one warm-up and three values of 0.1 s (its defaults); Student's two-sample
  t test over all values, at 95 % (`is_significant` in pyperf/_utils.py).
- *hyperfine*: ten runs a side of 0.3 s; the ratio of the means ± its propagated standard deviation, as it prints it
  (relative_speed.rs); read as a verdict where 1 lies outside.

Exits 1 where ours, with three or more launches, is past a limit: over all machines 5 % false verdicts and 93 %
coverage; 80 % power on those whose launches differ by no more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import numpy as np  # noqa: E402

from jaxprof.stats.blocks import LaunchBlocks, t_quantile  # noqa: E402
from jaxprof.stats.comparison import compare, narrow_enough  # noqa: E402
from jaxprof.stats.summary import bootstrap_medians  # noqa: E402
from stats.machines import MACHINES, Machine, in_turns  # noqa: E402

BLOCKS = 60
WANTED_WIDTH = 0.02
MOST_LAUNCHES = 15
MOST_FALSE, LEAST_COVERED, LEAST_POWER = 0.05, 0.93, 0.80
MOST_LAUNCH_EFFECT = 0.01
"""Where launches differ by more, three cannot be relied upon to find 10 %, and should not."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a way to compare said in one session: above 1, the second program is faster."""

    verdict: str
    low: float | None = None
    high: float | None = None


def one_after_the_other(launches: int, blocks: int = 60) -> list[list[int]]:
    """All launches of the first side, then all of the second, each a process of its own."""
    return [[side] * blocks for side in (0, 1) for _ in range(launches)]


def bootstrap_of_calls(launches: Sequence[LaunchBlocks]) -> tuple[float, float]:
    """The 95 % interval of the ratio of the first side's median to the second's, as if all calls were independent:
    what is wrong with measuring one after the other, and judging by that."""
    drawn = []
    for side in (0, 1):
        calls = [second for launch in launches for block in launch.of_side(side) for second in block.seconds]
        drawn.append(bootstrap_medians(calls, seed=side))
    low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
    return float(low), float(high)


Way = Callable[[np.random.Generator, Machine, float], Judged]


def turns(launches: int, *, beside_others: bool = False) -> Way:
    def judge(random: np.random.Generator, machine: Machine, slower: float) -> Judged:
        measured = machine.measure(random, in_turns(random, launches, BLOCKS), slower)
        found = compare(measured, beside_others=beside_others)
        return Judged(found.verdict, found.low, found.high)

    return judge


def turns_until_narrow(random: np.random.Generator, machine: Machine, slower: float) -> Judged:
    measured = machine.measure(random, in_turns(random, MOST_LAUNCHES, BLOCKS // 3), slower)
    for launches in range(2, MOST_LAUNCHES + 1):
        found = compare(measured[:launches], by_width=True)
        if narrow_enough(found, WANTED_WIDTH):
            break
    return Judged(found.verdict, found.low, found.high)


def one_process_each(random: np.random.Generator, machine: Machine, slower: float) -> Judged:
    measured = machine.measure(random, one_after_the_other(1, 3 * BLOCKS), slower)
    low, high = bootstrap_of_calls(measured)
    return Judged("faster" if low > 1 else "slower" if high < 1 else "inconclusive", low, high)


def pyperf(random: np.random.Generator, machine: Machine, slower: float) -> Judged:
    sides = means(machine.measure(random, one_after_the_other(20, 40), slower), blocks=10, warm_up=1)
    first, second = (statistics.fmean(side) for side in sides)
    pooled = statistics.fmean(statistics.variance(side) for side in sides)
    score = (first - second) / math.sqrt(2 * pooled / len(sides[0]))
    if abs(score) < t_quantile(0.975, 2 * len(sides[0]) - 2):
        return Judged("inconclusive")
    return Judged("faster" if score > 0 else "slower")


def hyperfine(random: np.random.Generator, machine: Machine, slower: float) -> Judged:
    sides = means(machine.measure(random, one_after_the_other(10, 30), slower), blocks=30)
    first, second = (statistics.fmean(side) for side in sides)
    off = math.hypot(*(statistics.stdev(side) / statistics.fmean(side) for side in sides))
    ratio = max(first, second) / min(first, second)
    if ratio * (1 - off) <= 1:
        return Judged("inconclusive")
    return Judged("faster" if first > second else "slower")


def means(launches: Sequence[LaunchBlocks], blocks: int, warm_up: int = 0) -> tuple[list[float], list[float]]:
    """For each side the means of so many successive blocks (seconds a call), less the first of each process."""
    sides: tuple[list[float], list[float]] = ([], [])
    for launch in launches:
        cut = [launch.blocks[at : at + blocks] for at in range(0, len(launch.blocks), blocks)]
        for some in cut[warm_up:]:
            sides[some[0].side].append(statistics.fmean(second for block in some for second in block.seconds))
    return sides


OURS = "in turns, "
WAYS: dict[str, Way] = {
    OURS + "5 launches": turns(5),
    OURS + "3 launches": turns(3),
    OURS + "5, fast calls": turns(5, beside_others=True),
    OURS + f"until ±{WANTED_WIDTH:.0%}": turns_until_narrow,
    "in turns, 1 launch": turns(1),
    "bootstrap of calls": one_process_each,
    "pyperf compare_to": pyperf,
    "hyperfine": hyperfine,
}
UNLIMITED = {"in turns, 1 launch"}
"""It speaks of its own processes; the table shows what it cannot say of others."""


@dataclass(frozen=True, slots=True)
class Row:
    way: str
    machine: str
    sessions: int
    false_verdicts: float
    """Of sessions that compare a program with itself, the share called faster or slower."""
    power: float
    """Of sessions with a planted difference, the share called slower."""
    covered: float | None
    """Of both, the share whose 95 % interval holds the truth; None for ways without one."""


def play(way: str, name: str, sessions: int) -> Row:
    machine = MACHINES[name]
    random = np.random.default_rng([11, *f"{way} {name}".encode()])
    planted = 0.3 if machine.bursts else 0.1
    same = [WAYS[way](random, machine, 0.0) for _ in range(sessions)]
    other = [WAYS[way](random, machine, planted) for _ in range(sessions)]
    held = [one.low <= 1 <= one.high for one in same if one.low and one.high]
    held += [one.low <= 1 / (1 + planted) <= one.high for one in other if one.low and one.high]
    return Row(
        way,
        name,
        sessions,
        false_verdicts=sum(one.verdict in ("faster", "slower") for one in same) / sessions,
        power=sum(one.verdict == "slower" for one in other) / sessions,
        covered=sum(held) / len(held) if held else None,
    )


def faults(rows: Sequence[Row]) -> list[str]:
    found = []
    for way in WAYS:
        own = [row for row in rows if row.way == way]
        if not way.startswith(OURS) or way in UNLIMITED:
            continue
        if (wrong := statistics.fmean(row.false_verdicts for row in own)) > MOST_FALSE:
            found.append(f"{way}: {wrong:.1%} false verdicts")
        if (covered := statistics.fmean(row.covered or 0 for row in own)) < LEAST_COVERED:
            found.append(f"{way}: {covered:.1%} covered")
        found += [
            f"{way}, {row.machine}: power {row.power:.0%}"
            for row in own
            if MACHINES[row.machine].launch <= MOST_LAUNCH_EFFECT and row.power < LEAST_POWER
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100, help="of each kind, way and machine")
    parser.add_argument("--json", type=Path, help="the table as data")
    parser.add_argument(
        "--smoke", action="store_true", help="one session; the table has to come out, whatever its figures"
    )
    args = parser.parse_args()
    if args.smoke:
        args.sessions = 1
    if args.sessions < 1:
        parser.error("--sessions takes a number from 1 on")
    rows = []
    print(f"{'way':26}{'machine':28}{'false':>8}{'power':>8}{'covered':>9}")
    for way in WAYS:
        own = [play(way, name, args.sessions) for name in MACHINES]
        rows += own
        for row in own:
            print(shown(row), flush=True)
        covered = [row.covered for row in own if row.covered is not None]
        everywhere = Row(
            way,
            "all",
            args.sessions * len(own),
            statistics.fmean(row.false_verdicts for row in own),
            statistics.fmean(row.power for row in own),
            statistics.fmean(covered) if covered else None,
        )
        print(shown(everywhere) + "\n", flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    wrong = faults(rows)
    for fault in wrong:
        print(fault)
    return 1 if wrong and not args.smoke else 0


def shown(row: Row) -> str:
    covered = "-" if row.covered is None else f"{row.covered:.1%}"
    return f"{row.way:26}{row.machine:28}{row.false_verdicts:>8.1%}{row.power:>8.0%}{covered:>9}"


if __name__ == "__main__":
    sys.exit(main())
