"""The walk over a module that is bounded in time: it claims all operations only where it has counted all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof.recorder.compiles import module_size


def operation(name: str, *inner: Any) -> Any:
    """An operation as MLIR's Python has it, with one block that holds others."""
    held = [SimpleNamespace(operation=each) for each in inner]
    return SimpleNamespace(name=name, regions=[[held]] if held else [])


@pytest.mark.parametrize(("read_every", "counted"), [(2, 1), (1, None)], ids=["over in time", "cut off"])
def test_a_walk_that_is_cut_off_counts_nothing(
    monkeypatch: pytest.MonkeyPatch, read_every: int, counted: int | None
) -> None:
    monkeypatch.setattr(module_size, "_WALK_SECONDS_AT_MOST", -1.0)
    monkeypatch.setattr(module_size, "_CLOCK_READ_EVERY", read_every)
    assert module_size._walk(operation("builtin.module", operation("stablehlo.add"))).operations == counted
