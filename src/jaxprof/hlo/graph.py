"""Draw a kernel as a graph: what is inside it, or which kernels it exchanges arrays with.

A graph is plain data, and is written as DOT, which Graphviz draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.flow import flow_of
from jaxprof.text import safe
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


def neighbourhood(module: Module, kernel: Kernel) -> Graph:
    """Return the kernel with the kernels that it reads from and writes for."""
    flow = flow_of(module)
    beside = {
        _id(other): other
        for passage in flow.passages
        for end, other in ((passage.producer, passage.consumer), (passage.consumer, passage.producer))
        if _id(end) == _id(kernel)
    }
    every = list(({_id(kernel): kernel} | beside).items())
    shown = dict(every[:MOST_NODES])
    nodes = [_kernel_node(near, focus=near is kernel) for near in shown.values()]
    edges: dict[tuple[str, str, str], GraphEdge] = {}
    for passage in flow.passages:
        source, target = _id(passage.producer), _id(passage.consumer)
        if source in shown and target in shown:
            edges[source, target, passage.operand] = GraphEdge(source, target, bytes_(passage.bytes_read))
    inputs = _inputs(kernel, flow)
    nodes += [node for node, _ in inputs]
    return Graph(kernel.name, tuple(nodes), (*edges.values(), *(edge for _, edge in inputs)), len(every) - len(shown))


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
