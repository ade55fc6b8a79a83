"""Devices and rooflines, against calculations by hand."""

import pytest

from hlo.analysis.programs import only_kernel, parameters
from jaxprof.errors import UsageError
from jaxprof.hlo.analysis.cost.peaks import DEVICES, device, device_of_kind
from jaxprof.hlo.analysis.cost.roofline import measured_device, roofline, with_measured
from tables import rows


def _dot(dtype, size, more=""):
    shape = f"{dtype}[{size},{size}]{{1,0}}"
    dot = f"dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{more}"
    return only_kernel(parameters(shape, shape) + f"ROOT d = {shape} {dot}")


def _of(size, lines):
    return only_kernel(parameters(*[f"f32[{size}]"] * 2) + f"ROOT s = f32[{size}] {lines}")


def _sum(size):
    return _of(size, "add(p0, p1)")


def test_a_large_product_is_bound_by_compute():
    placed = roofline(_dot("bf16", 8192), DEVICES["h100"])
    assert placed.bound == "compute"
    assert placed.least_seconds == pytest.approx(2 * 8192**3 / 989.4e12)
    assert placed.ridge == pytest.approx(989.4e12 / 3352e9)
    assert placed.attainable == placed.peak == pytest.approx(989.4e12)


def test_a_sum_is_bound_by_memory():
    placed = roofline(_sum(1_000_000), DEVICES["h100"])
    assert placed.bound == "memory"
    assert placed.least_seconds == pytest.approx(12e6 / 3352e9)
    assert placed.intensity == pytest.approx(1 / 12)
    assert placed.attainable == pytest.approx(3352e9 / 12)


def test_unknown_and_estimated_flops_bound_nothing():
    placed = roofline(_of(256, 'custom-call(p0), custom_call_target="z"'), DEVICES["h100"])
    assert (placed.bound, placed.intensity, placed.least_seconds) == ("", None, pytest.approx(2048 / 3352e9))
    kernel = _of(1_000_000, "sort(p0), dimensions={0}, to_apply=less")
    placed = roofline(kernel, measured_device("slow", "measured", 1 << 30, 1e12, {"f32": 1e9}))
    assert kernel.flops == 20e6, "20 ms at this ceiling"
    assert (placed.bound, placed.least_seconds) == ("", pytest.approx(8e6 / 1e12))


def test_the_ceiling_follows_dtype_and_precision():
    for name, dtype, more, peak in rows("""
        # TF32 is the default of float32 products there
        h100     f32       -                                        494.7e12
        h100     f32       , operand_precision={highest,highest}    66.9e12
        a100     f64       -                                        19.5e12
        h100     f8e4m3fn  -                                        1978.9e12
        # no such unit: as bfloat16
        a100     f8e4m3fn  -                                        312e12
        a100     s8        -                                        624e12
        # one pass of bfloat16, or six
        tpu-v5e  f32       -                                        197e12
        tpu-v5e  f32       , operand_precision={highest,highest}    32.833333e12
    """):
        assert roofline(_dot(dtype, 512, more), DEVICES[name]).peak == pytest.approx(float(peak))


def test_measured_ceilings_take_the_place_of_the_vendors():
    mine = with_measured(DEVICES["h100"], "measured", 3.0e12, {"bf16": 700e12})
    assert roofline(_dot("bf16", 8192), mine).least_seconds == pytest.approx(2 * 8192**3 / 700e12)
    assert roofline(_sum(1_000_000), mine).least_seconds == pytest.approx(12e6 / 3.0e12)
    assert "measured" in mine.source
    cpu = measured_device("cpu", "measured", 16 << 30, 20e9, {"f32": 100e9})
    assert roofline(_dot("f32", 512), cpu).bound == "compute"
    assert roofline(_sum(1000), cpu).bound == "memory"


def test_every_device_is_whole_and_found_by_name():
    for name, row in DEVICES.items():
        assert device(name.upper()) is row
        assert row.memory_bytes > 1 << 30
        assert all(1e11 < rate < 2e16 for rate in (row.bandwidth, *row.matrix.values(), *row.vector.values()))
    assert device("v5e") is DEVICES["tpu-v5e"]
    with pytest.raises(UsageError, match="h100"):
        device("h10")


def test_what_jax_calls_a_device_finds_its_row():
    for kind, name in rows("""
        NVIDIA H100 80GB HBM3    h100
        NVIDIA A100-SXM4-40GB    a100-40gb
        NVIDIA A100-SXM4-80GB    a100
        NVIDIA H100 PCIe         h100-pcie
        Tesla T4                 t4
        TPU v5 lite              tpu-v5e
        TPU v5                   tpu-v5p
        TPU7x                    tpu-v7x
        AMD Instinct MI300X      mi300x
        cpu                      -
        NVIDIA GeForce GTX 1080  -
    """):
        assert device_of_kind(kind) is (DEVICES[name] if name else None)
