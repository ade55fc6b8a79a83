"""What `jaxprof script` costs the program that it records, beside cProfile and `jax.profiler.trace`.

    python bench/overhead.py [--rounds 7] [--program hot_loop] [--peers 2] [--burners 2] [--smoke]

Each round runs a program plainly, under `jaxprof script --plain`, and plainly again; a pair is jaxprof's wall time over
the mean of the two plain runs around it, both from the start of the process to its end. The fixed start is what the
`empty` program takes longer (it imports JAX and compiles once); it is taken off before the ratio, and has a limit of
its own. CPU is that of all processes, so it has jaxprof's own process in it. All run from bytecode, as an installed
package does, whatever PYTHONDONTWRITEBYTECODE says here. What the command does once its program is recorded (it times
an empty call, if the calls of a loop were brief) is taken off, too, and has a column of its own; its CPU is not taken
off. The peers run `--peers` rounds, with their own start inside, because they have no other. `--burners`: beside so
many processes that burn a core. `--smoke` runs each once, without peers. Exits 1 past a limit, unless the plain runs
differ among themselves by more than the excess: then it says so.

`--counted [--python PYTHON]` counts instructions of the calls of `hot_loop` with callgrind instead, which no neighbour
changes, in some four minutes. Under callgrind a loop is fifty times slower, and the sampler, which wakes by the clock,
takes fifty times the samples an iteration: so its instructions are counted for one sample, and multiplied by the
samples a second of an undisturbed run. What the main thread pays for a sample is counted fifty times, and on Python
3.12 and later, where the recorder watches slow iterations more closely, what it pays for an iteration is, too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
INSTALLED = Path(sys.executable).with_name("jaxprof")
JAXPROF = [str(INSTALLED)] if INSTALLED.exists() else [sys.executable, "-m", "jaxprof"]
"""As users start it: `-m` imports more before our first line."""
START_LIMIT_SECONDS = 0.1
LIMITS = dict.fromkeys(("training_loop", "scan", "many_jits", "changing_shapes", "hot_loop"), 1.02)
BYTECODE = tempfile.TemporaryDirectory(prefix="jaxprof-bytecode-")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = BYTECODE.name
TRACED = """
import runpy, sys, tempfile
import jax
with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
    runpy.run_path(sys.argv[1], run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took, of all its processes."""

    wall_seconds: float
    """Without `after_seconds`."""
    cpu_seconds: float
    after_seconds: float = 0.0
    """What the command took once its program was recorded."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The plain and the recorded runs of one program, in turns, by one clock."""

    plain: list[float]
    recorded: list[float]

    @property
    def around(self) -> list[float]:
        """The mean of the plain runs before and after each recorded one."""
        return [(before + after) / 2 for before, after in pairwise(self.plain)]

    def ratios(self, start_seconds: float) -> list[float]:
        """Recorded over plain, without the fixed start."""
        return [(took - start_seconds) / plain for took, plain in zip(self.recorded, self.around, strict=True)]

    @property
    def own_spread(self) -> float:
        """Median distance from 1 of the ratios of successive plain runs."""
        return statistics.median(abs(after / before - 1) for before, after in pairwise(self.plain))

    @property
    def extra_seconds(self) -> float:
        """Median of what recording took longer."""
        return statistics.median(took - plain for took, plain in zip(self.recorded, self.around, strict=True))


def run(command: list[str]) -> Cost:
    """Raises CalledProcessError when it fails."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, used = os.wait4(child.pid, 0)
    took = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Cost(took, used.ru_utime + used.ru_stime)


def plain(program: str) -> Cost:
    return run([sys.executable, str(PROGRAMS / f"{program}.py")])


def recorded(program: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.jaxprof"
        cost = run([*JAXPROF, "script", "--plain", "--out", str(out), str(PROGRAMS / f"{program}.py")])
        ends = {event.get("type"): event for event in map(json.loads, out.read_text().splitlines())}
        after = ends["session_closed"]["monotonic_seconds"] - ends["run_closed"]["monotonic_seconds"]
        return Cost(cost.wall_seconds - after, cost.cpu_seconds, after)


def c_profiled(program: str) -> Cost:
    with tempfile.NamedTemporaryFile() as out:
        return run([sys.executable, "-m", "cProfile", "-o", out.name, str(PROGRAMS / f"{program}.py")])


def traced(program: str) -> Cost:
    return run([sys.executable, "-c", TRACED, str(PROGRAMS / f"{program}.py")])


def pairs(program: str, rounds: int) -> tuple[Paired, Paired, float]:
    """Plain, recorded, plain, recorded, ..., plain: wall and CPU seconds, and the median of what came afterwards."""
    if rounds > 1:
        plain(program)  # what a first start reads is read then
    without, with_it = [plain(program)], list[Cost]()
    for _ in range(rounds):
        with_it.append(recorded(program))
        without.append(plain(program))
    return (
        Paired([cost.wall_seconds for cost in without], [cost.wall_seconds for cost in with_it]),
        Paired([cost.cpu_seconds for cost in without], [cost.cpu_seconds for cost in with_it]),
        statistics.median(cost.after_seconds for cost in with_it),
    )


COUNTED = str(PROGRAMS / "counted_loop.py")
COUNTED_ITERATIONS = 200_000
UNDISTURBED_ITERATIONS = 500_000
CALLGRIND = """#!/bin/sh
[ "$1" = -I ] && exec {python} "$@"  # jaxprof asks for its version
export COUNTING=1
exec valgrind -q --tool=callgrind --separate-threads=yes --callgrind-out-file={folder}/%p {python} "$@"
"""


class Loop(NamedTuple):
    """One run of the counted loop."""

    cpu_seconds: float
    """Of the main thread."""
    samples_a_second: float
    samples: float
    main: int
    """Instructions of the main thread; 0 without callgrind, as those of the others."""
    others: int
    """Those of the other threads that run Python: of a recorded program, the recorder's."""


def loop(python: str, iterations: int, *, recording: bool, counting: bool) -> Loop:
    """Run the counted loop. Raises CalledProcessError when it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder, session, times = Path(name), Path(name, "run.jaxprof"), Path(name, "times")
        if counting:
            script = folder / "python"
            script.write_text(CALLGRIND.format(python=python, folder=folder))
            script.chmod(0o700)
            python = str(script)
        record = [*JAXPROF, "script", "--plain", "--out", str(session), "--python"]
        run([*(record if recording else []), python, COUNTED, str(iterations), str(times)])
        began, ended, cpu_seconds = json.loads(times.read_text())

        samples, main, others = 0.0, 0, 0
        events = map(json.loads, session.read_text().splitlines() if recording else ())
        for event in (event for event in events if event.get("type") == "program_sampled"):
            start, end = event["began_seconds"], event["monotonic_seconds"]
            samples += event["samples"] * max(0.0, min(end, ended) - max(start, began)) / (end - start)
        for path in folder.glob("*.2-*"):
            thread = path.name.rpartition("-")[2]
            if any(
                "_PyEval_EvalFrameDefault" in each.read_text("utf-8", "replace") for each in folder.glob(f"*-{thread}")
            ):
                found = int(re.findall(r"^totals: (\d+)", path.read_text("utf-8", "replace"), re.MULTILINE)[-1])
                main, others = (found, others) if thread == "01" else (main, others + found)
        return Loop(cpu_seconds, samples / (ended - began), samples, main, others)


def print_counted(python: str) -> int:
    """Print what recording adds to the instructions of a loop. Return the exit code."""
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed, and nothing else counts instructions here")
        return 0
    # First what is undisturbed: it writes the bytecode, too.
    free_recorded, free = (
        loop(python, UNDISTURBED_ITERATIONS, recording=recording, counting=False) for recording in (True, False)
    )
    counted, recorded = (
        loop(python, COUNTED_ITERATIONS, recording=recording, counting=True) for recording in (False, True)
    )
    each, each_recorded = counted.main / COUNTED_ITERATIONS, recorded.main / COUNTED_ITERATIONS
    a_second = each * UNDISTURBED_ITERATIONS / free.cpu_seconds
    a_sample = recorded.others / recorded.samples
    of_main, of_sampler = each_recorded / each - 1, a_sample * free_recorded.samples_a_second / a_second
    ratio, limit = 1 + of_main + of_sampler, LIMITS["hot_loop"]
    print(f"main thread: {each:,.0f} instructions an iteration, {each_recorded:,.0f} recorded: {of_main:+.2%}")
    print(
        f"sampler: {a_sample:,.0f} instructions a sample (of {recorded.samples:.0f}), "
        f"{free_recorded.samples_a_second:.1f} samples a second, beside {a_second:.3g} instructions a second of the "
        f"loop: {of_sampler:+.2%}"
    )
    print(f"together: {ratio:.4f} (limit {limit})")
    return int(ratio > limit)


def burn(parent: int) -> None:
    while os.getppid() == parent:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", type=int, default=2)
    parser.add_argument("--program", action="append", choices=sorted(LIMITS))
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="one round of one program, without peers")
    parser.add_argument("--counted", action="store_true", help="count instructions")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the counted loop")
    args = parser.parse_args()
    if args.counted:
        return print_counted(args.python)
    for _ in range(args.burners):
        multiprocessing.Process(target=burn, args=(os.getpid(),), daemon=True).start()
    if args.smoke:
        args.rounds, args.peers, args.program = 1, 0, args.program or ["scan"]
        del ENVIRONMENT["PYTHONPYCACHEPREFIX"]  # writing the bytecode of jax anew takes most of a small round
    began, failed = time.perf_counter(), False
    if not args.smoke:
        recorded("empty")  # writes the bytecode
    empty, empty_cpu, _ = pairs("empty", args.rounds)
    start, start_cpu = (max(0.0, found.extra_seconds) for found in (empty, empty_cpu))
    failed |= start > START_LIMIT_SECONDS
    print(
        f"fixed start: {start:.3f} s beside {statistics.median(empty.plain):.2f} s (limit {START_LIMIT_SECONDS} s); "
        f"CPU {start_cpu:.3f} s beside {statistics.median(empty_cpu.plain):.2f} s",
        flush=True,
    )
    print(
        f"{'program':<18}{'plain':>9}{'ratio':>8}{'range':>16}{'limit':>7}{'plain spread':>14}{'CPU ratio':>11}"
        f"{'range':>16}{'afterwards':>12}{'cProfile':>10}{'jax trace':>11}"
    )
    for program in args.program or LIMITS:
        found, cpu, after = pairs(program, args.rounds)
        ratios, cpu_ratios = found.ratios(start), cpu.ratios(start_cpu)
        middle, usual = statistics.median(ratios), statistics.median(found.plain)
        peers = [
            f"{statistics.median(peer(program).wall_seconds for _ in range(args.peers)) / usual:.2f}×"
            if args.peers
            else "-"
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
            f"{LIMITS[program]:>9.2f}{found.own_spread:>13.1%}{statistics.median(cpu_ratios):>10.3f}"
            f"{min(cpu_ratios):>10.3f}-{max(cpu_ratios):.3f}{after:>10.2f} s{peers[0]:>11}{peers[1]:>11}{verdict}",
            flush=True,
        )
    print(f"{args.rounds} pairs a program, {time.perf_counter() - began:.0f} s")
    return 1 if failed and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
