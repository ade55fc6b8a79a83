"""What is around a measurement and changes it: versions, devices, settings, threads, load. An allow-list.

Nothing else of the process's environment is recorded: it holds secrets.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxprof.events import EnvironmentRead, Scalar

_VARIABLES = (
    "XLA_FLAGS",
    "JAX_PLATFORMS",
    "JAX_ENABLE_X64",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_DISABLE_JIT",
    "JAX_DEBUG_NANS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "TF_CPP_MIN_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "TPU_VISIBLE_CHIPS",
    "LIBTPU_INIT_ARGS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
)
_JAX_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_disable_jit",
    "jax_debug_nans",
    "jax_numpy_dtype_promotion",
    "jax_enable_compilation_cache",
    "jax_threefry_partitionable",
)
_BLAS_THREADS = (
    ("openblas", ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_", "openblas_get_num_threads")),
    ("mkl_rt", ("MKL_Get_Max_Threads",)),
    ("blis", ("bli_thread_get_num_threads",)),
)
"""Public functions of the BLAS libraries that NumPy may have loaded."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """A reading of the machine's work, to be held against a later one."""

    wall_seconds: float
    machine_busy_seconds: float | None
    """CPU time of all cores that was not idle, since boot."""
    own_seconds: float
    """CPU time of this process."""

    @classmethod
    def now(cls) -> HostLoad:
        """The present reading."""
        times = os.times()
        return cls(time.monotonic(), _machine_busy_seconds(), times.user + times.system)

    def other_busy_cores(self, later: HostLoad) -> float | None:
        """How many cores, on average, worked for other processes between the two readings; None where unknown."""
        wall = later.wall_seconds - self.wall_seconds
        if self.machine_busy_seconds is None or later.machine_busy_seconds is None or wall <= 0:
            return None
        others = later.machine_busy_seconds - self.machine_busy_seconds - (later.own_seconds - self.own_seconds)
        return round(max(0.0, others) / wall, 3)


def read_environment(devices: list[dict[str, Any]], load_average_before: float | None) -> EnvironmentRead:
    """The environment of a run; with `devices` where jax is in use, and jax's versions where it is imported."""
    jax, jaxlib = sys.modules.get("jax"), sys.modules.get("jaxlib")
    settings: dict[str, Scalar | None] = {
        "cores": cores(),
        "cpu_model": _cpu_model(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "blas": _blas_name(),
        "blas_threads": _blas_threads(),
        "clock_governor": _first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "load_average_before": load_average_before,
    }
    settings |= {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if jax is not None:
        settings |= {name: _scalar(getattr(jax.config, name, None)) for name in _JAX_SETTINGS}
    return EnvironmentRead(
        python=platform.python_version(),
        numpy=np.__version__,
        jax=jax.__version__ if jax is not None else None,
        jaxlib=jaxlib.__version__ if jaxlib is not None else None,
        devices=devices,
        settings=settings,
    )


def load_average() -> float | None:
    """Of the last minute; None where the system does not tell."""
    try:
        return round(os.getloadavg()[0], 3)
    except OSError:
        return None


def cores() -> float:
    """Cores that this process may use: its affinity, and the quota of its control group where that is less."""
    allowed = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(os.cpu_count() or 1)
    quota = _first_line(Path("/sys/fs/cgroup/cpu.max"))
    if quota and not quota.startswith("max"):
        limit, _, period = quota.partition(" ")
        if limit.isdigit() and period.isdigit() and int(period):
            allowed = min(allowed, int(limit) / int(period))
    return allowed


def _blas_name() -> str | None:
    """The BLAS that NumPy was built with, as NumPy says."""
    try:
        found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (TypeError, KeyError):
        return None
    return f"{found.get('name', '')} {found.get('version', '')}".strip() or None


def _blas_threads() -> int | None:
    """How many threads the loaded BLAS uses, as it says itself; None where none that we know is loaded."""
    try:
        mapped = set(re.findall(r"(/\S+\.so\S*)", Path("/proc/self/maps").read_text()))
    except OSError:
        return None
    for library, functions in _BLAS_THREADS:
        for path in sorted(path for path in mapped if library in Path(path).name):
            handle = ctypes.CDLL(path)
            for function in functions:
                if hasattr(handle, function):
                    return int(getattr(handle, function)())
    return None


def _cpu_model() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or None


def _machine_busy_seconds() -> float | None:
    line = _first_line(Path("/proc/stat"))
    if not line or not line.startswith("cpu "):
        return None
    user, nice, system, _idle, _wait, interrupt, soft, steal = (int(part) for part in line.split()[1:9])
    return (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK")


def _first_line(path: Path) -> str | None:
    try:
        with path.open() as file:
            return file.readline().strip() or None
    except OSError:
        return None


def _scalar(value: Any) -> Scalar | None:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
