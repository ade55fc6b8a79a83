"""What `jaxprof script` costs the program that it records, beside cProfile and `jax.profiler.trace`.

    python bench/overhead.py [--rounds 7] [--program hot_loop] [--peers 2] [--smoke]

Each round runs a program plainly, under `jaxprof script --plain`, and plainly again; a pair is jaxprof's wall time over
the mean of the two plain runs around it, both from the start of the process to its end. The fixed start is what the
`empty` program takes longer (it imports JAX and compiles once); it is taken off before the ratio, and has a limit of
its own. The peers run `--peers` rounds, with their own start inside, because they have no other. `--smoke` runs each
once, without peers. Exits 1 past a limit, unless the plain runs differ among themselves by more than the excess: then
it says so.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
START_LIMIT_SECONDS = 0.3
LIMITS = {"training_loop": 1.05, "scan": 1.05, "many_jits": 1.05, "changing_shapes": 1.05, "hot_loop": 1.10}
TRACED = """
import runpy, sys, tempfile
import jax
with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
    runpy.run_path(sys.argv[1], run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Paired:
    """The plain and the recorded runs of one program, in seconds, in turns."""

    plain: list[float]
    recorded: list[float]

    def ratios(self, start_seconds: float) -> list[float]:
        """Recorded over the mean of the plain runs before and after it, without the fixed start."""
        around = zip(self.plain, self.plain[1:], strict=False)
        return [
            (recorded - start_seconds) / ((before + after) / 2)
            for recorded, (before, after) in zip(self.recorded, around, strict=True)
        ]

    @property
    def own_spread(self) -> float:
        """Median distance from 1 of the ratios of successive plain runs."""
        return statistics.median(abs(b / a - 1) for a, b in zip(self.plain, self.plain[1:], strict=False))

    @property
    def extra_seconds(self) -> float:
        """Median of what recording took longer."""
        around = zip(self.plain, self.plain[1:], strict=False)
        return statistics.median(
            recorded - (before + after) / 2 for recorded, (before, after) in zip(self.recorded, around, strict=True)
        )


def timed(command: list[str]) -> float:
    """Wall seconds of a command. Raises CalledProcessError when it fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - began


def plain(program: str) -> float:
    return timed([sys.executable, str(PROGRAMS / f"{program}.py")])


def recorded(program: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run.jaxprof")
        return timed(
            [sys.executable, "-m", "jaxprof", "script", "--plain", "--out", out, str(PROGRAMS / f"{program}.py")]
        )


def c_profiled(program: str) -> float:
    with tempfile.NamedTemporaryFile() as out:
        return timed([sys.executable, "-m", "cProfile", "-o", out.name, str(PROGRAMS / f"{program}.py")])


def traced(program: str) -> float:
    return timed([sys.executable, "-c", TRACED, str(PROGRAMS / f"{program}.py")])


def pairs(program: str, rounds: int) -> Paired:
    """Plain, recorded, plain, recorded, ..., plain."""
    plain(program)
    found = Paired([plain(program)], [])
    for _ in range(rounds):
        found.recorded.append(recorded(program))
        found.plain.append(plain(program))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", type=int, default=2)
    parser.add_argument("--program", action="append", choices=sorted(LIMITS))
    parser.add_argument("--smoke", action="store_true", help="one round of one program, without peers")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.peers, args.program = 1, 0, args.program or ["scan"]
    began, failed = time.perf_counter(), False
    empty = pairs("empty", args.rounds)
    start = max(0.0, empty.extra_seconds)
    failed |= start > START_LIMIT_SECONDS
    print(f"fixed start: {start:.3f} s beside {statistics.median(empty.plain):.2f} s (limit {START_LIMIT_SECONDS} s)")
    print(
        f"{'program':<18}{'plain':>9}{'ratio':>8}{'range':>16}{'limit':>7}{'plain spread':>14}{'cProfile':>10}"
        f"{'jax trace':>11}"
    )
    for program in args.program or LIMITS:
        found = pairs(program, args.rounds)
        ratios = found.ratios(start)
        middle, usual = statistics.median(ratios), statistics.median(found.plain)
        peers = [
            f"{statistics.median(peer(program) for _ in range(args.peers)) / usual:.2f}×" if args.peers else "-"
            for peer in (c_profiled, traced)
        ]
        excess = middle - LIMITS[program]
        verdict = ""
        if excess > 0:
            noise = excess <= found.own_spread
            verdict = "  cannot be told at this noise" if noise else "  past the limit"
            failed |= not noise
        print(
            f"{program:<18}{usual:>7.2f} s{middle:>8.3f}{min(ratios):>8.3f}-{max(ratios):.3f}"
            f"{LIMITS[program]:>9.2f}{found.own_spread:>13.1%}{peers[0]:>11}{peers[1]:>11}{verdict}",
            flush=True,
        )
    print(f"{args.rounds} pairs a program, {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
