"""What a run will need, said before it is run: memory against what there is, and time against the budget.

Times are lower bounds, from two short probes of this host; an accelerator's speed is not guessed.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np

from jaxprof.workloads.model import Estimate

_WORTH_PROBING_FLOPS = 1e9
_WORTH_PROBING_BYTES = 1e9
_PROBE_ORDER = 768
_PROBE_BYTES = 1 << 24
_PROBE_SECONDS = 0.1
_FEWEST_PROBES = 3
_MARGIN = 2.0
"""How much faster than the probes a call may be, so that "at least" holds."""


def available_host_bytes() -> int | None:
    """Memory that this process may still take: of the machine, and of its control groups; None where unknown."""
    known = [value for value in (_machine_bytes(), _cgroup_bytes()) if value is not None]
    return min(known, default=None)


def expected_call_seconds(estimate: Estimate, *, has_dots: bool) -> float | None:
    """At least how long one call takes on this host; None where the estimate does not tell, 0 where it is short."""
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
    """FLOP/s of a matrix product and B/s of a copy (read and written): the best of each, times a margin.

    The first products start the BLAS library's threads, so there are several; a large product is faster than this one.
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
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def _cgroup_bytes(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the memory limit leaves, for version 2 and version 1 of control groups."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            most = (root / limit).read_text().strip()
            used = int((root / usage).read_text())
        except (OSError, ValueError):
            continue
        if most.isdigit() and int(most) < 1 << 60:
            return max(0, int(most) - used)
    return None
