"""Whether jaxprof's median is the right one: against a loop written by hand, in a fresh process, interleaved.

    python bench/fidelity.py [--pairs 15] [--case tiny] [--runner MODULE:FUNCTION]

Three calls of about 5 µs, 0.5 ms and 50 ms. A hand loop, jaxprof, a hand loop, jaxprof, ... take turns, each in a new
process; a pair is jaxprof's median over the mean of the two hand loops around it. The median of the paired ratios must
be within 3 %, or within the spread of the hand loop against itself in the same run (the median distance from 1 of the
ratios of successive hand loops) where that is wider. Prints a table; exits 1 past the limit.

The hand loop shares no code with jaxprof. The runner of jaxprof's side is a function from a target to the median in
seconds: by default the engine's process, driven by the client; `--runner` names another, such as one with the terminal
app live.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

TOLERANCE = 0.03
FEWEST_PAIRS = 15
BUDGET_SECONDS = 1.0

Runner = Callable[[str], float]

PROGRAMS = """
import jax.numpy as jnp
import numpy as np


def tiny(x):
    return x + 1


def tiny_inputs():
    return (np.ones(16, np.float32),)


def middle(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def middle_inputs():
    return (np.random.default_rng(0).standard_normal(1_000_000, dtype=np.float32),)


def long(x):
    return jnp.sort(x)


def long_inputs():
    return (np.random.default_rng(0).standard_normal(170_000, dtype=np.float32),)
"""

HAND_LOOP = """
import sys, time
import jax
import programs

name, seconds = sys.argv[1], float(sys.argv[2])
function = jax.jit(getattr(programs, name))
arguments = [jax.device_put(array) for array in getattr(programs, name + "_inputs")()]


def sample(calls):
    began = time.perf_counter()
    for _ in range(calls):
        function(*arguments).block_until_ready()
    return (time.perf_counter() - began) / calls


sample(1)
sample(3)
calls = max(1, int(2e-4 / sample(5)))  # the clock and the loop cost about 0.5 µs a sample
ends = time.perf_counter() + 0.2 * seconds
while time.perf_counter() < ends:
    sample(calls)
times = []
ends = time.perf_counter() + 0.8 * seconds
while time.perf_counter() < ends or len(times) < 5:
    times.append(sample(calls))
print(sorted(times)[len(times) // 2])
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case: medians in seconds, in the order in which they were taken."""

    case: str
    hand: tuple[float, ...]
    jaxprof: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """jaxprof's median over the mean of the hand loops before and after it."""
        around = [(before + after) / 2 for before, after in zip(self.hand, self.hand[1:], strict=False)]
        return [ours / theirs for ours, theirs in zip(self.jaxprof, around, strict=True)]

    @property
    def spread(self) -> float:
        """How far successive hand loops are from each other: the median distance of their ratios from 1."""
        pairs = zip(self.hand, self.hand[1:], strict=False)
        return statistics.median(abs(after / before - 1) for before, after in pairs)

    @property
    def deviation(self) -> float:
        """How far the median ratio is from 1."""
        return abs(statistics.median(self.ratios) - 1)

    @property
    def limit(self) -> float:
        """What `deviation` may be."""
        return max(TOLERANCE, self.spread)


def run_engine(target: str) -> float:
    """jaxprof's median of `target`, by the engine's process as the client drives it."""
    from jaxprof.engine.protocol.request import RunRequest
    from jaxprof.events import RunFinished, RunSpec, SamplesTaken
    from jaxprof.runner.engine_process import EngineProcess
    from jaxprof.runner.interpreter import find_interpreter

    process = EngineProcess(find_interpreter(Path(sys.executable)), {"JAX_PLATFORMS": "cpu"})
    samples: list[float] = []
    try:
        process.send(
            RunRequest(
                run="r1",
                spec=RunSpec(
                    target=target,
                    workload=target,
                    variant="jit",
                    budget_seconds=BUDGET_SECONDS,
                    check=False,
                    how="jit",
                    device="cpu:0",
                ),
            )
        )
        while True:
            events = process.read(0.1)
            for event in events:
                if isinstance(event, SamplesTaken) and event.series == "run":
                    samples += event.seconds
                if isinstance(event, RunFinished):
                    if event.status != "ok":
                        raise SystemExit(f"{target}: {event.error}\n{event.traceback}")
                    return statistics.median(samples)
            if not events and not process.alive:
                raise SystemExit(f"{target}: {process.explain().what}")
    finally:
        process.close()


def run_hand_loop(folder: Path, case: str) -> float:
    """The median of the hand loop, in a fresh process."""
    command = [sys.executable, str(folder / "hand_loop.py"), case, str(BUDGET_SECONDS)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compare(case: str, folder: Path, runner: Runner, pairs: int) -> Outcome:
    """Takes turns until there are `pairs` pairs."""
    hand, ours = [run_hand_loop(folder, case)], []
    for _ in range(pairs):
        ours.append(runner(f"{folder / 'programs.py'}:{case}"))
        hand.append(run_hand_loop(folder, case))
    return Outcome(case, tuple(hand), tuple(ours))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS)
    parser.add_argument("--case", action="append", choices=("tiny", "middle", "long"))
    parser.add_argument("--runner", default="", help="MODULE:FUNCTION, from a target to its median in seconds")
    options = parser.parse_args(arguments)
    runner = run_engine
    if options.runner:
        module, _, function = options.runner.partition(":")
        runner = getattr(importlib.import_module(module), function)
    began = time.monotonic()
    print(f"{'case':8}{'hand loop':>12}{'jaxprof':>12}{'ratio':>9}{'limit':>9}{'range of ratios':>20}")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "programs.py").write_text(PROGRAMS)
        (folder / "hand_loop.py").write_text(HAND_LOOP)
        for case in options.case or ("tiny", "middle", "long"):
            outcome = compare(case, folder, runner, options.pairs)
            past = outcome.deviation > outcome.limit
            failed |= past
            ratios = sorted(outcome.ratios)
            print(
                f"{case:8}{_seconds(statistics.median(outcome.hand)):>12}{_seconds(statistics.median(outcome.jaxprof)):>12}"
                f"{statistics.median(ratios):>9.3f}{'± ' + format(outcome.limit, '.1%'):>9}"
                f"{f'{ratios[0]:.3f} to {ratios[-1]:.3f}':>20}{'   past its limit' if past else ''}",
                flush=True,
            )
    print(f"{options.pairs} pairs a case, {time.monotonic() - began:.0f} s")
    return int(failed)


def _seconds(value: float) -> str:
    from jaxprof.units import seconds

    return seconds(value)


if __name__ == "__main__":
    sys.exit(main())
