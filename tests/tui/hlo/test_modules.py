"""The modules of the HLO screen: which there are, how one is read part by part, how it is freed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from weakref import ref

import pytest

from jaxprof.analysis.opener import modules_of
from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.open import parsed
from jaxprof.hlo.open.stages import ModuleStages
from jaxprof.hlo.places import LineOrigin
from jaxprof.tui.hlo import modules
from jaxprof.tui.hlo.modules import ModuleList, ModuleReader, OpenedModule, open_program
from tui.hlo_texts import FILE, HLO, program_session


def program(key: str, *stages: str) -> ModuleStages:
    return ModuleStages(key, key, {stage: lambda: "" for stage in stages})


def test_the_run_in_view_comes_first_then_what_was_compiled_then_anything() -> None:
    programs = ModuleList()
    assert programs.first("r1") is None
    file, traced, compiled = program("a.hlo", "hlo"), program("r1", "jaxpr"), program("r2", "jaxpr", "hlo")
    programs.add_files([file])
    assert programs.first("r1") is file
    programs.of_session = [traced]
    assert programs.first("") is traced
    programs.of_session = [traced, compiled]
    assert programs.first("") is compiled
    assert programs.first("r1") is traced
    assert programs.of_run("r2") is compiled
    assert programs.of_run("a.hlo") is None


def test_a_file_that_is_opened_again_is_there_once_as_it_is_now() -> None:
    programs = ModuleList()
    before, other, now = program("a.hlo"), program("b.hlo"), program("a.hlo", "hlo")
    programs.add_files([before, other])
    programs.add_files([now])
    assert programs.all == [other, now]


class Reading:
    """A reader with a thread that was waited for."""

    def __init__(self) -> None:
        self.failed: list[Exception] = []
        self._over = threading.Event()
        self.reader = ModuleReader(lambda _, part: self._over.set() if part == "over" else None, self.failed.append)

    def read(self, text: str) -> OpenedModule:
        self._over.clear()
        opened = OpenedModule(ModuleStages("m", "m", {"hlo": lambda: text}))
        self.reader.read(opened)
        assert self._over.wait(30)
        assert not self.failed
        return opened


@pytest.fixture
def reading() -> Iterator[Reading]:
    assert gc.get_freeze_count() == 0
    reading = Reading()
    yield reading
    reading.reader.stop()


def test_the_garbage_collector_leaves_a_large_module_alone_while_it_is_open(
    monkeypatch: pytest.MonkeyPatch, reading: Reading
) -> None:
    monkeypatch.setattr(modules, "FROZEN", len(HLO) - 1)
    opened = reading.read(HLO)
    assert opened.module is not None
    # The objects that a full collection walks over are those of a generation.
    assert not any(part is opened.module for part in gc.get_objects())
    reading.reader.stop()
    assert any(part is opened.module for part in gc.get_objects())


def test_a_large_module_that_is_open_no_longer_is_freed(monkeypatch: pytest.MonkeyPatch, reading: Reading) -> None:
    monkeypatch.setattr(modules, "FROZEN", 0)
    opened: OpenedModule | None = reading.read(HLO)
    assert opened is not None
    assert opened.module is not None
    module = ref(opened.module)
    opened = None
    reading.reader.stop()
    parsed.release()
    gc.collect()
    assert module() is None


def opened(program: ModuleStages) -> OpenedModule:
    found = OpenedModule(program)
    parts: list[str] = []
    open_program(found, parts.append, lambda: False)
    assert parts[-1] == "over"
    return found


def test_a_line_of_one_stage_leads_to_the_same_operation_in_the_others() -> None:
    found = opened(modules_of(program_session(hlo_before=HLO))[0])
    hlo, jaxpr, stablehlo = (found.stages[name] for name in ("hlo", "jaxpr", "stablehlo"))
    line = found.kernel_line("main.9", "dot.1")
    assert line is not None
    spot = hlo.places.of(line)
    assert spot == LineOrigin(HloSourceLocation(FILE, 10), "jit(loss)/jvp(attn)/dot_general")
    assert [jaxpr.document.line(n).strip() for n in jaxpr.places.lines(spot)] == ["c:f32[256,512] = dot_general["]
    assert ["dot_general" in stablehlo.document.line(n) for n in stablehlo.places.lines(spot)] == [True]
    back = jaxpr.places.of(jaxpr.places.lines(spot)[0])
    assert back is not None
    assert line in hlo.places.lines(back)
    assert len(hlo.places.lines(back)) == 1, "not the other instructions of that source line"


# -- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("large", "expected"), [(100, [(2, False), (4, True)]), (10**9, [(4, True)])])
def test_of_a_large_module_the_first_kernels_are_shown_before_the_others(
    monkeypatch: pytest.MonkeyPatch, large: int, expected: list[tuple[int, bool]]
) -> None:
    monkeypatch.setattr(modules, "LARGE", large)
    monkeypatch.setattr(modules, "FIRST", 2)
    lines = "\n".join(f"  v{n + 1} = f32[8] sine(v{n})" for n in range(4))
    text = f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  v0 = f32[8] parameter(0)\n{lines}\n}}\n"
    found = OpenedModule(ModuleStages("k", "m", {"hlo": lambda: text}))
    told: list[tuple[int, bool]] = []

    def tell(part: str) -> None:
        if part == "kernels":
            told.append((len(found.kernels or ()), found.complete))

    open_program(found, tell, lambda: False)
    assert told == expected
    assert found.over
