"""Shapes: what is written, what it means, what it occupies. Line numbers without a table of lines. Places in StableHLO
and jaxprs: the text loses them and they keep their meaning. Graphs of kernels, as DOT and as SVG."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.analysis.programs import compiled, f32, written
from jaxprof.hlo import source as module
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.graph import Graph, GraphEdge, Node, inside, neighbourhood, to_dot
from jaxprof.hlo.model import Module
from jaxprof.hlo.places import LineOrigin, without_comments, without_locations
from jaxprof.hlo.shape import DTYPE_BITS, UNBOUNDED, Layout, Shape, parse_shape
from jaxprof.hlo.source import Source
from tui.hlo_texts import FILE, JAXPR, STABLEHLO


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
    assert layout.tiles == ((8, 128), (2, 1))
    assert (layout.element_bits, layout.memory_space) == (4, 5)


def test_joined_tile_dimension() -> None:
    layout = parse_shape("f32[2,3]{1,0:T(*,4)}").layout
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


@given(st.text("ab\n", max_size=300), st.integers(1, 7))
def test_agrees_with_split(text: str, block: int) -> None:
    original = module._BLOCK
    module._BLOCK = block  # type: ignore[misc]
    try:
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
    finally:
        module._BLOCK = original  # type: ignore[misc]


# -- places -----------------------------------------------------------------------------------------------------------


def test_stablehlo_loses_its_locations_and_keeps_their_meaning() -> None:
    text, places = without_locations(STABLEHLO)
    assert "loc(" not in text
    lines = text.split("\n")
    tanh = next(number for number, line in enumerate(lines) if "tanh" in line)
    assert lines[tanh] == "    %1 = stablehlo.tanh %0 : tensor<256x512xf32>"
    assert places.of(tanh) == LineOrigin(HloSourceLocation(FILE, 11), "jit(loss)/jvp(attn)/tanh")
    assert lines[1].startswith("  func.func public @main(%arg0: tensor<256x512xf32>, %arg1: tensor<512x512xf32>)")


def test_a_jaxpr_loses_its_comments_and_keeps_their_meaning() -> None:
    text, places = without_comments(JAXPR)
    lines = text.split("\n")
    assert "#" not in text
    assert lines[1] == "    c:f32[256,512] = dot_general["
    assert places.of(1) == LineOrigin(HloSourceLocation(FILE, 10), "jvp(attn)/dot_general")
    assert lines[5] == "    d:f32[256,512] = tanh c"
    assert places.of(5) == LineOrigin(HloSourceLocation(FILE, 11), "jvp(attn)/tanh")


@pytest.mark.parametrize("strip", [without_locations, without_comments])
def test_a_text_without_places_comes_back_as_it_is(strip: object) -> None:
    text = "module @m {\n  %0 = x.y %1\n}"
    assert callable(strip)
    assert strip(text)[0] == text


def _program() -> Module:
    return compiled(lambda x, w: jax.nn.softmax(jnp.sort(x @ w)), f32(64, 64), f32(64, 64))


def test_a_neighbourhood_has_what_a_kernel_reads_and_who_reads_it() -> None:
    module = _program()
    sort = next(kernel for kernel in kernels(module) if kernel.kind == "sort")
    graph = neighbourhood(module, sort)
    focus = next(node for node in graph.nodes if node.kind == "focus")
    assert focus.lines[:2] == (sort.name, "sort")
    before = [edge.source for edge in graph.edges if edge.target == focus.id]
    assert len(before) == 1


def test_the_product_has_the_parameters_of_the_program_as_inputs() -> None:
    module = _program()
    product = next(kernel for kernel in kernels(module) if kernel.kind == "GEMM")
    inputs = [node for node in neighbourhood(module, product).nodes if node.kind == "input"]
    assert [node.lines[1] for node in inputs] == ["parameter f32[64,64]"] * 2


def test_the_inside_of_a_fusion() -> None:
    module = written("""
        fused {
          a = f32[8] parameter(0)
          c = f32[] constant(2)
          b = f32[8] broadcast(c), dimensions={}
          ROOT m = f32[8] multiply(a, b)
        }

        ENTRY main {
          x = f32[8] parameter(0)
          ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused
        }
    """)
    (kernel,) = kernels(module)
    graph = inside(module, kernel)
    assert {(edge.source, edge.target) for edge in graph.edges} == {("a", "m"), ("b", "m"), ("c", "b")}
    assert GraphEdge("a", "m", "") in graph.edges
    assert next(node for node in graph.nodes if node.id == "a").lines == ("parameter f32[8]", "x")


def test_dot_quotes_what_comes_from_outside() -> None:
    graph = Graph(
        'a "title" <b>',
        (Node("x\\", ('n"<&>', "two\x1b[31m"), "kernel"), Node("y", ("y",), "focus")),
        (GraphEdge("x\\", "y", "<1>"),),
    )
    lines = to_dot(graph).splitlines()
    assert lines[0] == 'digraph "a \\"title\\" <b>" {'
    assert '"x\\\\" -> "y" [label="<1>"];' in lines[-2]


def test_every_edge_is_drawn() -> None:
    module = _program()
    sort = next(kernel for kernel in kernels(module) if kernel.kind == "sort")
    graph = neighbourhood(module, sort)
    assert f'"{graph.title}"' in to_dot(graph).splitlines()[0]
    assert to_dot(graph).count(" -> ") == len(graph.edges)
