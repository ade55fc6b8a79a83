"""The kernels of a compiled program: ranked, measured, and the memory that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.events import KernelLaunch
    from jaxprof.hlo.kernels.kernels import Kernel


@frozen
class MeasuredKernel:
    """One HLO op as measured. Times are in seconds."""

    name: str
    """Name of the instruction, as in `Kernel.name`."""
    module: str
    devices: tuple[str, ...]
    count: int
    """Number of executions on all devices."""
    calls: int | None
    """Number of calls of the program in the capture; None if unknown."""
    total_seconds: float
    """Sum of the op's intervals: CPU time on a CPU, where one op may run on several threads."""
    self_seconds: float
    """Sum of the intervals without the ops that ran inside them."""
    wall_seconds: float
    """Union of the intervals on a device, summed over devices."""
    median_seconds: float
    """Median time of one execution; with several devices, on the one that took the longest."""
    minimum_seconds: float
    maximum_seconds: float
    share: float | None
    """Share of the self time of all ops of the run, from 0 to 1; in a profile or a capture window, of all its
    programs."""
    flops_per_second: float | None
    """FLOP/s from the HLO's count; None if the count is unknown, or the kernel took no time."""
    bytes_per_second: float | None
    of_peak: float | None
    """`flops_per_second` over the device's ceiling for the kernel's dtype; None if either is unknown."""
    of_bandwidth: float | None
    """`bytes_per_second` over the device's bandwidth; above 1 if a cache served the data."""
    kernel: Kernel | None
    """The kernel of the run's HLO, or the loop, branch or call; None if the HLO lacks it, or without HLO."""
    in_hlo: bool | None
    """Whether the run's HLO has the op; None without HLO."""
    names: tuple[str, ...]
    """Names of the kernels on the device."""
    launch: KernelLaunch | None
    """Launch configuration and occupancy of the longest kernel; None if the capture does not have it."""

    @property
    def parallelism(self) -> float | None:
        """Mean number of threads that worked on the op at once."""
        return self.total_seconds / self.wall_seconds if self.wall_seconds > 0 else None

    @property
    def per_call_seconds(self) -> float | None:
        """Self time in one call of the program, on one device."""
        return self.self_seconds / self.calls / len(self.devices) if self.calls else None
