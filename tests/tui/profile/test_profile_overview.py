"""A profile that is opened begins with what it has: doubts, idle time, steps, kernels, programs, memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content

from jaxprof import events as e
from jaxprof.analysis.profile import ProfileOverview, device_steps, overview
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.tui.profile.overview import OverviewList, overview_facts
from jaxprof.tui.profile.screen import MemoryPane, ProfileScreen
from jaxprof.tui.profiler import place_of
from tui import profiles
from tui.fakes import HOSTILE, Stage, screen_text, until


def found(session: Session | None = None) -> ProfileOverview:
    session = session or profiles.imported().session()
    return overview(session, session.runs["r1"])


def text_of(width: int, session: Session | None = None) -> str:
    return "\n".join(
        fact.plain if isinstance(fact, Content) else fact.content.plain
        for fact in overview_facts(found(session), width)
    )


def test_what_a_profile_has_is_derived_of_all_its_runs() -> None:
    one = found()
    assert [(run, kernel.name, kernel.share) for run, kernel in one.kernels] == [
        ("r2", "dot.1", pytest.approx(9 / 14)),
        ("r2", "loop_fusion", pytest.approx(5 / 14)),
    ]
    (program,) = one.programs
    assert (program.name, program.calls, program.has_hlo, program.share) == ("jit_selu", 10, True, 1.0)
    assert program.peak_bytes is not None
    assert [row.verdict for row in one.trust] == ["doubt", "good", "good"]
    (device,) = one.devices
    assert (device.count, device.median_seconds, device.idle_share) == (10, pytest.approx(2e-3), pytest.approx(0.2))


@pytest.mark.parametrize("width", [78, 118])
def test_every_part_of_the_overview_is_shown(width: int) -> None:
    text = text_of(width)
    for words in (
        "gpu · 1 device · 20.0 ms · 60 events", "kernels with 12 % of the device's time", "idle and busy are of",
        "20 %  16.0 ms  gpu:0", "2.00 ms", "9.00 ms", "900 µs", "dot.1", "jit_selu", " est.",
    ):  # fmt: skip
        assert words in text
    assert max(map(len, text.splitlines())) <= width + 1


def test_the_unknown_is_a_dash_and_a_sound_capture_is_reported() -> None:
    tape = profiles.imported()
    session = tape.session()
    run = session.runs["r1"]
    run.trust["imported"] = e.TrustReported(run="r1", kind="imported", rows=[profiles.TRUST[0]])
    run.steps = e.StepsMeasured(run="r1", found_by="modules", steps=profiles.steps())
    text = text_of(100, session)
    assert "no doubts after 1 check" in text
    assert "idle and busy are of" not in text
    assert next(line for line in text.splitlines() if "gpu:0" in line and "-" in line)


def test_steps_of_an_older_session_are_derived_from_their_rows() -> None:
    (one,) = device_steps(e.StepsMeasured(run="", found_by="annotation", steps=profiles.steps(3)))
    assert (one.found_by, one.count, one.quartiles_seconds, one.idle_share) == ("annotation", 3, None, None)


def test_the_last_execution_is_no_measure_of_the_others() -> None:
    rows = profiles.steps(5)
    rows[-1] = replace(rows[-1], seconds=1e-6, to_next=False)
    (one,) = device_steps(e.StepsMeasured(run="", found_by="modules", steps=rows))
    assert (one.count, one.complete, one.minimum_seconds) == (5, 4, pytest.approx(2e-3))


def test_a_profile_is_opened_at_its_overview_and_other_sessions_are_not() -> None:
    assert place_of(profiles.imported().session()) == "profile"
    assert place_of(profiles.captured().session()) == "results"


def written(path: Path) -> Path:
    tape = profiles.imported()
    writer = LogWriter(tape.header, path)
    for event in tape.events:
        writer.append(event)
    writer.close()
    return path


async def at_the_overview(stage: Stage, pilot: Any, path: Path) -> OverviewList:
    stage.app.open_session(path)
    await until(pilot, lambda: isinstance(stage.app.screen, ProfileScreen) and stage.app.screen.whole)
    await until(pilot, lambda: "dot.1" in screen_text(stage.app), "the overview is read")
    return stage.app.screen.query_one(OverviewList)


async def test_a_profile_opens_at_its_overview_and_a_measured_run_has_none(tmp_path: Path) -> None:
    path = written(tmp_path / "profile.jaxprof")
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        lines = await at_the_overview(stage, pilot, path)
        assert stage.app.current_mode == "profile"
        assert stage.app.focused is lines
        await pilot.press("m", "m")
        await until(pilot, lambda: "an estimate from the schedule" in screen_text(stage.app), "the program's memory")
        assert stage.app.screen.query_one(MemoryPane).display
        await pilot.press("m", "T")
        while lines.target is None:
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.current_mode == "hlo")
        assert stage.app.run_in_view == "r2"
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "profile")

        stage.app.set_session(profiles.captured().session(), None)
        stage.app.show_profile("r2", "overview")
        await until(pilot, lambda: isinstance(stage.app.screen, ProfileScreen) and stage.app.screen.whole)
        await pilot.press("m", "T", "escape")  # the menu has no such letter, and stays
        await pilot.pause()
        assert "Overview" not in screen_text(stage.app).splitlines()[1]
        assert not stage.app.screen.query_one(OverviewList).display


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    session = profiles.imported(hostile=HOSTILE).session()
    assert "\x1b" not in text_of(100, session)
