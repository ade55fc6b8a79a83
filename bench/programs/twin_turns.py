"""A program of `bench/device/` and its mended twin, called in turns in one process: for `bench/device.py`.

    python twin_turns.py FILE FUNCTION MENDED SECONDS

Both are compiled, and called with what FUNCTION_inputs and MENDED_inputs make, copied before each call where the
function donates it. Prints as JSON the median seconds of a call of each, and by how much the results differ, as a share
of the largest number.
"""

import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


class Side:
    """One function with its inputs, on the device."""

    def __init__(self, module, name):
        function = getattr(module, name)
        self.function = function if hasattr(function, "lower") else jax.jit(function)
        make = getattr(module, f"{name}_inputs")
        inputs = make(np.random.default_rng(0)) if make.__code__.co_varnames[:1] == ("random",) else make()
        self.inputs = jax.tree.map(jnp.asarray, inputs if isinstance(inputs, tuple) else (inputs,))
        self.donates = bool(self.function.lower(*self.inputs).donate_argnums)

    def seconds(self):
        inputs = jax.block_until_ready(jax.tree.map(jnp.copy, self.inputs)) if self.donates else self.inputs
        began = time.perf_counter()
        self.result = jax.block_until_ready(self.function(*inputs))
        return time.perf_counter() - began


def difference(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(
        float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(a), initial=0), 1e-30))
        for a, b in ((np.asarray(a, float), np.asarray(b, float)) for a, b in pairs)
    )


def main():
    path, function, mended, budget = Path(sys.argv[1]), *sys.argv[2:]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sides = [Side(module, name) for name in (function, mended)]
    for side in sides:
        side.seconds()
    apart = difference(sides[0].result, sides[1].result)
    times = [], []
    end = time.monotonic() + float(budget)
    while time.monotonic() < end or len(times[0]) < 4:
        for number in (0, 1, 1, 0):
            times[number].append(sides[number].seconds())
    json.dump({"seconds": [statistics.median(each) for each in times], "difference": apart}, sys.stdout)


if __name__ == "__main__":
    main()
