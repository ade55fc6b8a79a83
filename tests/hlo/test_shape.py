"""Shapes: what is written, what it means, what it occupies. Line numbers without a table of lines. Places in
StableHLO and jaxprs: the text loses them and they keep their meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.hlo import source as module
from jaxprof.hlo.kernels.origin import HloSourceLocation
from jaxprof.hlo.shape import parse_shape
from jaxprof.hlo.source import Source
from jaxprof.hlo.source_lines import LineOrigin, without_comments, without_locations
from tables import rows
from tui.hlo_texts import FILE, JAXPR, STABLEHLO


def test_what_a_shape_says():
    for text, fact, value in rows("""
        bf16[8,1024]{1,0}               dtype         bf16
        bf16[8,1024]{1,0}               dimensions    (8, 1024)
        bf16[8,1024]{1,0}               bytes         16384
        bf16[8,1024]{1,0}               known         True
        f32[0,7]                        elements      0
        f32[]{:T(128)}                  padded_bytes  512
        s32[2,<=8, 3,?]{3,2,1,0}        dimensions    (2, 8, 3, -1)
        s32[2,<=8, 3,?]{3,2,1,0}        dynamic       (1, 3)
        s32[2,<=8, 3,?]{3,2,1,0}        elements      48
        s32[2,<=8, 3,?]{3,2,1,0}        known         False
        ()                              elements      0
        ()                              is_tuple      True
        s4[3]                           bytes         3
        s4[3]{0:E(4)}                   bytes         2
        u2[9]{0:E(2)}                   bytes         3
        f8e4m3b11fnuz[5]                bytes         5
        c128[2]                         bytes         32
        token[]                         bytes         0
        # 10 rows of 100 in tiles of 8 by 128: 16 rows of 128
        f32[10,100]{1,0:T(8,128)}       padded_bytes  8192
        f32[10,100]{0,1:T(8,128)}       padded_bytes  53248
        # an order that is none, as damaged text has it: no tile
        f32[10,100]{1,3:T(8,128)}       padded_bytes  4000
        f32[10,100]{1,1:T(8,128)}       padded_bytes  4000
        (f32[10]{0:T(128)}, f32[3])     padded_bytes  524
    """):
        shape = parse_shape(text)
        assert str(getattr(shape, fact)) == value
        assert str(shape) == text.replace(", 3,", ",3,")


def test_everything_in_a_layout():
    layout = parse_shape("s4[16,256]{1,0:T(*,128)(2,1)L(512)E(4)S(5)}").layout
    assert (layout.minor_to_major, layout.tiles) == ((1, 0), ((None, 128), (2, 1)))
    assert (layout.element_bits, layout.memory_space) == (4, 5)


def test_nested_tuple_with_comments():
    shape = parse_shape("((f32[2]{0:T(8,128)}, /*index=1*/()), token[], opaque[], b(f32[4]))")
    assert [member.dtype for member in shape.tuple_shapes] == ["tuple", "token", "opaque", "buffer"]
    assert [leaf.dtype for leaf in shape.leaves()] == ["f32", "token", "opaque", "f32"]
    assert (shape.bytes, shape.elements) == (8 + 16, 2 + 4)
    assert str(shape) == "((f32[2]{0:T(8,128)}, ()), token[], opaque[], b(f32[4]))"


@pytest.mark.parametrize(
    "text", ["", "f32", "f32[", "f32[x]", "(f32[2]", "(f32[2] s32[])", "f32[2] add", "(" * 5000, "f32[--1]"]
)
def test_what_is_not_a_shape(text):
    with pytest.raises(ValueError, match=r"not a|expected"):
        parse_shape(text)


@given(st.text("ab\n", max_size=300), st.integers(1, 7))
def test_agrees_with_split(text, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        source = Source(text)
        lines = text.split("\n")
        ends_with_break = text.endswith("\n") or not text
        assert source.line_count == len(lines) - ends_with_break
        at = 0
        for number, line in enumerate(lines, start=1):
            assert source.offset(number) == at
            assert source.line(at) == number
            assert source.line(at + len(line)) == number
            at += len(line) + 1
        assert source.offset(len(lines) + 6) == len(text)
        assert source.lines(2, 2) == text.splitlines()[1:3]


def test_stablehlo_loses_its_locations_and_keeps_their_meaning():
    text, places = without_locations(STABLEHLO)
    assert "loc(" not in text
    lines = text.split("\n")
    tanh = next(number for number, line in enumerate(lines) if "tanh" in line)
    assert lines[tanh] == "    %1 = stablehlo.tanh %0 : tensor<256x512xf32>"
    assert places[tanh] == LineOrigin(HloSourceLocation(FILE, 11), "jit(loss)/jvp(attn)/tanh")
    assert lines[1].startswith("  func.func public @main(%arg0: tensor<256x512xf32>, %arg1: tensor<512x512xf32>)")


def test_a_jaxpr_loses_its_comments_and_keeps_their_meaning():
    text, places = without_comments(JAXPR)
    lines = text.split("\n")
    assert "#" not in text
    assert lines[1] == "    c:f32[256,512] = dot_general["
    assert places[1] == LineOrigin(HloSourceLocation(FILE, 10), "jvp(attn)/dot_general")
    assert lines[5] == "    d:f32[256,512] = tanh c"
    assert places[5] == LineOrigin(HloSourceLocation(FILE, 11), "jvp(attn)/tanh")


@pytest.mark.parametrize(
    ("text", "order"),
    [("f32[2,3]{0,1}", (0, 1)), ("f32[2,3]", (1, 0)), ("f32[9]{1,0}", (0,)), ("f32[2,3]{1,1}", (1, 0)), ("f32[]", ())],
)
def test_order_in_memory_fits_the_rank(text, order):
    assert parse_shape(text).minor_to_major == order
