"""The documented questions, asked of a session that was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.query.asking import AskedSession
from query.conftest import ask
from tapes import unpacked


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("engines", "measures", tmp_path_factory.mktemp("measured"))


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
