"""A graph as Graphviz DOT, and as a simple SVG that needs no Graphviz.

The SVG sets the boxes in layers, each below all that it takes its data from, and draws straight arrows: enough for a
kernel and its neighbours. For large graphs the DOT text and Graphviz are the better choice. Text from outside is
quoted or escaped for the format that is written.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from jaxprof.safe_text import safe, shorten

if TYPE_CHECKING:
    from jaxprof.hlo.graph import Graph, Node

_FILL: Final = {"focus": "#ffe08a", "kernel": "#dbe9ff", "input": "#eeeeee", "operation": "#ffffff"}
_WIDTH: Final = 230
_LINE: Final = 15
_GAP_X: Final = 24
_GAP_Y: Final = 52
_CHARACTERS: Final = 34


def to_dot(graph: Graph) -> str:
    """Graphviz DOT: `dot -Tsvg` draws it."""
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
    """A picture on its own; its width follows the widest layer."""
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
        _arrow(places[e.source], places[e.target], e.label) for e in graph.edges if _known(places, e.source, e.target)
    ]
    parts += [_box(node, places[node.id]) for layer in layers for node in layer]
    if graph.omitted:
        parts.append(f'<text x="{_GAP_X}" y="{top - 12:.0f}">{graph.omitted} more not shown</text>')
    return "\n".join([*parts, "</svg>", ""])


def _known(places: dict[str, tuple[float, float, float]], *names: str) -> bool:
    return all(name in places for name in names)


def _layers(graph: Graph) -> list[list[Node]]:
    """Each node below all that it takes data from; arrows that close a circle (loops) are passed over."""
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
