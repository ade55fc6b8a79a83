"""The queries of docs/scale.md run."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from rollup.test_grid import numbered, passes
from rollup.test_job import roll_all

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_what_the_page_asks_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    asked = [sql for sql in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "'run.jaxprof.d/" in sql]
    [arrow] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "pyarrow" in code]
    monkeypatch.chdir(tmp_path)
    roll_all(numbered(tmp_path / "run.jaxprof.d", passes(8000), passes(8000, seed=1), passes(8000, seed=2)))
    steps, own = (duckdb.sql(sql).fetchall() for sql in asked)
    assert sorted(process for process, _ in steps) == [0, 1, 2]
    assert {round(seconds, 5) for _, seconds in steps} <= {0.00248, 0.00249, 0.0025, 0.00251, 0.00252}
    assert own[0][:2] == ("node1", 1)
    assert own[0][2] == pytest.approx(0.3, abs=0.01)
    found: dict[str, object] = {}
    exec(compile(arrow, "scale.md", "exec"), found)
    assert found["table"].num_rows == 3 * 2000  # type: ignore[attr-defined]
