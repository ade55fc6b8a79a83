from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.facts import Fact
from jaxprof.facts.units import COUNT, TEXT
from jaxprof.report.renderers import csv_lines, safe_cell, to_csv_text
from jaxprof.report.table import Table


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
