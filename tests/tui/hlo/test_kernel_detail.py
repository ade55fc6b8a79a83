"""The tree of what is inside a kernel."""

from __future__ import annotations

from jaxprof.hlo.analysis.tree import tree
from jaxprof.hlo.read.parse import module
from jaxprof.tui.hlo.kernel_detail import branches
from tui.hlo_texts import HLO

MODULE = module(HLO)


# -- what is inside a kernel -------------------------------------------------------------------------------------------


def test_an_only_child_is_not_indented() -> None:
    fusion = MODULE["main.9"]["grad_fusion"]
    rows = tree(fusion)
    drawn = [f"{prefix}{row.opcode}" for prefix, row in zip(branches(rows), rows, strict=True)]
    assert drawn == ["subtract", "├ parameter", "└ multiply", "  ├ parameter", "  └ parameter"]
    tanh = tree(MODULE["main.9"]["tanh_fusion"])
    assert [f"{p}{row.opcode}" for p, row in zip(branches(tanh), tanh, strict=True)] == [
        "tanh", "← multiply", "← parameter",
    ]  # fmt: skip
