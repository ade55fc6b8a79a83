"""What jaxlib's profiler looks for while a capture starts and ends, and that nothing of it stays."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest

from jaxprof.engine.measure import capture
from jaxprof.engine.measure.capture import HOOK, stand_in_for_tensorflow


def named() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]


def test_the_module_is_found_as_the_profiler_looks_for_it_and_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capture, "find_spec", lambda name: None)
    with stand_in_for_tensorflow():
        assert import_module(HOOK) is import_module("tensorflow").python.profiler.trace
    assert named() == []


def test_a_tensorflow_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("tensorflow")
    monkeypatch.setitem(sys.modules, "tensorflow", mine)
    with stand_in_for_tensorflow():
        assert sys.modules["tensorflow"] is mine
        assert named() == ["tensorflow"]
    assert sys.modules["tensorflow"] is mine
