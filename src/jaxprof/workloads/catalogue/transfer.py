"""transfer: the copy between host and device, on its own: size by direction by alignment."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def copy(x):
    return x.copy()


def device_to_host(x):
    # JAX keeps the host's copy of an array that was read: only a new array over the same buffer is copied again.
    unread = jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x])
    return np.asarray(unread)


def inputs(random, bytes):
    return random.standard_normal(bytes // 4, dtype="float32")


def aligned(inputs):
    """Return x where a multiple of 64 bytes begins: XLA prefers such a buffer, and may share it on a CPU."""
    return (place(inputs[0], 0),)


def unaligned(inputs):
    """Return x four bytes past a multiple of 64, so that it has to be copied."""
    return (place(inputs[0], 4),)


def place(x, offset):
    room = np.empty(x.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    placed = room[start : start + x.nbytes].view(x.dtype)
    placed[:] = x
    return placed


def estimate(bytes):
    return Estimate(memory_bytes=2 * bytes, traffic_bytes=2 * bytes)


@workload(
    title="host → device, device → host",
    description=(
        "One array of float32 copied to the device, or back from it, and nothing else; every call is waited for. "
        "NumPy's copy within the host's memory is the yardstick. On a CPU device there may be no copy at all: an array "
        "that begins at a multiple of 64 bytes is shared, and reading one back is a view. Such a figure is the cost of "
        "a call, not a bandwidth."
    ),
    inputs=inputs,
    parameters={"bytes": Parameter(description="size of the array, a multiple of 4", minimum=4)},
    presets={"quick": {"bytes": 2**24}, "published": {"bytes": 2**28}},
    variants=[
        Variant(
            name="numpy",
            how="numpy",
            function=copy,
            adapt=aligned,
            description="NumPy, a copy within host memory",
        ),
        Variant(
            name="host-to-device",
            how="eager",
            inputs="host",
            adapt=aligned,
            description="device_put of an array aligned to 64 bytes; shared, not copied, on a CPU",
        ),
        Variant(
            name="host-to-device-unaligned",
            how="eager",
            inputs="host",
            adapt=unaligned,
            description="device_put of an array 4 bytes off such a boundary; always a copy",
        ),
        Variant(
            name="device-to-host",
            how="eager",
            function=device_to_host,
            adapt=aligned,
            description="numpy.asarray of a device array that was not read before; a view, not a copy, on a CPU",
        ),
    ],
    against="the array that was sent",
    tolerance={"float32": 0.0},
    matrix_products=False,
    estimate=estimate,
)
def put(x):
    return jax.device_put(x)
