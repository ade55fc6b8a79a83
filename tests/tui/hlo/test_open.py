"""The app opens everything that HLO can lie in, from the command line and on the HLO screen alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input

import jaxprof
from folding import written
from hlo_sources import BOTH_STAGES, SESSIONS, SOURCES, WRONG
from jaxprof import events as e
from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.analysis.memory import SCHEDULE, buffers_of
from jaxprof.hlo.model import Module
from jaxprof.hlo.read import parse
from jaxprof.report.json import to_dict
from jaxprof.report.text import to_text
from jaxprof.report.views import view_text
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.dialogs import AskText
from tui import profiles
from tui.fakes import SMALL, Stage, Walk, walking
from tui.hlo.test_hlo_screen import read
from tui.hlo_texts import HLO
from tui.session_tapes import Tape


async def has_its_module(name: str, walk: Walk) -> None:
    """The HLO screen comes into view, and shows the kernels and the stages of that source."""
    await walk.on(HloScreen)
    await read(walk)
    opened = walk.screen._opened
    assert not opened.errors
    assert [kernel.name for kernel in opened.kernels or ()] == ["exp"]
    assert ("hlo_before" in opened.stages) == (name in BOTH_STAGES)


@pytest.mark.process
@pytest.mark.parametrize("name", ["folder of one .gz", *SESSIONS])
async def test_given_to_the_app(name: str, tmp_path: Path) -> None:
    async with walking(SMALL, Stage(SOURCES[name](tmp_path))) as walk:
        if name in SESSIONS:
            await walk.until(lambda: walk.app.session.runs)
            walk.app.action_go("hlo")
        await has_its_module(name, walk)


async def test_named_on_the_hlo_screen_and_what_holds_no_hlo_is_refused(tmp_path: Path) -> None:
    wrong = [name for name in WRONG if "profile" not in name and "session" not in name][:2]
    async with walking() as walk:

        async def answer(make: Callable[[Path], Path], name: str) -> None:
            folder = tmp_path / name
            folder.mkdir()
            walk.app.action_go("hlo")
            await walk.on(HloScreen)
            before = walk.screen._opened
            await walk.press("m o")
            await walk.on(AskText)
            walk.find(Input).value = str(make(folder))
            await walk.press("enter")
            await walk.on(HloScreen)
            await walk.until(lambda: name in wrong or walk.screen._opened is not before)

        for name in wrong:
            make, said = WRONG[name]
            await answer(make, name)
            expected = "there is no file" if name == "nothing" else said
            await walk.until(lambda words=expected: words in walk.words, expected)
        for name in ("text", "dump", "session"):
            await answer(SOURCES[name], name)
            await has_its_module(name, walk)


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
    # Without these, the memory comes from the schedule, which reads the HLO.
    written(path, (event for event in tape.events if not isinstance(event, e.BuffersReported)), tape.header)
    parsed: list[str] = []
    real = parse.modules

    def count(text: str) -> list[Module]:
        parsed.append(text)
        return real(text)

    monkeypatch.setattr(parse, "modules", count)
    async with walking(stage=Stage(path)) as walk:
        app = walk.app
        await walk.until(lambda: app.session.runs)
        app.show_hlo("r1")
        await walk.on(HloScreen)
        await read(walk)
        opened = walk.screen._opened
        assert opened.findings is not None
        for view in ("timeline", "memory", "overview"):
            app.show_profile("r1", view=view)
            await walk.mode("profile")
            await walk.pause()
        session = app.session
        assert kernels_of(session, "r1")
        assert measured(session, "r1") is not None
        memory = buffers_of(session, "r1")
        assert memory is not None
        assert memory.source == SCHEDULE
        assert "dot.1" in view_text(session, "kernels")
        assert "two-layers" in to_text(session)
        assert to_dict(session)["runs"][0]["kernels"]
        assert jaxprof.load_hlo(path)[0].module() is opened.module
    assert parsed.count(text) == 1


async def test_the_memory_of_a_file_stands_above_it(tmp_path: Path) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[256]) -> f32[256] {\n  %x = f32[256]{0} parameter(0)\n"
        "  ROOT %out = f32[256]{0} sine(%x)\n}\n"
    )
    async with walking(stage=Stage(path)) as walk:
        await walk.shows("out")
        await walk.press("m m", "2 buffers of 2.00 KiB alive at the highest point: out")
        await walk.press("down enter", "ROOT")
        assert isinstance(walk.screen, HloScreen)
