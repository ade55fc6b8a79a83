"""What a run needs, compared with what there is: its memory before it starts, its time once a call was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxprof.base.errors import DoesNotFitError
from jaxprof.base.operating_system import numbers_at, read_limits
from jaxprof.base.units import bytes_
from jaxprof.engine.measure.control import Reporter
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import BuffersReported
from jaxprof.workloads.model import Estimate, Variant


def refuse_what_cannot_fit(
    reporter: Reporter, variant: Variant, request: RunRequest, estimate: Estimate, device: Any
) -> None:
    """Raise DoesNotFitError if a call needs more memory than there is."""
    # How much a compiled program keeps alive is known only after its compile; before, at least inputs and outputs.
    needed = estimate.traffic_bytes if variant.how == "jit" else estimate.memory_bytes
    if device is None or device.platform == "cpu":
        where, free = "this machine", available_host_bytes()
    else:
        from jaxprof.engine.measure.jax_devices import describe

        where, free = request.spec.device, describe(device)["memory_limit_bytes"]
    if needed is not None and free is not None and needed > free:
        reporter.emit(BuffersReported(source="request", asked_bytes=int(needed)))
        raise DoesNotFitError(
            f"not run: one call needs about {bytes_(needed)}, but {where} has {bytes_(free)}",
            "Choose a smaller size: --set, or another --preset.",
        )


def warn_of_few_samples(reporter: Reporter, request: RunRequest, first_seconds: float) -> None:
    """Warn if the first call, by which the sampling is planned, took longer than the budget."""
    budget = request.spec.timing_seconds
    if first_seconds > budget:
        reporter.warn("over_budget", first_seconds=first_seconds, budget_seconds=budget)


def available_host_bytes() -> int | None:
    """Return the memory that this process may still take from the machine, its control groups and its own limit; None
    if unknown."""
    group = read_limits().memory
    left = (_machine_bytes(), group.free_bytes() if group is not None else None, _address_space_bytes())
    return min((value for value in left if value is not None), default=None)


def _address_space_bytes() -> int | None:
    """Return the address space that `ulimit -v` leaves; None without such a limit."""
    used = numbers_at(Path("/proc/self/status")).get("VmSize:")
    if used is None:  # as on Windows, which has no such module either
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used * 1024)


def _machine_bytes() -> int | None:
    kibibytes = numbers_at(Path("/proc/meminfo")).get("MemAvailable:")
    return None if kibibytes is None else kibibytes * 1024
