"""conv2d: one layer of a convolutional network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def conv_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    def conv(images: Any, kernels: Any) -> Any:
        size = kernels.shape[0]
        before, after = (size - 1) // 2, size // 2
        padded = np.pad(images, ((0, 0), (before, after), (before, after), (0, 0)))
        windows = sliding_window_view(padded, (size, size), axis=(1, 2))  # (batch, height, width, in, size, size)
        return np.tensordot(windows, kernels, axes=((4, 5, 3), (0, 1, 2)))

    return conv


def conv_jax(parameters: Parameters) -> Callable[..., Any]:
    from jax import lax

    def conv(images: Any, kernels: Any) -> Any:
        return lax.conv_general_dilated(
            images, kernels, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return conv


def _sizes(parameters: Parameters) -> tuple[int, int, int, int, int]:
    names = ("batch", "size", "channels_in", "channels_out", "kernel")
    batch, size, channels_in, channels_out, kernel = (int(parameters[name]) for name in names)
    return batch, size, channels_in, channels_out, kernel


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    batch, size, channels_in, channels_out, kernel = _sizes(parameters)
    return (
        random.standard_normal((batch, size, size, channels_in), dtype="float32"),
        random.standard_normal((kernel, kernel, channels_in, channels_out), dtype="float32"),
    )


def estimate(parameters: Parameters) -> Estimate:
    batch, size, channels_in, channels_out, kernel = _sizes(parameters)
    pixels, taps = batch * size**2, kernel**2 * channels_in
    moved = 4 * (pixels * (channels_in + channels_out) + taps * channels_out)
    return Estimate(
        memory_bytes=moved + 4 * pixels * (taps + channels_in),  # NumPy unfolds every window
        flops=2 * pixels * taps * channels_out,
        traffic_bytes=moved,
    )


WORKLOAD = Workload(
    name="conv2d",
    title="conv(images, kernels)",
    description=(
        "A two-dimensional convolution with stride 1 and same padding: a layer of a convolutional network, channels "
        "last. NumPy unfolds the windows and makes one matrix product of it. On an NVIDIA GPU cuDNN does the work, and "
        "choosing among its algorithms is part of the compile time; `published` is a layer of ResNet-50."
    ),
    parameters=(
        Parameter(name="batch", description="number of images", minimum=1),
        Parameter(name="size", description="height and width of an image", minimum=1),
        Parameter(name="channels_in", description="channels of an image", minimum=1),
        Parameter(name="channels_out", description="channels of the result", minimum=1),
        Parameter(name="kernel", description="height and width of a kernel", minimum=1),
    ),
    presets={
        "quick": {"batch": 4, "size": 32, "channels_in": 16, "channels_out": 32, "kernel": 3},
        "published": {"batch": 128, "size": 56, "channels_in": 64, "channels_out": 64, "kernel": 3},
    },
    variants=(
        Variant(name="numpy", how="numpy", build=conv_numpy, description="NumPy: windows unfolded, one product"),
        Variant(name="jax", how="eager", build=conv_jax, description="op by op, device-resident"),
        Variant(name="jit", how="jit", build=conv_jax, description="one compiled program"),
        Variant(
            name="jit-highest",
            how="jit",
            build=conv_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
)
