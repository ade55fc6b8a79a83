"""The surroundings that affect a measurement: versions, devices, settings, threads, load. An allow-list.

`jaxprof.base.private` decides which of the process's environment variables may be recorded, because they hold secrets.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from jaxprof.base.operating_system import cpu_model, processors, read_limits, text_at
from jaxprof.base.private import safe_variables
from jaxprof.events import EnvironmentRead, Scalar

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
"""BLAS libraries that NumPy may have loaded, with their public functions for the number of threads."""


Load = tuple[float, float | None, float]
"""A reading of the machine's work: the clock, the CPU seconds since boot in which the processors that this process may
use were not idle (None if unknown), and those of this process."""


def host_load() -> Load:
    """Take a reading. The system counts in steps of some ms, so a difference over a short time is right on average."""
    return time.monotonic(), _busy_seconds(), time.process_time()


class HostLoadMeter:
    """Measures the work of other processes while a run is measured. While the run waits for its turn, the machine
    belongs to the runs that it is compared with, which do not count as others."""

    LATE_SECONDS = 0.01
    """A reading that comes later than this after its block may include the turns of other runs, and is dropped."""

    def __init__(self) -> None:
        self._since = host_load()
        self._others_seconds = self._seconds = 0.0
        self._known = True

    def wait(self, *, begins: bool, worked_seconds: float | None = None) -> None:
        """Note that a wait for a turn begins or ends now; at its begin, how long the block before it took."""
        if begins:
            self._add(math.inf if worked_seconds is None else worked_seconds + self.LATE_SECONDS)
        else:
            self._since = host_load()

    def other_busy_cores(self) -> float | None:
        """Return how many of the usable cores, on average, other processes have used so far; None if unknown. Where a
        quota is less than the processors, others use none of it before they leave fewer processors idle than that."""
        self._add()
        self._since = host_load()
        if not self._known or self._seconds <= 0:
            return None
        usable, spare = cores(), processors() - cores()
        return round(min(max(0.0, self._others_seconds / self._seconds - spare), usable), 3)

    def _add(self, most_seconds: float = math.inf) -> None:
        (clock, busy, own), (clock_before, busy_before, own_before) = host_load(), self._since
        if busy is None or busy_before is None:
            self._known = False
            return
        if clock - clock_before > most_seconds:
            return
        self._others_seconds += busy - busy_before - (own - own_before)
        self._seconds += clock - clock_before


def read_environment(devices: Iterable[Any] = ()) -> EnvironmentRead:
    """Return the environment of a run; with these of JAX's devices, and with jax's versions if it is imported."""
    jax, jaxlib = sys.modules.get("jax"), sys.modules.get("jaxlib")
    blas_name = ""
    with suppress(TypeError, KeyError):  # an older NumPy
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        blas_name = f"{blas.get('name', '')} {blas.get('version', '')}".strip()
    settings: dict[str, Scalar | None] = {
        "cores": cores(),
        "cpu_model": cpu_model(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "blas": blas_name or None,
        "blas_threads": _blas_threads(),
        "clock_governor": text_at(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).strip() or None,
        "load_average_before": load_average(),
    }
    settings |= safe_variables(os.environ)
    if jax is not None:
        values = {name: getattr(jax.config, name, None) for name in _JAX_SETTINGS}
        plain = (bool, int, float, str, type(None))
        settings |= {name: value if isinstance(value, plain) else str(value) for name, value in values.items()}
    described: list[dict[str, Any]] = []
    for device in devices:
        from jaxprof.engine.measure.jax_devices import describe

        described.append(describe(device))
    return EnvironmentRead(
        python=platform.python_version(),
        numpy=np.__version__,
        jax=jax.__version__ if jax is not None else None,
        jaxlib=jaxlib.__version__ if jaxlib is not None else None,
        devices=described,
        settings=settings,
    )


def load_average() -> float | None:
    """Return the load of the last minute; None if the system does not report it."""
    try:
        return round(os.getloadavg()[0], 3)
    except OSError:
        return None


def cores() -> float:
    """Return the cores that this process may use: its affinity, or its control groups' quota if less."""
    return min(float(processors()), read_limits().cores or float("inf"))


def _blas_threads() -> int | None:
    """Return the number of threads of the loaded BLAS, according to itself; None if no known BLAS is loaded."""
    mapped = set(re.findall(r"(/\S+\.so\S*)", text_at(Path("/proc/self/maps"))))
    for library, functions in _BLAS_THREADS:
        for path in sorted(path for path in mapped if library in Path(path).name):
            handle = ctypes.CDLL(path)
            for function in functions:
                if hasattr(handle, function):
                    return int(getattr(handle, function)())
    return None


def _busy_seconds() -> float | None:
    """Return the seconds since boot in which the usable processors were neither idle nor waiting for a disk, summed;
    None if the system does not report all of them."""
    lines = (line.split() for line in text_at(Path("/proc/stat")).splitlines() if line.startswith("cpu"))
    rows = {name: numbers for name, *numbers in lines if len(numbers) >= 8}
    if not rows:
        return None
    ticks = 0
    for processor in os.sched_getaffinity(0):
        row = rows.get(f"cpu{processor}")
        if row is None:
            return None
        user, nice, system, _idle, _wait, interrupt, soft, steal = map(int, row[:8])
        ticks += user + nice + system + interrupt + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK")
