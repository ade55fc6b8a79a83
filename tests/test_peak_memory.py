"""The peak memory of a run is one figure under one name, wherever it is shown; XLA's other figures are not taken for
it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.analysis import result
from jaxprof.analysis.memory import buffers_of, peak_memory
from jaxprof.analysis.run_difference import facts_of
from jaxprof.facts import SessionFile
from jaxprof.query.columnar import arrow_table
from jaxprof.query.tables import TABLES
from jaxprof.report.json import to_dict
from jaxprof.report.page.document import to_page
from jaxprof.report.text import to_text
from jaxprof.report.views import view_json, view_text
from jaxprof.session import Session
from jaxprof.tui.kit.memory import peak_lines
from jaxprof.tui.results.facts import memory_lines
from jaxprof.tui.results.screen import ResultList
from jaxprof.units import bytes_
from report import sessions
from tui.fakes import Stage, screen_text, until

PEAK, XLA, LIVE, ALLOCATOR = 5_000_000, 3_000_000, 4_500_000, 9_000_000


@pytest.fixture(scope="module")
def measured() -> Session:
    """A session in which every figure of memory is another one, as they are for a loop on an accelerator."""
    session = sessions.captured()
    (run,) = (run for run in session.runs.values() if run.buffers is not None)
    assert run.memory is not None
    assert run.buffers is not None
    parts = {"argument": 1_999_992, "output": 2_000_000, "temporary": 1_000_000, "constant": 8}
    run.buffers = replace(run.buffers, peak_bytes=PEAK, parts=parts, live_bytes=[1, LIVE])
    run.memory = replace(
        run.memory,
        argument_bytes=1_999_992,
        output_bytes=2_000_000,
        temporary_bytes=1_000_000,
        peak_bytes=XLA,
        allocator_peak_bytes=ALLOCATOR,
    )
    return session


def named(measured: Session) -> str:
    return next(run.id for run in measured.runs.values() if run.buffers is not None)


def test_every_number_is_the_same(measured: Session, tmp_path: Path) -> None:
    run = measured.runs[named(measured)]
    picture = buffers_of(measured, run.id)
    assert picture is not None
    (in_json,) = (one["memory"] for one in to_dict(measured)["runs"] if one["id"] == run.id)
    (in_view,) = (one["memory"] for one in view_json(measured, "memory")["runs"] if one["run"] == run.id)
    table = arrow_table(TABLES["runs"], SessionFile(tmp_path, measured)).to_pylist()
    (row,) = (row for row in table if row["run"] == run.id)
    found = {
        "analysis": peak_memory(run),
        "Profile": picture.peak_bytes,
        "its parts": sum(part.bytes for part in picture.parts),
        "JSON": in_json["peak_bytes"],
        "show --memory": in_view["peak_bytes"],
        "query": row["peak_bytes"],
        "compare and gate": facts_of(measured, run)["peak"],
    }
    assert found == dict.fromkeys(found, PEAK)
    assert (in_json["xla_peak_bytes"], in_json["allocator_peak_bytes"], in_json["peak_source"]) == (
        XLA,
        ALLOCATOR,
        "buffer assignment",
    )


def test_every_text_says_it_by_its_name_and_nothing_else_goes_by_that_name(measured: Session) -> None:
    run = measured.runs[named(measured)]
    picture = buffers_of(measured, run.id)
    assert picture is not None
    texts = {
        "show": to_text(measured),
        "show --memory": view_text(measured, "memory"),
        "HTML": to_page(measured, "s"),
        "details of a run": "\n".join(line.plain for line in memory_lines(result(measured, run.id), 100)),
        "Profile": "\n".join(line.plain for line in peak_lines(picture, 100)),
    }
    for where, text in texts.items():
        assert "peak memory" in text, where
        assert bytes_(PEAK) in text, where
        assert bytes_(XLA) not in text, f"{where}: XLA's own peak leaves out what loops need"
        for line in text.splitlines():
            assert "allocator peak" in line or bytes_(ALLOCATOR) not in line, where
            assert "live size" in line or bytes_(LIVE) not in line, where


async def test_results_has_it_where_there_is_room(measured: Session) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(200, 60)) as pilot:
        stage.app.set_session(measured, None)
        stage.app.action_go("results")
        await until(pilot, lambda: any(rows.keys for rows in stage.app.screen.query(ResultList)))
        await until(pilot, lambda: "peak memory" in screen_text(stage.app))
        assert bytes_(PEAK) in screen_text(stage.app)


def test_sums_of_which_one_is_missing_are_no_peak() -> None:
    session = sessions.captured()
    (run,) = (run for run in session.runs.values() if run.buffers is not None)
    run.buffers = None
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, alias_bytes=50, temporary_bytes=7)
    assert peak_memory(run) == 117, "a donated argument is not counted twice"
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, peak_bytes=XLA)
    assert peak_memory(run) is None
