# ruff: noqa: E501 - an instruction of HLO is one line
"""Devices and rooflines, against calculations by hand. Bytes that fusions read and write, where not all of an operand is
used. Positions that a window visits, against counting them one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.kernels.programs import fused, only_kernel, parameters, written
from jaxprof.base.errors import UsageError
from jaxprof.hlo.kernels.cost import ConvolutionWindow, matmul_flops, positions
from jaxprof.hlo.kernels.cost.peaks import (
    DEVICES,
    device,
    device_from_ceilings,
    device_of_figures,
    device_of_kind,
    roofline,
    with_measured,
)
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.shape import parse_shape
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


def test_traffic_asynchronous_all_reduce_repeats_operands():
    text = """
        x = f32[256] parameter(0)
        y = f32[64] parameter(1)
        old = f32[256] all-reduce-start(x), to_apply=add
        two = (f32[256], f32[64]) all-reduce-start(x, y), to_apply=add
        new = ((f32[256]), f32[256]) all-reduce-start(x), to_apply=add
        ROOT both = ((f32[256], f32[64]), (f32[256], f32[64])) all-reduce-start(x, y), to_apply=add
    """
    assert [kernel.bytes_written for kernel in kernels(written(text))] == [1024, 1280, 1024, 1280]


def test_halves_of_complex_arrays_and_permutations():
    text = """
        x = c64[1024]{0:T(256)} parameter(0)
        half = f32[1024]{0:T(256)S(1)} custom-call(x), custom_call_target="X64SplitHigh"
        ROOT both = c64[1024]{0:T(256)} custom-call(half, half), custom_call_target="X64Combine"
    """
    half, both = kernels(written(text))
    assert (half.bytes, both.bytes) == (4096, 8192)
    assert (half.flops, both.flops) == (0, 0)
    assert _of(256, 'custom-call(p0), custom_call_target="cu_lu_pivots_to_permutation"').flops == 0
    assert _of(256, "bitcast-convert(p0)").flops == 256


def test_unknown_and_estimated_flops_bound_nothing():
    placed = roofline(_of(256, 'custom-call(p0), custom_call_target="z"'), DEVICES["h100"])
    assert (placed.bound, placed.intensity, placed.least_seconds) == ("", None, pytest.approx(2048 / 3352e9))
    kernel = _of(1_000_000, "sort(p0), dimensions={0}, to_apply=less")
    placed = roofline(kernel, device_from_ceilings("slow", "measured", 1 << 30, 1e12, {"f32": 1e9}))
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
    cpu = device_from_ceilings("cpu", "measured", 16 << 30, 20e9, {"f32": 100e9})
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


def test_a_gpu_by_its_figures():
    for vendor, cores, gibibytes, gigabytes_per_second, gigahertz, name in (row.split() for row in """
        Nvidia  132   79.14  3352.3  1.98  h100
        Nvidia  132  139.8   4916.7  1.98  h200
        Nvidia  132  139.8      0    0     h200
        Nvidia  108   39.4   1555    1.41  a100-40gb
        AMD     304  191.98  2662.4  2.1   mi300x
        AMD     256  287.98  4096    2.4   mi355x
        AMD     256  287.98  4096    2.2   mi350x
        AMD     256  287.98  4096    0     -
        AMD     132   79.14  3352.3  1.98  -
        Nvidia  108   79.1   1935    1.41  -
        Nvidia  142   44.5    960    2.5   -
        Nvidia    0    0        0    0     -
    """.strip().splitlines()):  # fmt: skip
        bandwidth, clock = float(gigabytes_per_second) * 1e9, float(gigahertz) * 1e9
        found = device_of_figures(vendor, int(cores), int(float(gibibytes) * 2**30), int(bandwidth), int(clock))
        assert found is DEVICES.get(name), (vendor, cores, gibibytes)


_SCATTER = "ROOT s = f32[100,8] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply="
_CASES = {
    # the lines of a fusion, the shapes of its parameters, the bytes that it reads and writes
    "slices of one operand are added up": (
        """a = f32[10] slice(p0), slice={[0:10]}
        b = f32[10] slice(p0), slice={[50:60]}
        ROOT s = f32[10] add(a, b)""",
        ["f32[100]"], (80, 40),
    ),
    "to no more than the whole": (
        """a = f32[60] slice(p0), slice={[0:60]}
        b = f32[60] slice(p0), slice={[40:100]}
        ROOT s = f32[60] add(a, b)""",
        ["f32[100]"], (400, 240),
    ),
    "a slice after elementwise operations is all that is read": (
        """n = f32[100] negate(p0)
        c = bf16[100] convert(n)
        b = bf16[10,10] bitcast(c)
        ROOT s = bf16[1,10] slice(b), slice={[0:1], [0:10]}""",
        ["f32[100]"], (40, 20),
    ),
    "a value that is used whole elsewhere is read whole": (
        """s = f32[10] slice(p0), slice={[0:10]}
        z = f32[] constant(0)
        r = f32[] reduce(p0, z), dimensions={0}, to_apply=add
        b = f32[10] broadcast(r), dimensions={}
        ROOT a = f32[10] add(s, b)""",
        ["f32[100]"], (400, 40),
    ),
    "several results and an update among them": (
        """n = f32[1,8] negate(p1)
        u = f32[100,8] dynamic-update-slice(p0, n, p2, p2)
        ROOT t = (f32[100,8], f32[1,8]) tuple(u, n)""",
        ["f32[100,8]", "f32[1,8]", "s32[]"], (32 + 4, 32 + 32),
    ),
    "an update of a computed array is not in place": (  # what is overwritten need not be read
        """n = f32[100,8] negate(p0)
        ROOT u = f32[100,8] dynamic-update-slice(n, p1, p2, p2)""",
        ["f32[100,8]", "f32[1,8]", "s32[]"], (3200 - 32 + 32 + 4, 3200),
    ),
    "a scatter that combines reads the old values": (
        _SCATTER + "add", ["f32[100,8]", "s32[5,1]", "f32[5,8]"], (5 * 32 + 20 + 160, 160)
    ),
    "a scatter that replaces does not": (_SCATTER + "last", ["f32[100,8]", "s32[5,1]", "f32[5,8]"], (20 + 160, 160)),
    "a number that no parameter has takes no memory": (
        "q = f32[1000] parameter(888888888888)\nROOT n = f32[1000] negate(p0)", ["f32[1000]"], (4000, 4000)
    ),
    "bitcasts that are operands of each other end": (
        "a = f32[8] bitcast(b)\nb = f32[8] bitcast(a)\nROOT c = f32[8] bitcast(a)", ["f32[8]"], (0, 32)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
def test_a_fusion_reads_and_writes_what_it_uses(name):
    inside, shapes, moved = _CASES[name]
    kernel = only_kernel(fused(inside, *shapes))
    assert (kernel.bytes_read, kernel.bytes_written) == moved


def test_the_same_operand_given_twice_counts_once():
    inside = "x = f32[10] slice(p0), slice={[0:10]}\ny = f32[10] slice(p1), slice={[10:20]}\nROOT s = f32[10] add(x, y)"
    kernel = only_kernel(fused(inside, "f32[100]", "f32[100]").replace("fusion(p0, p1)", "fusion(p0, p0)"))
    assert kernel.operand_bytes == (("p0", 80),)


def test_traffic_tpu_tiles_and_on_chip_memory():
    """The prefetch reads main memory and writes the chip's; the sum reads one operand there, the other in memory."""
    tiles, near = "f32[1000,100]{1,0:T(8,128)}", "f32[1000,100]{1,0:T(8,128)S(1)}"
    whole = 1000 * 128 * 4
    prefetch, total = kernels(written(f"""
        x = {tiles} parameter(0)
        start = ({near}, {tiles}, u32[]{{:S(2)}}) copy-start(x)
        near = {near} copy-done(start)
        ROOT f = {tiles} add(near, x)
    """))  # fmt: skip
    assert (prefetch.bytes_read, prefetch.bytes_written) == (whole, 0)
    assert (total.bytes_read, total.bytes_written) == (whole, whole)


def _counted(window, input_size, output_size):
    found = 0
    for output in range(output_size):
        for at in range(window.size):
            place = output * window.stride + at * window.window_dilation - window.pad_low
            inside = 0 <= place <= (input_size - 1) * window.base_dilation
            found += inside and place % window.base_dilation == 0
    return found


@given(
    size=st.integers(1, 6),
    stride=st.integers(1, 5),
    low=st.integers(-3, 6),
    base=st.integers(1, 5),
    dilation=st.integers(1, 4),
    input_size=st.integers(1, 14),
    output_size=st.integers(0, 16),
)
def test_positions_are_those_that_counting_finds(size, stride, low, base, dilation, input_size, output_size):
    window = ConvolutionWindow(size, stride, low, base, dilation)
    assert positions(window, input_size, output_size) == _counted(window, input_size, output_size)


def test_gemm_flops_without_dimension_numbers():
    shapes = map(parse_shape, ("f32[100,30]", "f32[50,30]", "f32[100,50]"))
    assert matmul_flops(*shapes) == 2 * 100 * 50 * 30


def test_window_positions_with_dilation():
    window = ConvolutionWindow(2, stride=3_000_003, base_dilation=999_999_937, window_dilation=2)
    assert positions(window, 10**9, 10**12) == 668, "not within 60 s if the holes are walked through"
