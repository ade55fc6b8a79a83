"""Draw a kernel as a graph: what is inside it, or which kernels it exchanges arrays with.

A graph is plain data. It can be written as Graphviz DOT, and as a simple SVG that needs no Graphviz: boxes in layers,
each below all boxes that it takes data from, with straight arrows. That suffices for a kernel and its neighbours; for
large graphs DOT and Graphviz are better. Text from outside is quoted or escaped for the output format.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.flow import flow_of
from jaxprof.text import safe, shorten
from jaxprof.units import bytes_

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Computation, Instruction, Module

MOST_NODES: Final = 400
"""Most boxes of a readable picture; `Graph.omitted` is the number of the others."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box."""

    id: str
    lines: tuple[str, ...]
    kind: str
    """`focus` for the requested kernel, else `kernel`, `input` (a parameter or constant) or `operation`."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An arrow in the direction of the data."""

    source: str
    target: str
    label: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes and arrows, with a title."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[GraphEdge, ...]
    omitted: int = 0
    """Number of boxes that were left out."""


def neighbourhood(module: Module, kernel: Kernel, hops: int = 1) -> Graph:
    """Return the kernel with the kernels that it reads from and writes for, up to `hops` kernels away."""
    flow = flow_of(module)
    wanted: dict[tuple[str, str], Kernel] = {(kernel.computation, kernel.name): kernel}
    omitted = 0
    for _ in range(max(1, hops)):
        near = [
            other
            for passage in flow.passages
            for end, other in ((passage.producer, passage.consumer), (passage.consumer, passage.producer))
            if (end.computation, end.name) in wanted and (other.computation, other.name) not in wanted
        ]
        unique = {(other.computation, other.name): other for other in near}
        room = MOST_NODES - len(wanted)
        omitted += max(0, len(unique) - room)
        wanted.update(list(unique.items())[: max(0, room)])
    nodes = [_kernel_node(near_kernel, focus=near_kernel is kernel) for near_kernel in wanted.values()]
    edges: dict[tuple[str, str, str], GraphEdge] = {}
    for passage in flow.passages:
        source, target = passage.producer, passage.consumer
        if (source.computation, source.name) in wanted and (target.computation, target.name) in wanted:
            edge = GraphEdge(_id(source), _id(target), bytes_(passage.bytes_read))
            edges[edge.source, edge.target, passage.operand] = edge
    inputs = _inputs(kernel, flow)
    nodes += [node for node, _ in inputs]
    return Graph(kernel.name, tuple(nodes), (*edges.values(), *(edge for _, edge in inputs)), omitted)


def inside(module: Module, kernel: Kernel) -> Graph:
    """Return the operations of a kernel's fused computation; for other kernels, the kernel and its operands."""
    instruction = kernel.instruction
    called = instruction.called_computations() if instruction.opcode == "fusion" else ()
    if not called:
        return neighbourhood(module, kernel)
    computation = called[0]
    shown = computation.instructions[-MOST_NODES:]
    names = {operation.name for operation in shown}
    nodes = tuple(_operation_node(operation, instruction, computation) for operation in shown)
    edges = tuple(
        GraphEdge(operand, operation.name, "")
        for operation in shown
        for operand in operation.operands
        if operand in names
    )
    return Graph(kernel.name, nodes, edges, len(computation.instructions) - len(shown))


def _id(kernel: Kernel) -> str:
    return f"{kernel.computation}/{kernel.name}"


def _kernel_node(kernel: Kernel, *, focus: bool) -> Node:
    place = kernel.source
    lines = [kernel.name, kernel.kind, f"{bytes_(kernel.bytes_read)} in, {bytes_(kernel.bytes_written)} out"]
    if place is not None:
        lines.append(f"{place.file.rsplit('/', 1)[-1]}:{place.line}")
    return Node(_id(kernel), tuple(lines), "focus" if focus else "kernel")


def _inputs(kernel: Kernel, flow: Flow) -> list[tuple[Node, GraphEdge]]:
    """Return the parameters and constants that the kernel reads itself."""
    instruction = kernel.instruction
    inputs: dict[str, tuple[Node, GraphEdge]] = {}
    for name, size in kernel.operand_bytes:
        operand = instruction.computation.get(name)
        value = flow.origin(operand, ()) if operand is not None else None
        if value is None or flow.kernel(value.instruction) is not None or len(inputs) >= MOST_NODES:
            continue
        made = value.instruction
        label = "".join(f"[{index}]" for index in value.member)
        identity = f"{made.computation.name}/{made.name}{label}"
        shape = str(operand.shape.without_layout()) if operand is not None else ""
        node = Node(identity, (f"{made.name}{label}", f"{made.opcode} {shape}"), "input")
        inputs.setdefault(identity, (node, GraphEdge(identity, _id(kernel), bytes_(size))))
    return list(inputs.values())


def _operation_node(operation: Instruction, fusion: Instruction, computation: Computation) -> Node:
    shape = str(operation.shape.without_layout())
    number = operation.parameter_number
    if number is not None:
        names = fusion.operands
        return Node(operation.name, (f"parameter {shape}", names[number] if number < len(names) else ""), "input")
    if operation.opcode == "constant":
        literal = " ".join(operation.literal.split())[:24]
        return Node(operation.name, (f"constant {shape}", literal), "input")
    kind = "focus" if operation is computation.root else "operation"
    return Node(operation.name, (operation.opcode, shape), kind)


_FILL: Final = {"focus": "#ffe08a", "kernel": "#dbe9ff", "input": "#eeeeee", "operation": "#ffffff"}
_WIDTH: Final = 230
_LINE: Final = 15
_GAP_X: Final = 24
_GAP_Y: Final = 52
_CHARACTERS: Final = 34


def to_dot(graph: Graph) -> str:
    """Return the graph as Graphviz DOT, which `dot -Tsvg` draws."""
    lines = [f"digraph {_quoted(graph.title)} {{", '  node [shape=box, style=filled, fontname="monospace"];']
    for node in graph.nodes:
        label = "\\n".join(_escaped(line) for line in node.lines if line)
        lines.append(f'  {_quoted(node.id)} [label="{label}", fillcolor="{_FILL[node.kind]}"];')
    lines += [f"  {_quoted(e.source)} -> {_quoted(e.target)} [label={_quoted(e.label)}];" for e in graph.edges]
    if graph.omitted:
        lines.append(f'  label="{graph.omitted} more not shown";')
    return "\n".join([*lines, "}", ""])


def _escaped(text: str) -> str:
    return safe(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def to_svg(graph: Graph) -> str:
    """Return the graph as a standalone picture; its width follows the widest layer."""
    layers = _layers(graph)
    heights = [max((len(node.lines) for node in layer), default=1) * _LINE + 14 for layer in layers]
    width = max((len(layer) for layer in layers), default=1) * (_WIDTH + _GAP_X) + _GAP_X
    places: dict[str, tuple[float, float, float]] = {}
    top = float(_GAP_Y)
    for layer, height in zip(layers, heights, strict=True):
        left = (width - len(layer) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for number, node in enumerate(layer):
            places[node.id] = (left + number * (_WIDTH + _GAP_X), top, height)
        top += height + _GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top:.0f}" '
        f'viewBox="0 0 {width} {top:.0f}" font-family="monospace" font-size="11">',
        '<defs><marker id="tip" markerWidth="9" markerHeight="7" refX="8" refY="3.5" orient="auto">'
        '<path d="M0,0 L9,3.5 L0,7 Z"/></marker></defs>',
        f'<text x="{_GAP_X}" y="22" font-size="14">{_markup(graph.title, 80)}</text>',
    ]
    parts += [
        _arrow(places[edge.source], places[edge.target], edge.label)
        for edge in graph.edges
        if {edge.source, edge.target} <= places.keys()
    ]
    parts += [_box(node, places[node.id]) for layer in layers for node in layer]
    if graph.omitted:
        parts.append(f'<text x="{_GAP_X}" y="{top - 12:.0f}">{graph.omitted} more not shown</text>')
    return "\n".join([*parts, "</svg>", ""])


def _layers(graph: Graph) -> list[list[Node]]:
    """Return layers in which each node is below all that it takes data from; arrows that close a cycle (loops) are
    ignored."""
    incoming: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        if edge.source in incoming and edge.target in incoming and edge.source != edge.target:
            incoming[edge.target].append(edge.source)
    depth: dict[str, int] = {}
    waiting = list(incoming)
    for _ in range(len(incoming)):
        left = []
        for name in waiting:
            if all(source in depth for source in incoming[name]):
                depth[name] = 1 + max((depth[source] for source in incoming[name]), default=-1)
            else:
                left.append(name)
        if len(left) == len(waiting):
            depth.update({name: 1 + max(depth.values(), default=-1) for name in left[:1]})
            left = left[1:]
        waiting = left
        if not waiting:
            break
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in graph.nodes:
        layers[depth[node.id]].append(node)
    return layers


def _markup(text: str, width: int = _CHARACTERS) -> str:
    return escape(shorten(text, width)) if text else ""


def _box(node: Node, place: tuple[float, float, float]) -> str:
    left, top, height = place
    lines = "".join(
        f'<text x="{left + 8:.0f}" y="{top + 19 + number * _LINE:.0f}">{_markup(line)}</text>'
        for number, line in enumerate(node.lines)
    )
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{_WIDTH}" height="{height:.0f}" rx="4" '
        f'fill="{_FILL[node.kind]}" stroke="#555555"/>{lines}'
    )


def _arrow(source: tuple[float, float, float], target: tuple[float, float, float], label: str) -> str:
    x1, y1 = source[0] + _WIDTH / 2, source[1] + source[2]
    x2, y2 = target[0] + _WIDTH / 2, target[1]
    text = (
        f'<text x="{(x1 + x2) / 2 + 4:.0f}" y="{(y1 + y2) / 2:.0f}" fill="#555555">{_markup(label)}</text>'
        if label
        else ""
    )
    line = f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#555555" marker-end="url(#tip)"/>'
    return line + text
