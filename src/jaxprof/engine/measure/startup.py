"""What a process pays before its program starts: imports, the backend, the first compile and transfer.

These are measured separately, so that `compile` is the program's own; so is the smallest call of a compiled function,
what any call costs with this Python, this JAX and this machine. A jax that is missing or too old is refused, with the
command that fixes it.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from importlib import import_module
from typing import Any

from jaxprof.base.errors import JaxprofError
from jaxprof.engine.measure.control import Reporter

OLDEST_JAX = (0, 7, 2)


def settle_allocator() -> None:
    """Bring glibc's allocator into the state of a program that has run for a while. Other allocators are left alone.

    glibc maps a block on its own, and gives free memory back to the system, from thresholds that it takes from the
    largest mapped block freed so far. In a young process a call's temporaries go back at its end, and come back page by
    page, zeroed: which of two figures is measured would depend on what the inputs were made of. NumPy's `selu` of 10⁶
    float32 takes 9.3 ms with 2 165 page faults a call in a young process, and 4.8 ms without a fault after this;
    `fft` 5.2 and 1.6 ms, `layernorm` 5.2 and 2.1 ms, `attention` 2.9 and 1.5 ms (two virtual cores). Thresholds that
    the user sets (MALLOC_..._) stay as they are: glibc then learns nothing.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")  # glibc's own functions, also where LD_PRELOAD puts jemalloc before them
        libc.gnu_get_libc_version  # noqa: B018 - musl answers to that file name, too
    except (OSError, AttributeError):
        return
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    # The largest block from which glibc learns, with its header: DEFAULT_MMAP_THRESHOLD_MAX is 32 MiB.
    libc.free(libc.malloc((1 << 25) - (1 << 16)))


def start_numpy(reporter: Reporter) -> None:
    """Start up for a NumPy variant. Raises JaxprofError if NumPy cannot be imported."""
    _time_import(reporter, "numpy")


def start_jax(reporter: Reporter, device: str) -> Any:
    """Start up for a JAX variant on `device` (`cpu:0`); return that device.

    Raises JaxprofError if jax cannot be imported, is too old, or has no such device.
    """
    _import("numpy")
    _time_import(reporter, "jax")
    from jaxprof.engine.measure.jax_devices import find_device

    with reporter.phase("backend_init"):
        chosen = find_device(device)
    with reporter.phase("warm_up"):  # the first compile, and the first transfer
        import jax
        import jax.numpy as jnp
        import numpy as np

        def jaxprof_warm_up(x: Any) -> Any:
            return jnp.tanh(x) + 1

        argument = jax.device_put(np.zeros(16, np.float32), chosen)
        warm = jax.jit(jaxprof_warm_up)
        warm.trace(argument).lower().compile()
        np.asarray(warm(argument))  # waits for the result
    return chosen


def _time_import(reporter: Reporter, module: str) -> None:
    imported = module in sys.modules
    with reporter.phase("import") as phase:
        _import(module)
        if imported:
            phase.measured, phase.note = False, "already imported"


def _import(name: str) -> None:
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise JaxprofError(f"{name} cannot be imported: {error}", _pip(name)) from error
        raise JaxprofError(f"{name} is not installed for {sys.executable}", _pip(name)) from error
    except Exception as error:  # a jaxlib of another version, a broken plugin: an import may raise anything
        raise JaxprofError(f"{name} cannot be imported: {error}", _pip(name)) from error
    version = tuple(int(part) for part in re.findall(r"\d+", str(getattr(module, "__version__", "")))[:3])
    if name == "jax" and version < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        raise JaxprofError(f"jax {module.__version__} is too old: jaxprof needs {oldest} or newer", _pip("jax"))


def _pip(name: str) -> str:
    wanted = f'"jax>={".".join(map(str, OLDEST_JAX))}"' if name == "jax" else name
    return f"{sys.executable} -m pip install --upgrade {wanted}"


_CALLS = 100
_BATCHES = 60


def empty_call_seconds(arrays: int, numbers: int) -> float:
    """Return the CPU seconds of one call with so many small arrays and Python numbers as arguments.

    It uses all the numbers, which have to reach the device, and one of the arrays. The figure is that of the quietest
    batch of calls, because whatever else runs only makes a call longer.
    """
    import jax

    call = jax.jit(lambda *values: sum(values[max(0, arrays - 1) :], 1))
    values = [*[jax.numpy.ones(4)] * arrays, *range(numbers)]

    def batch() -> float:
        began = time.thread_time()
        for _ in range(_CALLS):
            call(*values)
        return (time.thread_time() - began) / _CALLS

    batch()  # compiles
    return min(batch() for _ in range(_BATCHES))
