"""What a module's text tells about its kernels: what they are, what they cost, where they came from.

    from jaxprof.hlo.analysis import kernels
    for kernel in kernels(module): ...

Pure functions over `jaxprof.hlo.model`; standard library only. Figures are counted from shapes (`docs/hlo.md` says
how), so they are the same on every machine; how long a kernel took is not told here, only how long it must take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from jaxprof.hlo.analysis.cost import Cost
from jaxprof.hlo.analysis.kernels import Kernel, KernelTable, Totals
from jaxprof.hlo.analysis.origin import OpPath, Origin, Place, op_path, source_lines

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module

__all__ = ["Cost", "Kernel", "OpPath", "Origin", "Place", "Totals", "kernels", "op_path", "source_lines", "totals"]

_tables: WeakKeyDictionary[Module, KernelTable] = WeakKeyDictionary()


def _table(module: Module) -> KernelTable:
    table = _tables.get(module)
    if table is None:
        table = _tables[module] = KernelTable(module)
    return table


def kernels(module: Module) -> tuple[Kernel, ...]:
    """The kernels of `module` in the order of execution. Made once for each module; empty for one without entry."""
    return _table(module).kernels


def totals(module: Module) -> Totals:
    """What one run of `module` costs: loops multiplied, of a conditional the branch that costs most."""
    return _table(module).totals()
