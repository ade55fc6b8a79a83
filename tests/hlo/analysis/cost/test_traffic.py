# ruff: noqa: E501 - an instruction of HLO is one line
"""Bytes that fusions read and write, where not all of an operand is used."""

import pytest

from hlo.analysis.programs import fused, only_kernel, written
from jaxprof.hlo.analysis.kernels import kernels

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


def test_on_a_tpu_whole_tiles_are_moved_and_on_chip_memory_is_free():
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
