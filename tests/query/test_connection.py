"""The one place at which a database is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
SOURCE = Path(__file__).parents[2] / "src"


def test_nothing_writes_a_progress_bar_to_stdout_or_can_be_made_to(tmp_path: Path) -> None:
    from jaxprof.query.connection import connect

    for connection in (connect(), connect(memory_bytes=1 << 30), connect(folder=tmp_path)):
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute("SET enable_progress_bar = true")
    found = [path.name for path in SOURCE.rglob("*.py") if "duckdb.connect(" in path.read_text()]
    assert found == ["connection.py"]


def test_only_the_folder_that_is_given_can_be_read(tmp_path: Path) -> None:
    from jaxprof.query.connection import connect

    (tmp_path / "here").mkdir()
    for name in ("here/x.csv", "y.csv"):
        (tmp_path / name).write_text("a\n1\n")
    connection = connect(folder=tmp_path / "here")
    assert connection.execute(f"SELECT * FROM '{tmp_path}/here/x.csv'").fetchall() == [(1,)]
    for each in (connection, connect()):
        with pytest.raises(duckdb.Error):
            each.execute(f"SELECT * FROM '{tmp_path}/y.csv'")
