"""The figures of one variant of a bundled workload, by loops as one writes them by hand: for `bench/fidelity.py`.

    python hand_loop.py WORKLOAD VARIANT PARAMETERS SECONDS WAY

Of jaxprof it takes the workload's functions and inputs and nothing else. WAY is how numbers are drawn: `direct` in
float32, `astype` in float64 and then cast, as articles and most programs do, so that a larger array is freed before
the loop; `settled` is `direct` in a program that has freed an array of 30 MB before. Prints a JSON object of seconds,
and of the steady run's minor page faults a call.
"""

import json
import resource
import statistics
import sys
import time

import numpy as np

from jaxprof.workloads import load_built_in

name, variant_name, parameters, seconds, way = *sys.argv[1:3], json.loads(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
workload = load_built_in(name)
variant = workload.variant(variant_name)
DEPTH = 16


class Casting:
    """A generator that draws float64 and casts it."""

    def __init__(self, random):
        self.random_numbers = random

    def standard_normal(self, size=None, dtype=np.float64):
        return self.random_numbers.normal(size=size).astype(dtype)

    def random(self, size=None, dtype=np.float64):
        return self.random_numbers.random(size).astype(dtype)

    def __getattr__(self, name):
        return getattr(self.random_numbers, name)


def unaligned(array):
    """A copy whose data begin 16 bytes after a multiple of 64, as those of large arrays do: JAX copies it to a CPU."""
    room = np.empty(array.nbytes + 64, np.uint8)
    begin = (16 - room.ctypes.data) % 64
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
    """The median time of `call`, and its page faults."""
    median_of(call, 0.2 * seconds)
    calls, before = 0, resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    def counted(_):
        nonlocal calls
        calls += 1
        call(_)

    figures["run"] = median_of(counted, 0.8 * seconds)
    figures["page_faults"] = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


if way == "settled":
    block = np.ones(30 << 20, np.uint8)
    del block
random = np.random.default_rng(0)
host = workload.inputs(workload.resolve("quick", parameters), Casting(random) if way == "astype" else random)
function = variant.build(workload.resolve("quick", parameters))
figures = {}

if variant.how == "numpy":
    steady(lambda _: function(*host))
else:
    import jax
    import jax.numpy as jnp

    jax.block_until_ready(jax.device_put(np.zeros(8, np.float32)) + 1)  # the first compile of a process costs more
    host = jax.tree.map(unaligned, host)
    figures["transfer_in"] = median_of(lambda _: jax.block_until_ready(jax.device_put(host)), 0.1 * seconds)
    given = jax.block_until_ready(jax.device_put(host))
    if variant.how == "jit":
        function = jax.jit(function)
        figures["trace"], traced = once(lambda: function.trace(*given))
        figures["lower"], lowered = once(traced.lower)
        figures["compile"], _ = once(lowered.compile)
    figures["first_run"], output = once(lambda: jax.block_until_ready(function(*given)))
    if isinstance(output, jax.Array):
        steady(lambda _: function(*given).block_until_ready())
    else:
        steady(lambda _: jax.block_until_ready(function(*given)))

    kept = []

    def dispatch(_):
        kept.append(function(*given))

    def clear():
        jax.block_until_ready(kept)
        kept.clear()

    def pipelined(_):
        for _ in range(DEPTH):
            result = function(*given)
        jax.block_until_ready(result)

    figures["dispatch"] = median_of(dispatch, 0.2 * seconds, clear)
    figures["pipelined"] = median_of(pipelined, 0.2 * seconds) / DEPTH
    fetch = np.asarray if isinstance(output, jax.Array) else jax.device_get
    figures["transfer_out"] = median_of(
        fetch, 0.1 * seconds, lambda: jax.block_until_ready(jax.tree.map(jnp.copy, output))
    )
    if variant.how == "eager":
        del figures["first_run"]  # with its compilations, which jaxprof counts apart

print(json.dumps(figures))
