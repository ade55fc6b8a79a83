"""One operation over large arrays: elementwise work, copies, sums, a sort, a Fourier transform. Memory decides how fast
most of them are."""

from __future__ import annotations

from math import log2

from jaxprof.workloads.catalogue import jax, jnp, np, sizes
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def selu_numpy(x, alpha=1.67, lmbda=1.05):
    return lmbda * np.where(x > 0, x, alpha * np.exp(x) - alpha)


_N = {"n": 1_000_000}


@workload(
    name="selu",
    title="lmbda * where(x > 0, x, alpha * exp(x) - alpha)",
    description=(
        "The scaled exponential linear unit over a vector of float32. Op by op, each of the five operations reads and "
        "writes the whole array; compiled, one loop does all of them, so the gain is mostly memory traffic saved."
    ),
    inputs=["f32[n]"],
    parameters=sizes(n="length of the vector"),
    presets={"quick": _N, "published": _N},
    numpy=selu_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=lambda n: Estimate(memory_bytes=4 * n * 6, flops=5 * n, traffic_bytes=2 * 4 * n),
    shardings=("0",),
)
def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def copy(x):
    return x.copy()


def device_to_host(x):
    # JAX keeps the host's copy of an array that was read: only a new array over the same buffer is copied again.
    unread = jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x])
    return np.asarray(unread)


def transfer_inputs(random, bytes):
    return random.standard_normal(bytes // 4, dtype="float32")


def align(inputs):
    """Return x where a multiple of 64 bytes begins: XLA prefers such a buffer, and may share it on a CPU."""
    return (with_offset(inputs[0], 0),)


def misalign(inputs):
    """Return x four bytes past a multiple of 64, so that it has to be copied."""
    return (with_offset(inputs[0], 4),)


def with_offset(x, offset):
    room = np.empty(x.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    placed = room[start : start + x.nbytes].view(x.dtype)
    placed[:] = x
    return placed


@workload(
    name="transfer",
    title="host → device, device → host",
    description=(
        "One array of float32 copied to the device, or back from it, and nothing else; every call is waited for. "
        "NumPy's copy within the host's memory is the yardstick. On a CPU device there may be no copy at all: an array "
        "that begins at a multiple of 64 bytes is shared, and reading one back is a view. Such a figure is the cost of "
        "a call, not a bandwidth."
    ),
    inputs=transfer_inputs,
    parameters={"bytes": Parameter(description="size of the array, a multiple of 4", minimum=4)},
    presets={"quick": {"bytes": 2**24}, "published": {"bytes": 2**28}},
    variants=[
        Variant(
            name="numpy",
            how="numpy",
            function=copy,
            adapt=align,
            description="NumPy, a copy within host memory",
        ),
        Variant(
            name="host-to-device",
            how="eager",
            inputs="host",
            adapt=align,
            description="device_put of an array aligned to 64 bytes; shared, not copied, on a CPU",
        ),
        Variant(
            name="host-to-device-unaligned",
            how="eager",
            inputs="host",
            adapt=misalign,
            description="device_put of an array 4 bytes off such a boundary; always a copy",
        ),
        Variant(
            name="device-to-host",
            how="eager",
            function=device_to_host,
            adapt=align,
            description="numpy.asarray of a device array that was not read before; a view, not a copy, on a CPU",
        ),
    ],
    against="the array that was sent",
    tolerance={"float32": 0.0},
    matrix_products=False,
    estimate=lambda bytes: Estimate(memory_bytes=2 * bytes, traffic_bytes=2 * bytes),
)
def put(x):
    return jax.device_put(x)


@workload(
    name="triad",
    title="b + 3 c",
    description=(
        "Two long arrays in, one out, two operations an element: nothing but memory traffic. Compiled, the time gives "
        "the bandwidth of the device's memory, which most other programs are bound by. Op by op, 3 c is written and "
        "read once more. Mind the size: what fits in a cache measures the cache, and is not a ceiling of the roofline."
    ),
    inputs=["f32[n]", "f32[n]"],
    parameters=sizes(n="length of the arrays"),
    presets={"quick": {"n": 2**25}, "published": {"n": 2**27}},
    variants=[
        Variant(name="numpy", how="numpy", description="NumPy on the host, in two passes"),
        "jax",
        "jit",
    ],
    tolerance={"float32": 1e-6},
    matrix_products=False,
    estimate=lambda n: Estimate(memory_bytes=4 * n * 4, flops=2 * n, traffic_bytes=3 * 4 * n),
    shardings=("0", "0"),
)
def triad(b, c):
    return b + 3.0 * c


_AXES = {"all": None, "rows": 0, "columns": 1}


def sum_numpy(x, *, over):
    return np.sum(x, axis=_AXES[over])


def sum_inputs(random, rows, columns):
    """Return positive numbers, so that the sum is well conditioned."""
    return random.random((rows, columns), dtype="float32")


def sum_float64(x, *, over):
    return x.sum(axis=_AXES[over], dtype="float64")


def sum_estimate(rows, columns, over):
    traffic = 4 * (rows * columns + {"all": 1, "rows": columns, "columns": rows}[over])
    return Estimate(memory_bytes=traffic, flops=rows * columns, traffic_bytes=traffic)


@workload(
    name="reduce",
    title="sum(x, axis)",
    description=(
        "The sum of a matrix of float32: of everything, over its rows, or over its columns. Every number is read once, "
        "so the ceiling is memory bandwidth; how near a device comes depends on the axis, because threads that share a "
        "sum must talk to each other. The result is compared with the same sum in float64."
    ),
    inputs=sum_inputs,
    parameters={
        **sizes(rows="rows of x", columns="columns of x, contiguous in memory"),
        "over": Parameter(description="what is summed over", kind="choice", choices=("all", "rows", "columns")),
    },
    presets={
        "quick": {"rows": 2000, "columns": 2000, "over": "all"},
        "published": {"rows": 16_384, "columns": 16_384, "over": "all"},
    },
    numpy=sum_numpy,
    expected=sum_float64,
    against="the sum in float64",
    tolerance={"float32": 1e-4},
    matrix_products=False,
    estimate=sum_estimate,
    shardings=("0",),
)
def total(x, *, over):
    return jnp.sum(x, axis=_AXES[over])


def sort_numpy(x):
    return np.sort(x)


@workload(
    name="sort",
    title="sort(x)",
    description=(
        "One vector of float32 sorted. There is no arithmetic, so there are no FLOP/s; what counts is how often the "
        "data are moved. NumPy's sort uses the vector units of recent CPUs, and XLA's on a CPU does not: this is a "
        "workload that JAX may well lose."
    ),
    inputs=["f32[n]"],
    parameters=sizes(n="length of the vector"),
    presets={"quick": {"n": 200_000}, "published": {"n": 2**24}},
    numpy=sort_numpy,
    tolerance={"float32": 0.0},
    matrix_products=False,
    estimate=lambda n: Estimate(memory_bytes=3 * 4 * n, traffic_bytes=2 * 4 * n),
)
def sort(x):
    return jnp.sort(x)


def fft_numpy(x):
    return np.fft.fft(x).astype(np.complex64, copy=False)  # NumPy before 2.0 always answers in complex128


@workload(
    name="fft",
    title="fft(x) along the rows",
    description=(
        "A batch of one-dimensional complex64 Fourier transforms. XLA does not generate the code, it calls the "
        "device's library (cuFFT, or its own on a CPU), so nothing is fused into it. FLOPs are the customary 5 n log2 "
        "n, whatever the library does; lengths with large prime factors are much slower than powers of two."
    ),
    inputs=["c64[batch,n]"],
    parameters=sizes(
        batch="how many transforms",
        n="length of each",
    ),
    presets={"quick": {"batch": 64, "n": 4096}, "published": {"batch": 1024, "n": 65_536}},
    numpy=fft_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=lambda batch, n: Estimate(
        memory_bytes=4 * 8 * batch * n, flops=5 * batch * n * log2(n), traffic_bytes=2 * 8 * batch * n
    ),
    shardings=("0",),
)
def fft(x):
    return jnp.fft.fft(x)
