"""What a job's collectives move, how fast, and how much of the time its devices did nothing else meanwhile.

Only the exchange itself counts: what a process waits for a late one is that one's finding. The exchange of an execution
is its shortest duration over the processes, and still holds what they all wait for together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from jaxprof.analysis.arrivals import Arrivals
from jaxprof.analysis.collective_events import Exchanged
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.units import bytes_, counted, percent, scaled, seconds

LEAST_EXPOSED: Final = 0.1
"""Share of the captured time from which on it is worth a finding, as of the steps of one capture."""
_ADVICE: Final = (
    "Exchange less (reduce-scatter instead of all-reduce, bf16 gradients, one exchange after several small steps), put "
    "many small ones together, or let them run beside work that does not need them (XLA's latency-hiding scheduler)."
)


@dataclass(frozen=True, slots=True)
class CollectiveFigures:
    """One collective of a job, over the processes that captured it."""

    name: str
    """Of its HLO instruction."""
    instances: int
    span_seconds: float
    exposed_seconds: float
    """Of the exchange, in which the device of the median process did nothing else, of all instances together; an
    estimate, and at most that where the profiler has not recorded all kernels."""
    exchange_median_seconds: float
    exchanged: Exchanged | None
    bus_bytes_per_second: float | None
    """`Exchanged.bus_bytes` over the median exchange; None where that is not known."""
    fast_bus_bytes_per_second: float | None
    """The same of the fastest tenth of the exchanges."""
    possible_bytes_per_second: float | None
    """The same at the bandwidth of the links of the devices; None where that is not known, as of CPUs and of
    several hosts."""

    @property
    def exposed_share(self) -> float:
        """Of the captured time."""
        return self.exposed_seconds / self.span_seconds


def collective_figures(seen: Sequence[Arrivals], hosts: Collection[str]) -> tuple[CollectiveFigures, ...]:
    """In the order of `seen`; `hosts`: those of all processes."""
    return tuple(_figures(each, one_host=len(set(hosts)) == 1) for each in seen)


def _figures(seen: Arrivals, *, one_host: bool) -> CollectiveFigures:
    exchanged = seen.exchanged
    moved = exchanged.bus_bytes if exchanged is not None else None
    bound = exchanged.bound_seconds if exchanged is not None and one_host else None

    def rate(took: float | None) -> float | None:
        return moved / took if moved and took else None

    return CollectiveFigures(
        name=seen.name,
        instances=seen.instances,
        span_seconds=seen.span_seconds,
        exposed_seconds=median(seen.exposed_seconds),
        exchange_median_seconds=seen.exchange_median_seconds,
        exchanged=exchanged,
        bus_bytes_per_second=rate(seen.exchange_median_seconds),
        fast_bus_bytes_per_second=rate(seen.exchange_fast_seconds),
        possible_bytes_per_second=rate(bound),
    )


def exposed(found: Sequence[CollectiveFigures]) -> Iterator[JobFinding]:
    """That the devices of a job do nothing but exchange for a considerable part of the captured time."""
    if not found:
        return
    most = max(found, key=lambda each: each.exposed_seconds)
    took = sum(each.exposed_seconds for each in found)
    if took < LEAST_EXPOSED * most.span_seconds:
        return
    others = f", {counted(len(found) - 1, 'more collective')}" if len(found) > 1 else ""
    message = (
        f"exchanging takes about {seconds(took)} of {seconds(most.span_seconds)} "
        f"({percent(took / most.span_seconds)}), in which the devices run no other kernel and wait for nobody: "
        f"{_what(most)}{others}{_rates(most)}"
    )
    yield JobFinding("exposed-exchange", None, message, _ADVICE, "", took)


def _what(found: CollectiveFigures) -> str:
    given = found.exchanged
    if given is None:
        return f"{found.name}, {counted(found.instances, 'time')}"
    among = f" over {given.devices} devices" if given.devices is not None else ""
    return f"{found.name}, {given.opcode} of {bytes_(given.bytes)}{among}, {counted(found.instances, 'time')}"


def _rates(found: CollectiveFigures) -> str:
    """What it reaches of what."""
    reached, fast, possible = (
        found.bus_bytes_per_second, found.fast_bus_bytes_per_second, found.possible_bytes_per_second
    )  # fmt: skip
    if reached is None:
        return "; how many bytes that are is not known"
    words = f"; its bus bandwidth is {scaled(reached, 'B/s')}"
    if possible is not None:
        return f"{words}, {percent(reached / possible)} of the {scaled(possible, 'B/s')} that the links allow"
    return f"{words}, in the fastest tenth {scaled(fast, 'B/s')}; what the links allow is not known"
