"""What recording costs a loop: that its iterations are timed, or counted by their number, and its stack sampled.

    python bench/iterations.py [--turns 15] [--seconds 0.5] [--burners 2] [--smoke]

An iteration does a fixed amount of work in Python, of about 20 us, 1 ms or 20 ms. `each`: a thread looks at the main
thread 100 times a second, as the recorder's does, with and without following the iterations, by the CPU seconds of the
loop's thread. `closely` and `later`: the recorder's own sampler, as in the first seconds of a program and after them,
by the wall time: the loop waits for the interpreter's lock while a sample is taken. Each turn runs the loop both ways,
in alternating order. The first figure is the ratio of the least of each, which other programs disturb least; beside it
stands the middle half of the turns' ratios. `--burners`: beside so many processes that burn a core. `--smoke` takes two
short turns. Exits 1 where the first is past its limit.

On Python 3.13, the least of 60 turns of 1500 iterations of 20 us: 1.020 where each is timed, 1.002 after they were
found too short for that, 1.000 while their number is read 100 times a second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from itertools import product

from jaxprof.events import Event, ProgramSampled, StageRunning
from jaxprof.recorder.samples import sampler as sampling
from jaxprof.recorder.samples.loops import loops_of
from jaxprof.recorder.samples.steps import IterationWatch, line_clock

STEPS = {"20 us": 20e-6, "1 ms": 1e-3, "20 ms": 20e-3}


def burn(parent: int) -> None:
    while os.getppid() == parent:
        pass


def run(count: int, work: int) -> float:
    began = time.thread_time()
    for step in range(count):
        sum(range(work + step % 2))
    return (time.thread_time() - began) / count


def turn_of_iterations(count: int, work: int, *, on: bool) -> tuple[float, str]:
    """CPU seconds an iteration, and how the iterations were found."""
    main, over, seen = threading.get_ident(), threading.Event(), set[str]()
    clock = line_clock(main)
    watch = IterationWatch(clock)

    def look() -> None:
        for tick in range(1 << 60):
            if over.wait(0.01):
                return
            frame = sys._current_frames().get(main)
            if on:
                watch.sample(frame)
            if tick == 0 and on:
                watch.follow(loops_of(run.__code__)[0])
            if tick % 25 == 0 and on:
                watch.look(None)
                seen.update(event.found_by for event in watch.collect(time.monotonic()))

    thread = threading.Thread(target=look)
    thread.start()
    run(max(8, count // 4), work)
    took = run(count, work)
    over.set()
    thread.join()
    if on:
        seen.update(event.found_by for event in watch.collect(time.monotonic(), final=True))
    watch.follow(None)
    if clock is not None:
        clock.close()
    return took, ", ".join(sorted(seen))


class NoLedger:
    """Nothing compiles."""

    def stage_seconds(self) -> dict[str, float]:
        return {}

    def running(self) -> list[StageRunning]:
        return []


def turn_of_samples(count: int, work: int, close_seconds: float, *, on: bool) -> tuple[float, str]:
    """Wall seconds an iteration, and how many samples were taken a second."""
    sampling.CLOSE_SECONDS = close_seconds
    windows: list[ProgramSampled] = []

    def emit(event: Event) -> None:
        if isinstance(event, ProgramSampled):
            windows.append(event)

    samples = sampling.StackSampler(emit, NoLedger(), main_thread=threading.get_ident(), began_seconds=time.monotonic())
    if on:
        samples.start()
    run(max(8, count // 4), work)
    began = time.perf_counter()
    run(count, work)
    took = time.perf_counter() - began
    samples.stop()
    taken, seconds = sum(each.samples for each in windows), sum(sum(each.states.values()) for each in windows)
    return took / count, f"{taken / seconds:.0f} samples a second" if seconds else ""


KINDS: dict[str, tuple[float, Callable[..., tuple[float, str]]]] = {
    "each": (1.01, turn_of_iterations),
    "closely": (1.02, lambda count, work, on: turn_of_samples(count, work, 60.0, on=on)),
    "later": (1.02, lambda count, work, on: turn_of_samples(count, work, 0.0, on=on)),
}
"""By name: the limit, and what takes a turn."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="two short turns of the shortest iteration")
    args = parser.parse_args()
    for _ in range(args.burners):
        multiprocessing.Process(target=burn, args=(os.getpid(),), daemon=True).start()
    if args.smoke:
        args.turns, args.seconds = 2, 0.1
    failed = False
    each = min(run(2000, 1000) for _ in range(5)) / 1000
    print(f"Python {sys.version.split()[0]}\n{'what':<9}{'lasts':>6}{'least':>9}{'middle half':>18}  how")
    for (kind, (limit, turn)), (name, seconds) in product(
        KINDS.items(), list(STEPS.items())[: 1 if args.smoke else None]
    ):
        work, count, how = int(seconds / each), max(8, int(args.seconds / seconds)), ""
        took: dict[bool, list[float]] = {True: [], False: []}
        for number in range(args.turns):
            for on in (True, False) if number % 2 else (False, True):
                iteration, found = turn(count, work, on=on)
                took[on].append(iteration)
                how = found or how
        ratios = [with_it / plain for with_it, plain in zip(took[True], took[False], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        least = min(took[True]) / min(took[False])
        failed |= least > limit
        print(f"{kind:<9}{name:>6}{least:>9.4f}{low:>10.4f}-{high:.4f}  {how or 'nothing'}", flush=True)
    return 1 if failed and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
