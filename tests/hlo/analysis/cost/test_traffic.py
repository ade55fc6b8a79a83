# ruff: noqa: E501 - an instruction of HLO is one line
"""Bytes that fusions read and write, where not all of an operand is used."""

from __future__ import annotations

import pytest

from hlo.analysis.programs import written
from jaxprof.hlo.analysis.kernels import Kernel, kernels


def _fusion(inside: str, parameters: list[str], result: str) -> Kernel:
    declared = "\n".join(f"p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters))
    names = ", ".join(f"p{number}" for number in range(len(parameters)))
    text = f"""
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

last {{
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}}

fused {{
{declared}
{inside}
}}

ENTRY main {{
{declared}
ROOT f = {result} fusion({names}), kind=kLoop, calls=fused
}}
"""
    (kernel,) = kernels(written(text))
    return kernel


def test_slices_of_one_operand_are_added_up_to_the_whole() -> None:
    inside = """
        a = f32[10] slice(p0), slice={[0:10]}
        b = f32[10] slice(p0), slice={[50:60]}
        ROOT s = f32[10] add(a, b)
    """
    assert _fusion(inside, ["f32[100]"], "f32[10]").bytes_read == 80
    inside = """
        a = f32[60] slice(p0), slice={[0:60]}
        b = f32[60] slice(p0), slice={[40:100]}
        ROOT s = f32[60] add(a, b)
    """
    assert _fusion(inside, ["f32[100]"], "f32[60]").bytes_read == 400


def test_what_is_sliced_after_elementwise_operations_is_all_that_is_read() -> None:
    inside = """
        n = f32[100] negate(p0)
        c = bf16[100] convert(n)
        b = bf16[10,10] bitcast(c)
        ROOT s = bf16[1,10] slice(b), slice={[0:1], [0:10]}
    """
    kernel = _fusion(inside, ["f32[100]"], "bf16[1,10]")
    assert (kernel.bytes_read, kernel.bytes_written) == (40, 20)


def test_a_value_that_is_used_whole_elsewhere_is_read_whole() -> None:
    inside = """
        s = f32[10] slice(p0), slice={[0:10]}
        z = f32[] constant(0)
        r = f32[] reduce(p0, z), dimensions={0}, to_apply=add
        b = f32[10] broadcast(r), dimensions={}
        ROOT a = f32[10] add(s, b)
    """
    assert _fusion(inside, ["f32[100]"], "f32[10]").bytes_read == 400


def test_several_results_and_an_update_among_them() -> None:
    inside = """
        n = f32[1,8] negate(p1)
        u = f32[100,8] dynamic-update-slice(p0, n, p2, p2)
        ROOT t = (f32[100,8], f32[1,8]) tuple(u, n)
    """
    kernel = _fusion(inside, ["f32[100,8]", "f32[1,8]", "s32[]"], "(f32[100,8], f32[1,8])")
    assert (kernel.bytes_read, kernel.bytes_written) == (32 + 4, 32 + 32)


def test_an_update_of_a_computed_array_is_not_in_place() -> None:
    inside = """
        n = f32[100,8] negate(p0)
        ROOT u = f32[100,8] dynamic-update-slice(n, p1, p2, p2)
    """
    kernel = _fusion(inside, ["f32[100,8]", "f32[1,8]", "s32[]"], "f32[100,8]")
    assert kernel.bytes_written == 3200
    assert kernel.bytes_read == 3200 - 32 + 32 + 4  # what is overwritten need not be read


@pytest.mark.parametrize(("combiner", "read"), [("add", 5 * 32), ("last", 0)])
def test_a_scatter_reads_the_old_values_only_if_it_combines_them(combiner: str, read: int) -> None:
    inside = f"""
        ROOT s = f32[100,8] scatter(p0, p1, p2), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={combiner}
    """
    kernel = _fusion(inside, ["f32[100,8]", "s32[5,1]", "f32[5,8]"], "f32[100,8]")
    assert (kernel.bytes_read, kernel.bytes_written) == (read + 20 + 160, 160)
    assert kernel.kind == "scatter"


def test_the_same_operand_given_twice_counts_once() -> None:
    text = """
        fused {
          a = f32[100] parameter(0)
          b = f32[100] parameter(1)
          x = f32[10] slice(a), slice={[0:10]}
          y = f32[10] slice(b), slice={[10:20]}
          ROOT s = f32[10] add(x, y)
        }

        ENTRY main {
          p = f32[100] parameter(0)
          ROOT f = f32[10] fusion(p, p), kind=kLoop, calls=fused
        }
    """
    (kernel,) = kernels(written(text))
    assert kernel.bytes_read == 80
    assert kernel.operand_bytes == (("p", 80),)


_TPU = """
    fused {
      a = f32[1000,100]{1,0:T(8,128)S(1)} parameter(0)
      b = f32[1000,100]{1,0:T(8,128)} parameter(1)
      ROOT s = f32[1000,100]{1,0:T(8,128)} add(a, b)
    }

    ENTRY main {
      x = f32[1000,100]{1,0:T(8,128)} parameter(0)
      start = (f32[1000,100]{1,0:T(8,128)S(1)}, f32[1000,100]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(x)
      near = f32[1000,100]{1,0:T(8,128)S(1)} copy-done(start)
      ROOT f = f32[1000,100]{1,0:T(8,128)} fusion(near, x), kind=kLoop, calls=fused
    }
"""


def test_on_a_tpu_whole_tiles_are_moved_and_on_chip_memory_is_free() -> None:
    """The prefetch reads main memory and writes the chip's; the sum reads one operand there, the other in memory."""
    whole = 1000 * 128 * 4
    prefetch, total = kernels(written(_TPU))
    assert (prefetch.bytes_read, prefetch.bytes_written) == (whole, 0)
    assert (total.bytes_read, total.bytes_written) == (whole, whole)


def test_a_number_that_no_parameter_has_takes_no_memory() -> None:
    text = """
fused {
p = f32[1000] parameter(888888888888)
ROOT n = f32[1000] negate(p)
}

ENTRY main {
p = f32[1000] parameter(0)
ROOT f = f32[1000] fusion(p), kind=kLoop, calls=fused
}
"""
    (kernel,) = kernels(written(text))
    assert (kernel.bytes_read, kernel.bytes_written) == (4000, 4000)


def test_bitcasts_that_are_operands_of_each_other_end() -> None:
    inside = "a = f32[8]{0} bitcast(b)\nb = f32[8]{0} bitcast(a)\nROOT c = f32[8]{0} bitcast(a)"
    assert _fusion(inside, ["f32[8]{0}"], "f32[8]{0}").bytes is not None
