"""The kernels of a program as data and as a table. The HLO room is imported only for a run that has HLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxprof.report.table import table
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, bytes_, integer, scaled

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Kernel


def kernels_json(session: Session, run: Run) -> list[dict[str, Any]] | None:
    """The documented keys of each kernel, in the order of execution; None where there is no HLO that can be read."""
    if "hlo" not in run.texts:
        return None
    from jaxprof.results.kernels import kernels_of

    found = kernels_of(session, run.id)
    return None if found is None else [kernel_json(kernel) for kernel in found]


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """One kernel; figures are of one execution, and what the HLO does not tell is null."""
    place = kernel.source
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "opcode": kernel.opcode,
        "instructions": kernel.instructions,
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "intensity": kernel.intensity,
        "count": kernel.count,
        "source": {"file": place.file, "line": place.line} if place is not None else None,
        "op_name": kernel.op_name or None,
        "computation": kernel.computation,
    }


def kernels_table(kernels: Sequence[Kernel]) -> list[str]:
    """A line a kernel: name, kind, how many instructions are inside, how often it runs, FLOPs, bytes, origin."""
    rows = [("kernel", "kind", "inside", "times", "FLOPs", "bytes", "source", "op name")]
    rows += [
        (
            kernel.name,
            kernel.kind,
            str(kernel.instructions),
            integer(kernel.count),
            scaled(kernel.flops),
            bytes_(kernel.bytes),
            _place(kernel),
            kernel.op_name or UNKNOWN,
        )
        for kernel in kernels
    ]
    return table(rows, right=(2, 3, 4, 5), indent="", widest=(40, 0, 0, 0, 0, 0, 28, 60))


def _place(kernel: Kernel) -> str:
    place = kernel.source
    return f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else UNKNOWN
