"""Graphs of kernels, as DOT and as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import jax
import jax.numpy as jnp

from hlo.analysis.programs import compiled, f32, written
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.graph import Graph, GraphEdge, Node, inside, neighbourhood, to_dot, to_svg
from jaxprof.hlo.model import Module


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
    assert len(neighbourhood(module, sort, hops=4).nodes) > len(graph.nodes)


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


def test_dot_quotes_and_svg_escapes_what_comes_from_outside() -> None:
    graph = Graph(
        'a "title" <b>',
        (Node("x\\", ('n"<&>', "two\x1b[31m"), "kernel"), Node("y", ("y",), "focus")),
        (GraphEdge("x\\", "y", "<1>"),),
    )
    lines = to_dot(graph).splitlines()
    assert lines[0] == 'digraph "a \\"title\\" <b>" {'
    assert '"x\\\\" -> "y" [label="<1>"];' in lines[-2]
    root = ElementTree.fromstring(to_svg(graph))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ['a "title" <b>', "<1>", 'n"<&>', "two␛[31m", "y"]


def test_layers_go_down_with_the_data() -> None:
    module = _program()
    sort = next(kernel for kernel in kernels(module) if kernel.kind == "sort")
    graph = neighbourhood(module, sort, hops=3)
    root = ElementTree.fromstring(to_svg(graph))
    for line in root.iter("{http://www.w3.org/2000/svg}line"):
        assert float(line.attrib["y2"]) > float(line.attrib["y1"])
    assert f'"{graph.title}"' in to_dot(graph).splitlines()[0]
    assert to_dot(graph).count(" -> ") == len(graph.edges)
