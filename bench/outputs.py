"""What the form of a result adds to the time of a call: in one process, ways of waiting taking turns.

    python bench/outputs.py [--rounds 60] [--smoke]

Compiled calls of a few microseconds that give `y`, `(y,)`, a nested tree, and sixty arrays. Each is timed by
jaxprof's own loop, by a loop that awaits one array by hand, and by one that walks over the whole tree
(`jax.block_until_ready`). Rounds take turns, the fastest of each counts (other work only ever adds), and the table
shows ratios to the hand loop.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

CALLS = 200
LIMIT = 1.05
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "y": (lambda x: x + 1, lambda out: out),
    "(y,)": (lambda x: (x + 1,), lambda out: out[0]),
    "nested": (lambda x: {"a": [x + 1, x + 2], "b": (x + 3,)}, lambda out: out["b"][0]),
    "sixty": (lambda x: [x + i for i in range(60)], lambda out: out[-1]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--smoke", action="store_true", help="three rounds; the table has to come out, whatever its figures"
    )
    options = parser.parse_args()
    rounds = 3 if options.smoke else options.rounds
    import jax
    import jax.numpy as jnp

    from jaxprof.engine.measure.jax_run import waiting_loop

    x = jnp.ones(16)
    print(f"{'result':8}{'one array':>12}{'jaxprof':>12}{'ratio':>8}{'whole tree':>12}{'ratio':>8}")
    slower = []
    for name, (function, one) in CASES.items():
        jitted = jax.jit(function)
        output = jax.block_until_ready(jitted(x))

        def by_hand(sets: list[Any], jitted: Any = jitted, one: Any = one) -> None:
            for arguments in sets:
                one(jitted(*arguments)).block_until_ready()

        def whole(sets: list[Any], jitted: Any = jitted) -> None:
            for arguments in sets:
                jax.block_until_ready(jitted(*arguments))

        ours = waiting_loop(jitted, output, (x,), one_program=True, may_call=True)
        hand, mine, tree = _fastest([by_hand, ours, whole], [(x,)] * CALLS, rounds)
        if mine > LIMIT * hand:
            slower.append(name)
        shown = [(hand, ""), (mine, f"{mine / hand:>8.3f}"), (tree, f"{tree / hand:>8.3f}")]
        print(f"{name:8}" + "".join(f"{took * 1e6:>9.2f} µs{beside}" for took, beside in shown))
    if slower and not options.smoke:
        sys.exit(f"slower than the loop by hand: {', '.join(slower)}")


def _fastest(loops: list[Callable[[Any], None]], sets: list[Any], rounds: int) -> list[float]:
    """Seconds a call of each loop, the fastest round of each."""
    least = [float("inf")] * len(loops)
    for turn in range(rounds):
        for at in range(len(loops)) if turn % 2 else reversed(range(len(loops))):
            began = time.perf_counter()
            loops[at](sets)
            least[at] = min(least[at], (time.perf_counter() - began) / len(sets))
    return least


if __name__ == "__main__":
    main()
