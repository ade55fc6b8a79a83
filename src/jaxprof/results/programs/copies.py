"""Implicit copies in words: how many bytes are known of them, and what was not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.units import bytes_, integer

if TYPE_CHECKING:
    from jaxprof.results.programs.parts import Transfer
    from jaxprof.session import Run


def counted(run: Run) -> bool:
    """Whether JAX's transfer guard was asked to tell every implicit copy, and did not refuse."""
    program = run.program
    asked = program is not None and program.started is not None and program.started.options.get("transfers") is True
    return asked and not any(warning.code == "transfers_not_counted" for warning in run.warnings)


def size_text(rows: Sequence[Transfer]) -> str:
    """`, 9.38 MiB` of copies that the guard counted; and of how many it does not tell the size."""
    known = [row.bytes for row in rows if row.bytes is not None]
    if not known:
        return ""
    silent = sum(row.count for row in rows if row.bytes is None)
    size = bytes_(sum(known))
    return f", {size}; of {integer(silent)} JAX tells no size" if silent else f", {size}"


def copies_remark(run: Run, rows: Sequence[Transfer]) -> str:
    """What stands below a table of them."""
    if not counted(run) and not any(row.source == "guard" for row in rows):
        return "Samples tell lines, not how many copies there were: jaxprof script --transfers counts them exactly."
    silent = any(row.source == "guard" and row.bytes is None for row in rows)
    return (
        "The transfer guard counts every implicit copy, without its line. It does not see explicit ones (device_put, "
        "device_get), nor on a CPU float(), .item() and np.asarray."
    ) + (" On the fast path of jitted calls JAX tells it neither type nor bytes." if silent else "")
