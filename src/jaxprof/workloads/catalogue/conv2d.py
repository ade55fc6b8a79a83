"""conv2d: one layer of a convolutional network."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter


def conv_numpy(images, kernels):
    size = kernels.shape[0]
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(images, ((0, 0), (before, after), (before, after), (0, 0)))
    # (batch, height, width, in, size, size)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return np.tensordot(windows, kernels, axes=((4, 5, 3), (0, 1, 2)))


def estimate(batch, size, channels_in, channels_out, kernel):
    pixels, taps = batch * size**2, kernel**2 * channels_in
    moved = 4 * (pixels * (channels_in + channels_out) + taps * channels_out)
    return Estimate(
        memory_bytes=moved + 4 * pixels * (taps + channels_in),  # NumPy unfolds every window
        flops=2 * pixels * taps * channels_out,
        traffic_bytes=moved,
    )


@workload(
    title="conv(images, kernels)",
    description=(
        "A two-dimensional convolution with stride 1 and same padding: a layer of a convolutional network, channels "
        "last. NumPy unfolds the windows and makes one matrix product of it. On an NVIDIA GPU cuDNN does the work, and "
        "choosing among its algorithms is part of the compile time; `published` is a layer of ResNet-50."
    ),
    inputs=["f32[batch,size,size,channels_in]", "f32[kernel,kernel,channels_in,channels_out]"],
    parameters={
        "batch": Parameter(description="number of images", minimum=1),
        "size": Parameter(description="height and width of an image", minimum=1),
        "channels_in": Parameter(description="channels of an image", minimum=1),
        "channels_out": Parameter(description="channels of the result", minimum=1),
        "kernel": Parameter(description="height and width of a kernel", minimum=1),
    },
    presets={
        "quick": {"batch": 4, "size": 32, "channels_in": 16, "channels_out": 32, "kernel": 3},
        "published": {"batch": 128, "size": 56, "channels_in": 64, "channels_out": 64, "kernel": 3},
    },
    numpy=conv_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=estimate,
    shardings=("0", None),
)
def conv(images, kernels):
    return jax.lax.conv_general_dilated(
        images, kernels, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
