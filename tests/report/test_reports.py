from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest

import program_events
from folding import fold
from jaxprof import events as e
from jaxprof.report.markdown import to_markdown
from jaxprof.report.runs import to_csv
from jaxprof.report.text import WIDTH, to_text
from jaxprof.session import Session
from jaxprof.text import columns
from report import sessions


def with_names(text: str) -> Session:
    """A session whose names, errors and warnings hold `text`."""
    return fold(
        sessions.HEADER,
        [
            sessions.plan("r1", text, "jit", workload=text),
            e.WorkerStarted(run="r1", pid=1, python="p"),
            e.SamplesTaken(run="r1", series="run", seconds=sessions.around(1e-3)),
            e.WarningRaised(run="r1", code="x", message=text, advice=text),
            e.RunFinished(run="r1", status="failed", error=text, advice=text),
        ],
    )


class TestOutcome:
    def test_a_cut_off_session_leaves_no_run_without_a_status_of_the_contract(self) -> None:
        session = sessions.torn()
        found = [run.end(deserted=True).status for run in session.runs.values()]
        assert found == ["ok", "interrupted", "cancelled"]
        assert set(found) <= {*e.STATUSES, "interrupted"}

    def test_a_session_that_is_being_written_is_not_called_cut_off(self) -> None:
        session = sessions.torn()
        found = [run.end(deserted=False) for run in session.runs.values()]
        assert [one.status for one in found] == ["ok", "running", "queued"]
        assert "being written" in to_text(session, live=True)
        assert "interrupted" not in to_text(session, live=True)


class TestText:
    @pytest.mark.parametrize(
        "make", [sessions.whole, sessions.torn, sessions.swept, program_events.training, program_events.without_jax]
    )
    def test_it_fits_eighty_columns(self, make: Callable[[], Session]) -> None:
        assert max(columns(line) for line in to_text(make()).splitlines()) <= WIDTH

    def test_a_group_without_figures_has_no_table_of_them(self) -> None:
        text = to_text(fold(sessions.HEADER, [*sessions.failed_run("r1", "")]))
        assert "median" not in text
        assert "RESOURCE_EXHAUSTED" in text

    @pytest.mark.parametrize("hostile", ["a\x1b[2Jb", "a\nb", "\u202eabc", "[/b] [red]x", "x" * 300])
    def test_outside_text_is_shown_and_not_obeyed(self, hostile: str) -> None:
        for text in (to_text(with_names(hostile)), to_markdown(with_names(hostile))):
            assert "\x1b" not in text
            assert "\u202e" not in text
        assert "[/b]" in to_text(with_names("[/b] [red]x"))


def test_markdown_cells_cannot_break_the_table() -> None:
    rows = [line for line in to_markdown(with_names("a|b")).splitlines() if line.startswith("|")]
    assert all(row.replace("\\|", "").count("|") == 10 for row in rows)


def test_csv_is_read_back_and_starts_no_formula() -> None:
    (row,) = csv.DictReader(io.StringIO(to_csv(with_names("=1+1"))))
    assert row["workload"] == "'=1+1"
    assert float(row["median_seconds"]) == pytest.approx(1e-3)
    assert row["compile_seconds"] == ""
