"""Shapes: what is written, what it means, what it occupies."""

from __future__ import annotations

import pytest

from jaxprof.hlo.shape import DTYPE_BITS, UNBOUNDED, Layout, Shape, parse_shape


def test_array() -> None:
    shape = parse_shape("bf16[8,1024]{1,0}")
    assert (shape.dtype, shape.dimensions, shape.rank) == ("bf16", (8, 1024), 2)
    assert (shape.elements, shape.bytes) == (8192, 16384)
    assert shape.layout == Layout((1, 0), text="1,0")
    assert shape.is_array
    assert shape.known


def test_scalar_and_empty() -> None:
    assert parse_shape("f32[]").bytes == 4
    assert parse_shape("f32[0,7]").elements == 0
    assert parse_shape("f32[]{:T(128)}").layout == Layout((), ((128,),), text=":T(128)")


def test_everything_in_a_layout() -> None:
    layout = parse_shape("s4[16,256]{1,0:T(8,128)(2,1)L(512)E(4)S(5)}").layout
    assert layout is not None
    assert layout.tiles == ((8, 128), (2, 1))
    assert (layout.element_bits, layout.memory_space) == (4, 5)


def test_joined_tile_dimension() -> None:
    layout = parse_shape("f32[2,3]{1,0:T(*,4)}").layout
    assert layout is not None
    assert layout.tiles == ((None, 4),)


def test_dynamic_dimensions() -> None:
    shape = parse_shape("s32[2,<=8, 3,?]{3,2,1,0}")
    assert shape.dimensions == (2, 8, 3, UNBOUNDED)
    assert shape.dynamic == (1, 3)
    assert shape.elements == 48
    assert not shape.known
    assert str(shape) == "s32[2,<=8,3,?]{3,2,1,0}"


def test_nested_tuple_with_comments() -> None:
    shape = parse_shape("((f32[2]{0:T(8,128)}, /*index=1*/()), token[], opaque[], b(f32[4]))")
    assert shape.is_tuple
    assert [member.dtype for member in shape.tuple_shapes] == ["tuple", "token", "opaque", "buffer"]
    assert [leaf.dtype for leaf in shape.leaves()] == ["f32", "token", "opaque", "f32"]
    assert shape.bytes == 8 + 16
    assert shape.elements == 2 + 4
    assert str(shape) == "((f32[2]{0:T(8,128)}, ()), token[], opaque[], b(f32[4]))"
    assert parse_shape("()").leaves() == ()


@pytest.mark.parametrize(
    ("text", "size"),
    [("pred[3]", 3), ("s4[3]", 3), ("s4[3]{0:E(4)}", 2), ("u2[9]{0:E(2)}", 3), ("f8e4m3b11fnuz[5]", 5),
     ("f4e2m1fn[4]{0:E(4)}", 2), ("c64[2]", 16), ("c128[2]", 32), ("token[]", 0)],
)  # fmt: skip
def test_bytes_of_small_and_large_elements(text: str, size: int) -> None:
    assert parse_shape(text).bytes == size


def test_padding_to_tiles() -> None:
    # 10 rows of 100 in tiles of 8 by 128: 16 rows of 128.
    assert parse_shape("f32[10,100]{1,0:T(8,128)}").padded_bytes == 16 * 128 * 4
    assert parse_shape("f32[10,100]{0,1:T(8,128)}").padded_bytes == 104 * 128 * 4
    assert parse_shape("f32[10]{0:T(128)}").padded_bytes == 512
    assert parse_shape("f32[10,100]{1,0}").padded_bytes == 4000
    assert parse_shape("(f32[10]{0:T(128)}, f32[3])").padded_bytes == 524


def test_layout_is_part_of_equality_and_can_be_left_out() -> None:
    rows, columns = parse_shape("f32[2,3]{1,0}"), parse_shape("f32[2,3]{0,1}")
    assert rows != columns
    assert rows.without_layout() == columns.without_layout() == Shape("f32", (2, 3))


def test_every_dtype_reads() -> None:
    assert [dtype for dtype in DTYPE_BITS if parse_shape(f"{dtype}[2]").dtype != dtype] == []


@pytest.mark.parametrize(
    "text", ["", "f32", "f32[", "f32[x]", "(f32[2]", "(f32[2] s32[])", "f32[2] add", "(" * 5000, "f32[--1]"]
)
def test_what_is_not_a_shape(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a|expected"):
        parse_shape(text)
