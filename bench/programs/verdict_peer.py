"""One process of a benchmark tool that measures one side after the other: for `bench/verdict.py`.

    python verdict_peer.py FILE SECONDS

Calls the `step` of FILE with its `step_inputs` for one block to warm up, and for three blocks of SECONDS that count.
Prints the seconds of every call of the three as JSON, a list a block.
"""

import json
import runpy
import sys
import time

import jax


def main() -> None:
    module = runpy.run_path(sys.argv[1])
    step, inputs = module["step"], module["step_inputs"]()
    jax.block_until_ready(step(*inputs))
    blocks = []
    for _ in range(4):
        calls, end = [], time.perf_counter() + float(sys.argv[2])
        while (began := time.perf_counter()) < end:
            jax.block_until_ready(step(*inputs))
            calls.append(time.perf_counter() - began)
        blocks.append(calls)
    json.dump(blocks[1:], sys.stdout)


if __name__ == "__main__":
    main()
