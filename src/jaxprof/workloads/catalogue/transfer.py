"""transfer: the copy between host and device, on its own: size by direction by alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def copy_numpy(parameters: Parameters) -> Callable[..., Any]:
    def copy(x: Any) -> Any:
        return x.copy()

    return copy


def host_to_device(parameters: Parameters) -> Callable[..., Any]:
    import jax

    def put(x: Any) -> Any:
        return jax.device_put(x)

    return put


def device_to_host(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import numpy as np

    def read(x: Any) -> Any:
        # JAX keeps the host's copy of an array that was read: only a new array over the same buffer is copied again.
        unread = jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x])
        return np.asarray(unread)

    return read


def aligned(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """x where a multiple of 64 bytes begins: what XLA wants of a buffer, and may then share on a CPU."""
    return (_placed(inputs[0], 0),)


def unaligned(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """x four bytes past a multiple of 64: it has to be copied."""
    return (_placed(inputs[0], 4),)


def _placed(x: Any, offset: int) -> Any:
    import numpy as np

    room = np.empty(x.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    place = room[start : start + x.nbytes].view(x.dtype)
    place[:] = x
    return place


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    return (random.standard_normal(int(parameters["bytes"]) // 4, dtype="float32"),)


def estimate(parameters: Parameters) -> Estimate:
    size = float(parameters["bytes"])
    return Estimate(memory_bytes=2 * size, traffic_bytes=2 * size)


WORKLOAD = Workload(
    name="transfer",
    title="host → device, device → host",
    description=(
        "One array of float32 copied to the device, or back from it, and nothing else; every call is waited for. "
        "NumPy's copy within the host's memory is the yardstick. On a CPU device there may be no copy at all: an array "
        "that begins at a multiple of 64 bytes is shared, and reading one back is a view. Such a figure is the cost of "
        "a call, not a bandwidth."
    ),
    parameters=(Parameter(name="bytes", description="size of the array, a multiple of 4", minimum=4),),
    presets={"quick": {"bytes": 2**24}, "published": {"bytes": 2**28}},
    variants=(
        Variant(
            name="numpy", how="numpy", build=copy_numpy, adapt=aligned, description="NumPy, a copy within host memory"
        ),
        Variant(
            name="host-to-device",
            how="eager",
            build=host_to_device,
            inputs="host",
            adapt=aligned,
            description="device_put of an array aligned to 64 bytes; shared, not copied, on a CPU",
        ),
        Variant(
            name="host-to-device-unaligned",
            how="eager",
            build=host_to_device,
            inputs="host",
            adapt=unaligned,
            description="device_put of an array 4 bytes off such a boundary; always a copy",
        ),
        Variant(
            name="device-to-host",
            how="eager",
            build=device_to_host,
            adapt=aligned,
            description="numpy.asarray of a device array that was not read before; a view, not a copy, on a CPU",
        ),
    ),
    inputs=inputs,
    against="the array that was sent",
    tolerance={"float32": 0.0},
    estimate=estimate,
)
