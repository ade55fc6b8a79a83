"""One table as text, Markdown, HTML, CSV and JSON. A session in a notebook: a small piece of HTML that does no harm."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folding import fold
from jaxprof import events as e
from jaxprof.facts import Fact, at, column, json_schema
from jaxprof.facts.units import BYTES, COUNT, INDEX, LIST, OBJECT, SECONDS, TEXT, plain
from jaxprof.report.html import to_html
from jaxprof.report.lanes import DEVICES, LANES
from jaxprof.report.renderers import (
    csv_lines,
    html_table,
    markdown_lines,
    records,
    safe_cell,
    text_lines,
    to_csv_text,
    wrap,
)
from jaxprof.report.table import Table, remembering
from jaxprof.session import Session
from jaxprof.text import columns
from report import sessions


@dataclass(frozen=True, slots=True)
class Source:
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    median_seconds: float | None = None
    bytes: int | None = None
    source: Source | None = None
    devices: tuple[str, ...] = ()


COLUMNS: tuple[Fact[Kernel], ...] = (
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
ROWS = [Kernel("dot", 1.5e-3, 2048, Source("a.py", 7), ("cpu:0", "cpu:1")), Kernel("a|b<i>", None)]
TABLE = Table(COLUMNS, ROWS, "kernels <all>", ("and a note",))


def test_text_has_titles_and_quantities() -> None:
    assert list(text_lines(TABLE)) == [
        "kernels <all>",
        "  kernel   median  from",
        "  dot     1.50 ms  a.py:7",
        "  a|b<i>        -  -",
        "  and a note",
    ]


def test_markdown_shows_every_character_and_aligns_quantities() -> None:
    assert list(markdown_lines(TABLE)) == [
        r"kernels \<all\>",
        "",
        "| kernel | median | from |",
        "|---|--:|---|",
        "| dot | 1.50 ms | a.py:7 |",
        r"| a\|b\<i\> | - | - |",
        "",
        "and a note",
    ]


def test_html_escapes_and_says_how_much_is_left_out() -> None:
    text = html_table(replace(TABLE, rows=[*ROWS, *[Kernel("more")] * 20]))
    assert "<b>kernels &lt;all&gt;</b>" in text
    assert "a|b&lt;i&gt;" in text
    assert '<td style="text-align:right">1.50 ms</td>' in text
    assert "and 10 more" in text
    assert text.endswith("<p><b></b>and a note</p>")


def test_csv_has_keys_and_numbers_as_they_are() -> None:
    assert to_csv_text(TABLE).splitlines() == [
        "name,median_seconds,bytes,source_file,source_line,devices",
        'dot,0.0015,2048,a.py,7,"[""cpu:0"", ""cpu:1""]"',
        "a|b<i>,,,,,[]",
    ]


def test_json_has_the_same_numbers_and_objects_inside() -> None:
    assert list(records(TABLE)) == [
        {"name": "dot", "median_seconds": 1.5e-3, "bytes": 2048, "source": {"file": "a.py", "line": 7},
         "devices": ["cpu:0", "cpu:1"]},
        {"name": "a|b<i>", "median_seconds": None, "source": None, "devices": []},
    ]  # fmt: skip


def test_the_schema_has_what_json_has() -> None:
    schema = json_schema(COLUMNS)
    assert schema["required"] == ["name", "median_seconds", "source", "devices"]
    assert schema["properties"]["bytes"] == {"type": ["integer", "null"], "description": "Its traffic"}
    assert schema["properties"]["source"]["properties"]["line"]["type"] == ["integer", "null"]
    assert schema["properties"]["devices"]["items"] == {"type": ["string", "null"]}


@pytest.mark.parametrize(("cell", "text"), [(None, "-"), ("", "-"), (True, "yes"), (False, "no"), (0, "0"), ("a", "a")])
def test_unknown_is_a_dash_and_zero_is_not(cell: object, text: str) -> None:
    assert plain(cell) == text


def names(*cells: str) -> Table[str]:
    """Two columns of text, of which the first gives way."""
    first = column("name", lambda cell: cell, gives_way=True)
    return Table((first, column("value", lambda _: "v" * 10)), cells)


class TestText:
    def test_one_column_gives_way_until_a_line_fits(self) -> None:
        lines = list(text_lines(names("n" * 60), width=40))
        assert max(map(columns, lines)) == 40
        assert "…" in lines[1]
        assert "v" * 10 in lines[1]

    def test_wrapping_never_breaks_a_word(self) -> None:
        assert wrap("a " + "b" * 30, width=10, indent="  ", first="- ") == ["- a", "  " + "b" * 30]


def test_a_number_that_comes_again_is_shown_as_at_first_and_other_cells_are_not_kept() -> None:
    asked: list[object] = []

    def show(cell: object) -> str:
        asked.append(cell)
        return f"<{cell}>"

    shown = remembering(show)
    assert [shown(cell) for cell in (1.5, True, 1.5, None, True, 2, 2)] == [
        "<1.5>", "<True>", "<1.5>", "<None>", "<True>", "<2>", "<2>"
    ]  # fmt: skip
    assert asked == [1.5, True, None, True, 2]


def read_back(cell: object) -> str:
    ((heading,), (read,)) = csv.reader(
        io.StringIO(to_csv_text(Table([Fact("run", TEXT, "", lambda row: row)], [cell])), newline="")
    )
    assert heading == "run"
    return read


@pytest.mark.parametrize(
    "text",
    ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＋1", "－1", "＠SUM(1)"],
)
def test_no_text_begins_a_formula(text: str) -> None:
    assert read_back(text).startswith("'")


@given(st.text())
def test_a_text_is_one_cell_without_control_characters(text: str) -> None:
    if text:
        read = read_back(text)
        assert not read.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert all(character.isprintable() or ord(character) > 0x9F or character == "\n" for character in read)


@pytest.mark.parametrize(
    ("value", "written"),
    [(-1.5, "-1.5"), (-3, "-3"), (1e-9, "1e-09"), (0, "0"), (None, ""), (True, "true"), (False, "false")],
)
def test_numbers_stay_numbers_and_unknown_is_empty(value: object, written: str) -> None:
    assert str(safe_cell(value)) == written


def test_a_list_is_json_so_that_names_with_spaces_stay_apart() -> None:
    assert read_back(["void gemm<1, 2>", "copy"]) == '["void gemm<1, 2>", "copy"]'


def test_the_rows_of_an_iterator_are_written_as_they_come() -> None:
    taken = []

    def rows() -> object:
        for number in (1, 2):
            taken.append(number)
            yield number

    lines = csv_lines(Table([Fact("n", COUNT, "", lambda row: row)], rows()))  # type: ignore[arg-type, var-annotated]
    assert (next(lines), next(lines), taken) == ("n\n", "1\n", [1])


def program(functions: int = 1, name: str = "train_step") -> Session:
    run = {"run": "r1"}
    return fold(
        sessions.HEADER,
        [
            e.RunPlanned(spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host"), **run),
            e.WorkerStarted(pid=1, python="p", monotonic_seconds=1.0, **run),
            e.ProgramStarted(argv=["train.py"], how="script", monotonic_seconds=1.0, **run),
            *(
                e.Compiled(
                    function=f"{name}{number or ''}",
                    began_seconds=2.0,
                    compile_seconds=1.5,
                    called_from=e.SourceLocation("train.py", 88, "main"),
                    reason_code="shape",
                    reason="argument x: f32[4] → f32[3]",
                    **run,
                )
                for number in range(functions)
            ),
            e.ProgramSampled(
                began_seconds=1.0, samples=90, states={"compile": 1.5, "host_busy": 7.5}, monotonic_seconds=10.0, **run
            ),
            e.ProgramEnded(exit_code=0, wall_seconds=9.0, monotonic_seconds=10.0, **run),
            e.RunFinished(status="ok", monotonic_seconds=10.0, **run),
        ],
    )


def test_it_stays_small() -> None:
    found = to_html(program(functions=500))
    assert "and 488 more" in found
    assert len(found) < 20_000
    assert len(to_html(program(name="f" * 100_000))) < 20_000


@pytest.mark.parametrize("facts", [LANES, DEVICES])
def test_no_two_columns_of_lanes_have_one_title(facts: tuple[Fact[Any], ...]) -> None:
    titles = [fact.title for fact in facts if fact.title is not None]
    assert len(titles) == len(set(titles))
