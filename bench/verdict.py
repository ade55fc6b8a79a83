"""How often `jaxprof run` is right about programs whose difference is known, alone and beside a neighbour.

    python bench/verdict.py [--sessions 20] [--neighbour] [--workloads matmul,sines,sorting] [--budget 6] [--json FILE]

The workloads of `bench/programs/verdict_pairs.py` have a variant that is the same program once more, and two that take
10 % and 30 % more steps. Each session measures one of them beside the baseline, as a user would. With `--neighbour`, a
process of its own burns one core, then two, in irregular bursts of 50 to 800 ms, all the while. The table has, for each
workload, how often the same program was called faster or slower, how often a slower one was called slower, how often
the interval held the truth, and the median half width.

Twenty sessions for each of three workloads are sixty comparisons of a program with itself. Exits 1 where more than 5 %
of them are called faster or slower, or where fewer than 80 % of the planted 10 % (beside the neighbour: 30 %) are
found. It needs a machine that does nothing else, and hours: a session starts ten processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ROOT / "bench" / "programs" / "verdict_pairs.py"
WORKLOADS = ("matmul", "sines", "sorting")
PLANTED = {"again": 0.0, "slower-10": 0.1, "slower-30": 0.3}
MOST_FALSE, LEAST_POWER = 0.05, 0.80
BURST_SECONDS = (0.05, 0.8)


@dataclass(frozen=True, slots=True)
class Compared:
    """What one session said of one variant beside the baseline."""

    workload: str
    variant: str
    verdict: str
    reason: str | None
    ratio: float | None
    low: float | None
    high: float | None
    basis: str
    wall_seconds: float

    @property
    def holds(self) -> bool | None:
        """Whether the 95 % interval holds the truth; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= 1 / (1 + PLANTED[self.variant]) <= self.high


def burn(parent: int) -> None:
    """Works and rests in turn, as long as the bench lives; in half of the bursts on a second core, too."""
    chance = random.Random(1)
    while os.getppid() == parent:
        end = time.monotonic() + chance.uniform(*BURST_SECONDS)
        second = None
        if chance.random() < 0.5:
            second = multiprocessing.Process(target=spin, args=(end,), daemon=True)
            second.start()
        spin(end)
        if second is not None:
            second.join()
        time.sleep(chance.uniform(*BURST_SECONDS))


def spin(end: float) -> None:
    while time.monotonic() < end:
        pass


@contextlib.contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    process = multiprocessing.Process(target=burn, args=(os.getpid(),))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def measure(workload: str, variant: str, options: Sequence[str]) -> Compared:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "jaxprof", "run", f"{PAIRS}:{workload}", "--variant", variant]
        command += ["--no-capture", "--format", "json", "--out", str(Path(folder) / "session.jaxprof"), *options]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        wall = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    (run,) = [run for run in json.loads(done.stdout)["runs"] if run["variant"] == variant]
    versus: dict[str, Any] = run["versus"]
    low, high = versus["ci95"] or (None, None)
    return Compared(
        workload, variant, versus["verdict"], versus["reason"], versus["speedup"], low, high, versus["basis"], wall
    )


def share(found: Sequence[Compared], *verdicts: str) -> float | None:
    return sum(one.verdict in verdicts for one in found) / len(found) if found else None


def line(name: str, found: Sequence[Compared]) -> str:
    of = {variant: [one for one in found if one.variant == variant] for variant in PLANTED}
    held = [one.holds for one in found if one.holds is not None]
    halves = [(one.high / one.low) ** 0.5 - 1 for one in found if one.low and one.high]
    figures = [
        share(of["again"], "faster", "slower"),
        share(of["again"], "same"),
        share(of["slower-10"], "slower"),
        share(of["slower-30"], "slower"),
        statistics.fmean(held) if held else None,
        statistics.median(halves) if halves else None,
    ]
    return f"{name:12}" + "".join(f"{'-' if value is None else f'{value:.1%}':>10}" for value in figures)


def faults(found: Sequence[Compared], beside: bool) -> list[str]:
    again = [one for one in found if one.variant == "again"]
    planted = "slower-30" if beside else "slower-10"
    slower = [one for one in found if one.variant == planted]
    said = []
    if (wrong := share(again, "faster", "slower") or 0) > MOST_FALSE:
        said.append(f"{wrong:.0%} of {len(again)} comparisons of a program with itself were called faster or slower")
    if slower and (right := share(slower, "slower") or 0) < LEAST_POWER:
        said.append(f"{right:.0%} of {len(slower)} programs that are {PLANTED[planted]:.0%} slower were called slower")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20, help="of each workload with itself; a quarter with others")
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(WORKLOADS))
    parser.add_argument("--neighbour", action="store_true", help="measure beside one that works in bursts")
    parser.add_argument("--budget", default="6", help="seconds of sampling for each run")
    parser.add_argument("--launches", default="5")
    parser.add_argument("--json", type=Path, help="every comparison as data")
    args = parser.parse_args()
    if unknown := set(args.workloads) - set(WORKLOADS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if args.sessions < 1:
        parser.error("--sessions takes a number from 1 on")
    options = ["--budget", args.budget, "--launches", args.launches]
    counts = {variant: args.sessions if more == 0 else -(-args.sessions // 4) for variant, more in PLANTED.items()}
    print(f"{'workload':12}{'false':>10}{'same':>10}{'10 %':>10}{'30 %':>10}{'covered':>10}{'± half':>10}")
    found: list[Compared] = []
    with neighbour(args.neighbour):
        for workload in args.workloads:
            own = [measure(workload, variant, options) for variant, count in counts.items() for _ in range(count)]
            found += own
            print(line(workload, own), flush=True)
    print(line("all", found))
    walls = [one.wall_seconds for one in found]
    print(f"a session takes {statistics.median(walls):.0f} s; {len(found)} sessions")
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    said = faults(found, args.neighbour)
    for fault in said:
        print(fault)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
