"""What a run will need, reported before it starts: memory compared with what there is, and time with the budget.

Times are lower bounds, from two short probes of this host; an accelerator's speed is not guessed.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxprof.engine.measure.control import Reporter
from jaxprof.engine.measure.sampling import LONG_CALL_SAMPLES
from jaxprof.errors import DoesNotFitError
from jaxprof.events import BuffersReported
from jaxprof.operating_system import read_limits
from jaxprof.stats.turns import LEAST_SAMPLES
from jaxprof.units import bytes_, counted, seconds
from jaxprof.workloads.model import Estimate, Variant, Workload

if TYPE_CHECKING:
    from jaxprof.engine.protocol.request import RunRequest

_WORTH_PROBING_FLOPS = 1e9
_WORTH_PROBING_BYTES = 1e9
_PROBE_ORDER = 768
_PROBE_BYTES = 1 << 24
_PROBE_SECONDS = 0.1
_FEWEST_PROBES = 3
_MARGIN = 2.0
"""Factor by which a call may be faster than the probes suggest, so that "at least" holds."""


def preflight(
    recorder: Reporter, workload: Workload, variant: Variant, request: RunRequest, estimate: Estimate, device: Any
) -> float | None:
    """Report a run that takes long, and raise DoesNotFitError if it does not fit; return the least time of a call on
    the host."""
    # How much a compiled program keeps alive is known only after its compile; before, at least inputs and outputs.
    needed = estimate.traffic_bytes if variant.how == "jit" else estimate.memory_bytes
    on_host = device is None or device.platform == "cpu"
    if on_host:
        place, free = "this machine", available_host_bytes()
    else:
        from jaxprof.engine.measure.jax_devices import describe

        place, free = request.spec.device, describe(device)["memory_limit_bytes"]
    if needed is not None and free is not None and needed > free:
        recorder.emit(BuffersReported(source="request", asked_bytes=int(needed)))
        raise DoesNotFitError(
            f"not run: one call needs about {bytes_(needed)}, but {place} has {bytes_(free)}",
            "Choose a smaller size: --set, or another --preset.",
        )
    least = expected_call_seconds(estimate, has_dots=workload.has_dots)
    if on_host and least:
        _warn_of_few_samples(recorder, request, least)
    return least


def _warn_of_few_samples(recorder: Reporter, request: RunRequest, least: float) -> None:
    """Warn about a call, of `least` seconds, that is longer than the budget, or too long for the hard cap."""
    budget, cap = request.spec.timing_seconds, request.spec.max_seconds
    fewest = LEAST_SAMPLES if request.in_turns else LONG_CALL_SAMPLES
    call = f"one call is expected to take at least {seconds(least)}"
    if cap is not None and cap < (fewest + 1) * least:
        most = max(0, int(cap / least) - 1)
        room = f"the hard cap of {seconds(cap)} leaves time for {counted(most, 'sample')} at most"
        text = f"{call}: {room}, and {fewest} are needed"
        recorder.warn("over_budget", text, "A smaller size, or a larger --max-seconds.")
    elif least > budget:
        text = f"{call}, more than the budget of {seconds(budget)}: one warm-up and at least {fewest} timed calls"
        advice = "A smaller size or a larger --budget gives more samples; --max-seconds is the hard cap."
        recorder.warn("over_budget", text, advice)


def available_host_bytes() -> int | None:
    """Return the memory that this process may still take from the machine and its control groups; None if unknown."""
    group = read_limits().memory
    left = (_machine_bytes(), group.left_bytes() if group is not None else None)
    return min((value for value in left if value is not None), default=None)


def expected_call_seconds(estimate: Estimate, *, has_dots: bool) -> float | None:
    """Return a lower bound for one call's time on this host; None without figures, 0 if the call is short."""
    flops, traffic = estimate.flops, estimate.traffic_bytes
    if flops is None and traffic is None:
        return None
    if (flops or 0) < _WORTH_PROBING_FLOPS and (traffic or 0) < _WORTH_PROBING_BYTES:
        return 0.0
    flops_per_second, bytes_per_second = _host_rates()
    compute = (flops or 0) / flops_per_second if has_dots else 0.0
    return max(compute, (traffic or 0) / bytes_per_second)


@cache
def _host_rates() -> tuple[float, float]:
    """Return FLOP/s of a matrix product and B/s of a copy (read and written): the best of each, times a margin.

    The first products start the BLAS library's threads, so there are several; a large product is faster than these.
    """
    matrix = np.ones((_PROBE_ORDER, _PROBE_ORDER), np.float32)
    block = np.ones(_PROBE_BYTES, np.uint8)
    target = np.empty_like(block)
    products: list[float] = []
    copies: list[float] = []
    ends = time.perf_counter() + _PROBE_SECONDS
    while len(products) < _FEWEST_PROBES or time.perf_counter() < ends:
        began = time.perf_counter()
        np.dot(matrix, matrix)
        middle = time.perf_counter()
        np.copyto(target, block)
        products.append(middle - began)
        copies.append(time.perf_counter() - middle)
    return _MARGIN * 2 * _PROBE_ORDER**3 / min(products), _MARGIN * 2 * _PROBE_BYTES / min(copies)


def _machine_bytes() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
