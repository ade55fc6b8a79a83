"""A profile that is opened begins with what it has: doubts, idle time, steps, kernels, programs, memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.content import Content

from folding import written
from jaxprof import events as e
from jaxprof.analysis.profile import ProfileOverview, device_steps, overview
from jaxprof.session import Session
from jaxprof.tui.profile.overview import OverviewList, overview_facts
from jaxprof.tui.profile.screen import MemoryPane, ProfileScreen
from jaxprof.tui.profiler import place_of
from tui import profiles
from tui.fakes import HOSTILE, walking


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


async def test_a_profile_opens_at_its_overview_and_a_measured_run_has_none(tmp_path: Path) -> None:
    tape = profiles.imported()
    written(tmp_path / "profile.jaxprof", tape.events, tape.header)
    async with walking() as walk:
        walk.app.open_session(tmp_path / "profile.jaxprof")
        await walk.on(ProfileScreen)
        await walk.shows("dot.1")
        lines = walk.find(OverviewList)
        assert (walk.app.current_mode, walk.app.focused) == ("profile", lines)
        await walk.press("m m", "an estimate from the schedule")
        assert walk.find(MemoryPane).display
        await walk.press("m T")
        while lines.target is None:
            await walk.press("down")
        await walk.press("enter")
        await walk.mode("hlo")
        assert walk.app.run_in_view == "r2"
        await walk.press("escape")
        await walk.mode("profile")

        walk.app.set_session(profiles.captured().session(), None)
        walk.app.show_profile("r2", "overview")
        await walk.on(ProfileScreen)
        await walk.press("m T escape")  # the menu has no such letter, and stays
        assert "Overview" not in walk.text.splitlines()[1]
        assert not walk.find(OverviewList).display


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    session = profiles.imported(hostile=HOSTILE).session()
    assert "\x1b" not in text_of(100, session)
