"""The documented questions, asked of a session that was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.query.asking import AskedSession
from query.conftest import ask
from query.test_tables import QUESTIONS
from tapes import unpacked

OF_PROGRAMS = ("processes", "compiles", "lines", "states", "transfers")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("engines", "measures", tmp_path_factory.mktemp("measured"))


@pytest.mark.parametrize("sql", QUESTIONS, ids=lambda sql: " ".join(sql.split())[:50])
def test_a_documented_question_is_answered_of_a_real_session(measured: Path, sql: str) -> None:
    answer = ask(sql, [AskedSession("selu", measured)])
    rows, _ = answer.first(None)
    about_program = any(f"FROM {name}" in sql for name in OF_PROGRAMS)
    # Samples may all be near their median, and a CPU without measured ceilings has no least times and no streams.
    may_be_empty = about_program or "times_the_" in sql or "gap_seconds" in sql
    assert rows or may_be_empty


def test_figures_of_a_real_session_agree_with_each_other(measured: Path) -> None:
    sql = """
        SELECT runs.median_seconds, runs.samples, count(*), median(samples.seconds)
        FROM runs JOIN samples USING (session, run)
        WHERE series = 'run' AND status = 'ok' GROUP BY ALL
    """
    rows, _ = ask(sql, [AskedSession("selu", measured)]).first(None)
    assert len(rows) == 2
    for median, count, counted, of_samples in rows:
        assert counted == count
        assert of_samples == pytest.approx(median, rel=0.2)
