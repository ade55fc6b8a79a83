"""The tables of the documents are those of the facts. `UPDATE_NET=1 pytest tests/facts` writes them again."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from jaxprof.facts import document
from jaxprof.facts.processes import FIGURES, PROCESSES

DOCS = Path(__file__).parents[2] / "docs"
JSON = {"The processes of a job": FIGURES}
"""By heading in json.md, the facts that its table lists."""


def held(page: str, heading: str, table: str) -> None:
    """Fails if the table under the heading is another one."""
    path = DOCS / page
    text = path.read_text()
    found = re.compile(r"^\| \w+ \| type \|.*?(?=\n\n|\n\Z)", re.DOTALL | re.MULTILINE).search(
        text, text.index(f"\n### {heading}\n")
    )
    assert found is not None
    if os.environ.get("UPDATE_NET"):
        path.write_text(text[: found.start()] + table + text[found.end() :])
    assert path.read_text()[found.start() :].startswith(f"{table}\n")


@pytest.mark.parametrize("heading", JSON)
def test_a_table_of_the_json_is_that_of_the_facts(heading: str) -> None:
    held("json.md", heading, document(JSON[heading], "json"))


def test_the_tables_of_roll_ups_are_documented_as_they_are() -> None:
    pytest.importorskip("pyarrow")
    from jaxprof.rollup.schema import TABLES

    for name, table in TABLES.items():
        assert f"\n### `{name}`\n\n{table.meaning}.\n" in (DOCS / "scale.md").read_text()
        held("scale.md", f"`{name}`", document(table.facts, "sql"))


def test_every_fact_has_a_meaning_of_its_own() -> None:
    keys = [fact.key for fact in PROCESSES.facts]
    assert len(set(keys)) == len(keys)
    assert [fact.key for fact in PROCESSES.facts if len(fact.meaning) < 3 or fact.meaning.endswith(".")] == []
