"""The app opens everything that HLO can lie in, from the command line and on the HLO screen alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import jaxprof
from hlo_sources import BOTH_STAGES, SESSIONS, SOURCES, WRONG
from jaxprof import events as e
from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.analysis.memory import SCHEDULE, buffers_of
from jaxprof.hlo.model import Module
from jaxprof.hlo.read import parse
from jaxprof.report.json import to_dict
from jaxprof.report.text import to_text
from jaxprof.report.views import view_text
from jaxprof.session.log import LogWriter
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.dialogs import AskText
from tui import profiles
from tui.fakes import Stage, until
from tui.hlo.test_hlo_screen import screen_text
from tui.hlo_texts import HLO
from tui.session_tapes import Tape


async def has_its_module(name: str, stage: Stage, pilot: Pilot[Any]) -> None:
    """The HLO screen comes into view, and shows the kernels and the stages of that source."""
    app = stage.app
    await until(pilot, lambda: isinstance(app.screen, HloScreen))
    screen = app.screen
    assert isinstance(screen, HloScreen)
    await until(pilot, lambda: screen._opened is not None and screen._opened.over)
    opened = screen._opened
    assert opened is not None
    assert not opened.errors
    assert [kernel.name for kernel in opened.kernels or ()] == ["exp"]
    assert ("hlo_before" in opened.stages) == (name in BOTH_STAGES)


@pytest.mark.process
@pytest.mark.parametrize("name", ["text", "folder of one .gz", *SESSIONS])
async def test_given_to_the_app(name: str, tmp_path: Path) -> None:
    stage = Stage(SOURCES[name](tmp_path))
    async with stage.app.run_test(size=(80, 24)) as pilot:
        if name in SESSIONS:
            await until(pilot, lambda: bool(stage.app.session.runs))
            stage.app.action_go("hlo")
        await has_its_module(name, stage, pilot)


async def answer(stage: Stage, pilot: Pilot[Any], path: Path) -> None:
    """Answers the question of the HLO screen for a file."""
    stage.app.action_go("hlo")
    await until(pilot, lambda: isinstance(stage.app.screen, HloScreen))
    await pilot.press("m", "o")
    await until(pilot, lambda: isinstance(stage.app.screen, AskText))
    stage.app.screen.query_one("Input").value = str(path)  # type: ignore[attr-defined]
    await pilot.press("enter")


@pytest.mark.parametrize("name", ["dump", "session"])
async def test_named_on_the_hlo_screen(name: str, tmp_path: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await answer(stage, pilot, SOURCES[name](tmp_path))
        await has_its_module(name, stage, pilot)


@pytest.mark.parametrize("name", [name for name in WRONG if "profile" not in name and "session" not in name][:2])
async def test_what_holds_no_hlo_is_refused(name: str, tmp_path: Path) -> None:
    make, said = WRONG[name]
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await answer(stage, pilot, make(tmp_path))
        expected = "there is no file" if name == "nothing" else said
        await until(pilot, lambda: expected in " ".join(screen_text(stage.app).replace("│", " ").split()))


async def test_the_hlo_of_a_run_is_parsed_once_for_every_screen_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The HLO screen with kernels and findings, the profile with its timeline and memory, and each report."""
    text = HLO.replace("jit_loss", f"jit_{tmp_path.name}")  # of this test alone: others leave theirs in the cache
    tape = Tape()
    tape.plan("r1", "jit", workload="two-layers")
    tape.start("r1")
    tape.add(e.TextRecorded, "r1", name="hlo", text=text, bytes=len(text))
    profiles.record(tape, "r1", "dot.1")
    tape.add(e.KernelsMeasured, "r1", kind="run", calls=1, rows=[e.KernelTimes(name="dot.1", self_seconds=2e-3)])
    tape.finish("r1")
    tape.close()
    path = tmp_path / "s.jaxprof"
    writer = LogWriter(tape.header, path)
    for event in tape.events:
        if not isinstance(event, e.BuffersReported):  # the memory comes from the schedule then, which reads the HLO
            writer.append(event)
    writer.close()
    parsed: list[str] = []
    real = parse.modules

    def count(text: str) -> list[Module]:
        parsed.append(text)
        return real(text)

    monkeypatch.setattr(parse, "modules", count)
    stage = Stage(path)
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(stage.app.session.runs))
        stage.app.show_hlo("r1")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen))
        screen = stage.app.screen
        assert isinstance(screen, HloScreen)
        await until(pilot, lambda: screen._opened is not None and screen._opened.over)
        assert screen._opened is not None
        assert screen._opened.findings is not None
        for view in ("timeline", "memory", "overview"):
            stage.app.show_profile("r1", view=view)
            await until(pilot, lambda: stage.app.current_mode == "profile")
            await pilot.pause()
        session = stage.app.session
        assert kernels_of(session, "r1")
        assert measured(session, "r1") is not None
        memory = buffers_of(session, "r1")
        assert memory is not None
        assert memory.source == SCHEDULE
        assert "dot.1" in view_text(session, "kernels")
        assert "two-layers" in to_text(session)
        assert to_dict(session)["runs"][0]["kernels"]
        assert jaxprof.load_hlo(path)[0].module() is screen._opened.module
    assert parsed.count(text) == 1


async def test_the_memory_of_a_file_stands_above_it(tmp_path: Path) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[256]) -> f32[256] {\n  %x = f32[256]{0} parameter(0)\n"
        "  ROOT %out = f32[256]{0} sine(%x)\n}\n"
    )
    stage = Stage(path)
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "out" in screen_text(stage.app))
        await pilot.press("m", "m")
        await until(pilot, lambda: "2 buffers of 2.00 KiB alive at the highest point: out" in screen_text(stage.app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "ROOT" in screen_text(stage.app), "the text of the instruction")
        assert isinstance(stage.app.screen, HloScreen)
