"""The figures of one variant of a bundled workload, by loops as one writes them by hand: for `bench/fidelity.py`.

    python hand_loop.py WORKLOAD VARIANT PARAMETERS SECONDS

Of jaxprof it takes the workload's functions and inputs and nothing else. Prints a JSON object of seconds.
"""

import json
import statistics
import sys
import time

import numpy as np

from jaxprof.workloads import built_in

name, variant_name, parameters, seconds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
workload = built_in(name)
variant = workload.variant(variant_name)
DEPTH = 16


def aligned(array):
    """A copy whose data begin at a multiple of 64 bytes: what JAX shares on a CPU instead of copying it."""
    room = np.empty(array.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    copied = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def once(call):
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def median_of(call, seconds, prepare=lambda: None):
    """The median time of `call`, which is given what `prepare` makes before the clock starts."""
    times = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends or len(times) < 5:
        prepared = prepare()
        began = time.perf_counter()
        call(prepared)
        times.append(time.perf_counter() - began)
        del prepared
    return statistics.median(times)


def steady(call):
    median_of(call, 0.2 * seconds)
    return median_of(call, 0.8 * seconds)


host = workload.inputs(workload.resolve("quick", parameters), np.random.default_rng(0))
function = variant.build(workload.resolve("quick", parameters))
figures = {}

if variant.how == "numpy":
    figures["run"] = steady(lambda _: function(*host))
else:
    import jax
    import jax.numpy as jnp

    jax.block_until_ready(jax.device_put(np.zeros(8, np.float32)) + 1)  # the first compile of a process costs more
    host = [aligned(array) for array in host]
    figures["transfer_in"] = median_of(lambda _: jax.block_until_ready(jax.device_put(host)), 0.1 * seconds)
    given = jax.block_until_ready(jax.device_put(host))
    if variant.how == "jit":
        function = jax.jit(function)
        figures["trace"], traced = once(lambda: function.trace(*given))
        figures["lower"], lowered = once(traced.lower)
        figures["compile"], _ = once(lowered.compile)
        figures["first_run"], _ = once(lambda: function(*given).block_until_ready())
    figures["run"] = steady(lambda _: function(*given).block_until_ready())

    kept = []

    def dispatch(_):
        kept.append(function(*given))

    def clear():
        jax.block_until_ready(kept)
        kept.clear()

    def pipelined(_):
        for _ in range(DEPTH):
            result = function(*given)
        result.block_until_ready()

    figures["dispatch"] = median_of(dispatch, 0.2 * seconds, clear)
    figures["pipelined"] = median_of(pipelined, 0.2 * seconds) / DEPTH
    output = function(*given)
    figures["transfer_out"] = median_of(np.asarray, 0.1 * seconds, lambda: jnp.copy(output).block_until_ready())

print(json.dumps(figures))
