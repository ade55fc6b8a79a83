"""`jaxprof.load_hlo`: the modules of everything that HLO can lie in."""

from __future__ import annotations

from pathlib import Path

import pytest

import jaxprof
from hlo_sources import BOTH_STAGES, SOURCES, WRONG
from jaxprof.hlo.analysis.kernels import kernels

pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", ["text", "dump", "session"])
def test_modules_of_each(name: str, tmp_path: Path) -> None:
    (found,) = jaxprof.load_hlo(str(SOURCES[name](tmp_path)))
    assert [kernel.name for kernel in kernels(found.module())] == ["exp"]
    assert ("hlo_before" in found.stages) == (name in BOTH_STAGES)


@pytest.mark.parametrize("name", list(WRONG)[:3])
def test_what_holds_no_hlo_is_refused(name: str, tmp_path: Path) -> None:
    make, said = WRONG[name]
    with pytest.raises(jaxprof.FileRefusedError, match="there is no file" if name == "nothing" else said):
        jaxprof.load_hlo(make(tmp_path))
