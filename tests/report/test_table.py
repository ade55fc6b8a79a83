"""One table as text, CSV and JSON, and a report as Markdown."""

import csv
import io
import json
from dataclasses import dataclass
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events
from golden import held
from jaxprof.base.text import columns
from jaxprof.events import SourceLocation
from jaxprof.facts import Fact, at, column, json_schema, recorder
from jaxprof.facts.units import BYTES, INDEX, LIST, OBJECT, SECONDS, TEXT, plain
from jaxprof.report import PAGE, Table, csv_lines, markdown, safe_cell, text_lines, wrap


@dataclass(frozen=True)
class Kernel:
    name: str
    median_seconds: float | None = None
    bytes: int | None = None
    source: SourceLocation | None = None
    devices: tuple[str, ...] = ()


COLUMNS = (
    Fact("name", TEXT, "Its name", title="kernel"),
    Fact("median_seconds", SECONDS, "Its median", title="median"),
    Fact("bytes", BYTES, "Its traffic", when=at("bytes")),
    Fact("source", OBJECT, "Where it is from", inside=(
        Fact("file", TEXT, "The file"),
        Fact("line", INDEX, "The line"),
    )),
    column("from", lambda kernel: kernel.source and f"{kernel.source.file}:{kernel.source.line}"),
    Fact("devices", LIST, "Where it ran"),
)  # fmt: skip
ROWS = [Kernel("dot", 1.5e-3, 2048, SourceLocation("a.py", 7), ("cpu:0", "cpu:1")), Kernel("a|b<i>", None)]
TABLE = Table(COLUMNS, ROWS, "kernels <all>", ("and a note",))


def test_one_table_in_every_form():
    """Titles and quantities in text, keys and numbers as they are in CSV and JSON."""
    forms = [text_lines(TABLE), "".join(csv_lines(TABLE)).splitlines(), map(json.dumps, map(recorder(COLUMNS), ROWS))]
    held("table.txt", "".join(f"{line}\n" for form in forms for line in form))


@pytest.mark.parametrize(
    ("text", "fence"), [("no tick", "```"), ("a``b", "```"), ("```sh", "````"), ("`````", "``````")]
)
def test_no_report_closes_the_block_of_code_that_holds_it(text, fence):
    assert markdown(text) == f"{fence}text\n{text}\n{fence}"


def test_the_schema_has_what_json_has():
    schema = json_schema(COLUMNS)
    assert schema["required"] == ["name", "median_seconds", "source", "devices"]
    assert schema["properties"]["bytes"] == {"type": ["integer", "null"], "description": "Its traffic"}
    assert schema["properties"]["source"]["properties"]["line"]["type"] == ["integer", "null"]
    assert schema["properties"]["devices"]["items"] == {"type": ["string", "null"]}


@pytest.mark.parametrize(("cell", "text"), [(None, "-"), ("", "-"), (True, "yes"), (False, "no"), (0, "0")])
def test_unknown_is_a_dash_and_zero_is_not(cell, text):
    assert plain(cell) == text


def test_one_column_gives_way():
    first = column("name", lambda cell: cell, gives_way=True)
    lines = list(text_lines(Table((first, column("value", lambda _: "v" * 10)), ["n" * 60]), width=40))
    assert max(map(columns, lines)) == 40
    assert "…" in lines[1]
    assert "v" * 10 in lines[1]
    assert wrap("a " + "b" * 30, first="- ", width=10) == ["- a", "  " + "b" * 30]


def test_equal_values_after_the_first_page_are_shown_as_they_are():
    cells = ["-"] * PAGE + [1, True, 1.0, [1], "1", [1], True, 1]
    shown = [line.strip() for line in text_lines(Table([column("cell", lambda cell: cell)], iter(cells)), indent="")]
    assert shown[-8:] == ["1", "yes", "1.0", "[1]", "1", "[1]", "yes", "1"]


def test_equal_rows_of_a_long_table_are_drawn_once():
    drawn = []
    shown = column("cell", itemgetter(1), lambda cell: drawn.append(cell) or cell, by=itemgetter(0))
    rows = [("a", "1")] * PAGE + [("a", "1"), ("b", "2"), ("c", "é"), ("b", "2"), ("a", "1")]
    assert [line.strip() for line in text_lines(Table([shown], iter(rows)), indent="")][-5:] == [
        "1",
        "2",
        "é",
        "2",
        "1",
    ]
    assert drawn[PAGE:] == ["1", "2", "é"]


def read_back(cell):
    text = "".join(csv_lines(Table([Fact("run", TEXT, "", lambda row: row)], [cell])))
    (_, (read,)) = csv.reader(io.StringIO(text, newline=""))
    return read


@pytest.mark.parametrize(
    "text", ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＋1", "－1", "＠SUM(1)"]
)
def test_no_text_begins_a_formula(text):
    assert read_back(text).startswith("'")


@given(st.text())
def test_a_text_is_one_cell_without_control_characters(text):
    if text:
        read = read_back(text)
        assert not read.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert all(character.isprintable() or ord(character) > 0x9F or character == "\n" for character in read)


@pytest.mark.parametrize(
    ("value", "written"),
    [(-1.5, "-1.5"), (-3, "-3"), (1e-9, "1e-09"), (0, "0"), (None, ""), (True, "true"), (False, "false")],
)
def test_numbers_stay_numbers_and_unknown_is_empty(value, written):
    assert str(safe_cell(value)) == written


def test_in_a_notebook_it_stays_small():
    from jaxprof.api.session import Session

    def shown(*compiles):
        return Session._repr_markdown_(program_events.session(*compiles))

    many = [program_events.compiled(f"step{number}", "shape") for number in range(500)]
    assert "and 490 more functions" in shown(*many)
    assert len(shown(program_events.compiled("f" * 100_000, "shape"))) < 20_000
