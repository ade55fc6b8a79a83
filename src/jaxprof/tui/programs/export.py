"""What can be taken out of the HLO screen into a file: the table as CSV, a kernel as a graph in DOT and in SVG."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from jaxprof.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jaxprof.hlo.analysis import Kernel
    from jaxprof.hlo.model import Module
    from jaxprof.tui.programs.ranking import Ranked

HEADER = (
    "kernel", "computation", "kind", "opcode", "instructions", "count", "conditional", "flops", "bytes_read",
    "bytes_written", "intensity", "bound", "least_seconds", "measured_seconds", "share", "file", "line", "op_name",
)  # fmt: skip
"""Figures from FLOPs to intensity are of one execution, seconds and share of all; an empty cell is unknown."""


def kernels_csv(rows: Sequence[Ranked]) -> str:
    """The rows of the table as they stand, whatever columns there is room for on the screen."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for row in rows:
        kernel = row.kernel
        place = kernel.source
        writer.writerow(
            [
                kernel.name, kernel.computation, kernel.kind, kernel.opcode, kernel.instructions, _cell(kernel.count),
                kernel.conditional, _cell(kernel.flops), kernel.bytes_read, kernel.bytes_written,
                _cell(kernel.intensity), row.roof.bound if row.roof is not None else "", _cell(row.least_seconds),
                _cell(row.measured_seconds), _cell(row.share), place.file if place is not None else "",
                place.line if place is not None else "", kernel.op_name,
            ]
        )  # fmt: skip
    return out.getvalue()


def _cell(value: float | None) -> float | str:
    return "" if value is None else value


def kernel_graph(module: Module, kernel: Kernel, what: str, form: str) -> str:
    """A kernel's `inside`, or its `neighbourhood`, as `dot` or `svg`."""
    from jaxprof.hlo import dot, graph

    made = graph.inside(module, kernel) if what == "inside" else graph.neighbourhood(module, kernel)
    return dot.to_svg(made) if form == "svg" else dot.to_dot(made)


def write(path: Path, text: str) -> None:
    """Writes a file that is not there yet. Raises StorageError where it is, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StorageError(f"{path} is there already", "Give another name.") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}", "Choose another place.") from None
