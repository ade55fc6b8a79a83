"""What the HLO screen writes to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.errors import StorageError
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.read.parse import module
from jaxprof.tui.hlo.questions import kernel_graph, write
from tui.hlo_texts import HLO

MODULE = module(HLO)


KERNELS = kernels(MODULE)


# -- exports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["inside", "near"])
def test_a_kernel_is_drawn(what: str) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == "grad_fusion")
    text = kernel_graph(MODULE, kernel, what)
    assert text.startswith("digraph")
    assert ("tanh_fusion" if what == "near" else "multiply") in text


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    write(path, "a")
    with pytest.raises(StorageError):
        write(path, "b")
    with pytest.raises(StorageError):
        write(tmp_path / "no" / "x", "b")
    assert path.read_text() == "a"
