"""What the programs of `verdict_pairs.py` take in one process, in turns: for `bench/verdict.py`.

    python verdict_truth.py WORKLOAD SECONDS SHARE...

A share of steps more is not that share of time more: entering and leaving a call costs some steps. Prints the median
seconds of a call of each program as JSON, in the order of the shares.
"""

import json
import statistics
import sys
import time

import jax
from verdict_pairs import program

BLOCK_SECONDS = 0.05


def main() -> None:
    workload, seconds, *shares = sys.argv[1:]
    made = [program(workload, float(share)) for share in shares]
    inputs = made[0][1]()
    steps = [step for step, _ in made]
    for step in steps:
        jax.block_until_ready(step(*inputs))
    medians: list[list[float]] = [[] for _ in steps]
    end = time.perf_counter() + float(seconds)
    while time.perf_counter() < end:
        for number in (*range(len(steps)), *reversed(range(len(steps)))):
            medians[number].append(block(steps[number], inputs))
    json.dump([statistics.median(each) for each in medians], sys.stdout)


def block(step, inputs) -> float:
    calls, end = [], time.perf_counter() + BLOCK_SECONDS
    while (began := time.perf_counter()) < end:
        jax.block_until_ready(step(*inputs))
        calls.append(time.perf_counter() - began)
    return statistics.median(calls)


if __name__ == "__main__":
    main()
