"""What the machine has and how busy it is: CPU through psutil, NVIDIA GPUs through NVML. Never jax.

Start at `inventory.machine`, its `local_devices` (what there is) and `merge` (with JAX's own view laid over it),
`live.host.Monitor` (live readings) and `inventory.placement.worker_environment` (what a worker on one device needs).

The app's first frame waits for neither psutil nor NVML: neither is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxprof.base.values import frozen

HIDDEN = "nvidia"
"""Platform in the id of an NVIDIA GPU that has no number in JAX."""


@frozen(kw_only=True)
class Device:
    """One device. A field is None if it is unknown, or does not apply."""

    id: str
    """Id of the device: `platform:number`."""
    platform: str
    """Platform: `cpu`, `cuda`, `rocm`, `tpu`, `metal`."""
    kind: str | None = None
    """Product name: `NVIDIA H200`, `AMD EPYC 9654`."""
    process: int | None = None
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """All of the device's memory (for the CPU: the machine's, or the cgroup's limit)."""
    memory_free_bytes: int | None = None
    allocator_limit_bytes: int | None = None
    """Largest amount of memory that JAX's allocator would take."""
    core_count: float | None = None
    """Cores of a CPU that this process may use, a fraction under a quota; cores of an accelerator as JAX reports."""
    compute_capability: str | None = None
    uuid: str | None = None
    """UUID, `GPU-...` or `MIG-...`, as `CUDA_VISIBLE_DEVICES` takes it."""
    pci_bus_id: str | None = None
    """Normalised PCI address: `0000:1b:00.0`. A MIG instance has its GPU's address."""
    nvml_key: tuple[int, int | None] | None = None
    """Key by which NVML finds the device: its number of the GPU, in order of PCI address (not CUDA's, and not JAX's),
    and that of the MIG instance in it; None for a whole GPU."""
    mig_enabled: bool | None = None
    """Whether a GPU is split into instances; then programs use those, not the GPU itself."""
    mig: tuple[Device, ...] = ()
    fault: str = ""
    """Why a GPU does not work at all: `fell off the bus`."""
    xids: tuple[int, ...] = ()
    """Numbers of the errors that NVIDIA's driver has written about it into the kernel's log since boot."""
    cuda_ordinal: int | None = None
    """CUDA's number for the device in the user's environment, if that can be known."""
    used_by_jax: bool | None = None
    """Whether JAX uses the device; None until JAX was asked, unless something already rules it out."""
    is_default: bool = False
    reason: str = ""
    hint: str = ""
    """What fixes that: a command, or a sentence."""

    @property
    def number(self) -> int:
        """The number at the end of its id: 1 of `gpu:1`."""
        return int(self.id.rpartition(":")[2])

    @property
    def machine_index(self) -> str:
        """Its number in nvidia-smi: `3`, or `3.0` for a MIG instance of GPU 3; empty for what that does not list."""
        if self.nvml_key is None:
            return ""
        index, instance = self.nvml_key
        return f"{index}" if instance is None else f"{index}.{instance}"


@frozen(kw_only=True)
class Connection:
    """How data goes from one GPU to another."""

    gpu: str
    """The other one's number in nvidia-smi."""
    over: str
    """What is between them, as `nvidia-smi topo -m` names it: `PIX` one PCIe switch, `PXB` several, `PHB` the CPU's
    bridge, `NODE` bridges of one NUMA node, `SYS` the link between CPUs; `NV4` four NVLinks."""


@frozen(kw_only=True)
class Wiring:
    """How a GPU is connected, and the state that its list of readings has no room for; None is unknown."""

    performance_state: int | None = None
    """0 is the fastest, 15 the slowest."""
    memory_clock_hertz: float | None = None
    memory_clock_limit_hertz: float | None = None
    pcie_generation: int | None = None
    """Current one: an idle GPU may lower it."""
    pcie_generation_limit: int | None = None
    pcie_lanes: int | None = None
    pcie_lanes_limit: int | None = None
    pcie_replays: int | None = None
    """Packets that were sent again because they arrived damaged, since the driver was loaded."""
    numa_node: int | None = None
    nvlinks_up: int = 0
    nvlinks_down: int = 0
    nvlinks_to_switch: int = 0
    """Those of the links that are up which lead to an NVSwitch."""
    connections: tuple[Connection, ...] = ()
    """To each other GPU."""


def default_device(devices: Iterable[Device]) -> str:
    """Return the id of the device that JAX uses by default; the CPU's if JAX was not asked, or did not answer."""
    return next((device.id for device in devices if device.is_default), "cpu:0")
