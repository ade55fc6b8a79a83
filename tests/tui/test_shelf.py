"""The programs that can be opened on the HLO screen: which comes first, and files that are opened twice."""

from __future__ import annotations

from jaxprof.tui.programs.program import Content, Program
from jaxprof.tui.programs.shelf import Shelf


def program(key: str, *stages: str) -> Program:
    return Program(key, key, {stage: lambda: Content("") for stage in stages})


def test_the_run_in_view_comes_first_then_what_was_compiled_then_anything() -> None:
    shelf = Shelf()
    assert shelf.first("r1") is None
    file, traced, compiled = program("a.hlo", "hlo"), program("r1", "jaxpr"), program("r2", "jaxpr", "hlo")
    shelf.add_files([file])
    assert shelf.first("r1") is file
    shelf.of_session = [traced]
    assert shelf.first("") is traced
    shelf.of_session = [traced, compiled]
    assert shelf.first("") is compiled
    assert shelf.first("r1") is traced
    assert shelf.of_run("r2") is compiled
    assert shelf.of_run("a.hlo") is None


def test_a_file_that_is_opened_again_is_there_once_as_it_is_now() -> None:
    shelf = Shelf()
    before, other, now = program("a.hlo"), program("b.hlo"), program("a.hlo", "hlo")
    shelf.add_files([before, other])
    shelf.add_files([now])
    assert shelf.all == [other, now]
