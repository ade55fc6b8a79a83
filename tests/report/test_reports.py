"""An answer in JSON is one line that JSON reads, whatever pieces it is written in, and says what it leaves out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

import program_events
from folding import fold
from jaxprof import events as e
from jaxprof.report.envelope import ROWS, answer_pieces, json_pieces
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


@pytest.mark.parametrize(
    ("deserted", "statuses"), [(True, ["ok", "interrupted", "cancelled"]), (False, ["ok", "running", "queued"])]
)
def test_a_session_that_is_being_written_is_not_called_cut_off(deserted, statuses):
    session = sessions.torn()
    assert [run.end(deserted=deserted).status for run in session.runs.values()] == statuses
    assert ("being written" in to_text(session, live=not deserted)) is not deserted


class TestText:
    @pytest.mark.parametrize(
        "make", [sessions.whole, sessions.torn, sessions.swept, program_events.training, program_events.without_jax]
    )
    def test_it_fits_eighty_columns(self, make):
        assert max(columns(line) for line in to_text(make()).splitlines()) <= WIDTH


def test_markdown_cells_cannot_break_the_table():
    rows = [line for line in to_markdown(with_names("a|b")).splitlines() if line.startswith("|")]
    assert all(row.replace("\\|", "").count("|") == 10 for row in rows)


def test_csv_is_read_back_and_starts_no_formula():
    (row,) = csv.DictReader(io.StringIO(to_csv(with_names("=1+1"))))
    assert row["workload"] == "'=1+1"
    assert float(row["median_seconds"]) == pytest.approx(1e-3)
    assert row["compile_seconds"] == ""


def _streamed(data: Any) -> Any:
    """The same with iterators in place of lists of objects."""
    if isinstance(data, dict):
        return {key: _streamed(value) for key, value in data.items()}
    if isinstance(data, list) and any(isinstance(one, dict) for one in data):
        return iter([_streamed(one) for one in data])
    return data


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": 1, "b": None, "c": "é\n\"'", "d": {}, "e": []},
        {"a": [{"b": [{"c": 1}, {}]}, {"b": []}], "z": [["x"], ["y"]]},
        [{"a": {"b": {"c": [{"d": True}]}}}, {"a": 1.5}],
        {"list": ["one", "two"], "empty": [{}]},
    ],
)
def test_pieces_add_up_to_what_json_writes(data):
    expected = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    assert "".join(json_pieces(data)) == expected
    assert "".join(json_pieces(_streamed(data))) == expected


def test_an_iterator_is_asked_for_few_items_at_a_time_and_an_empty_one_is_a_list():
    asked = []

    def items() -> Iterator[dict[str, int]]:
        for number in range(1000):
            asked.append(number)
            yield {"n": number}

    pieces = json_pieces({"items": items(), "none": iter(())})
    text = ""
    while '"n":0' not in text:
        text += next(pieces)
    assert len(asked) < 100
    assert json.loads(text + "".join(pieces)) == {"items": [{"n": number} for number in range(1000)], "none": []}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_unknown(number):
    text = "".join(json_pieces({"a": [{"b": number}, [1.5, number]]}))
    assert json.loads(text) == {"a": [{"b": None}, [1.5, None]]}


def answer(kind: str, data: Any, limit: int | None = None) -> Any:
    text = "".join(answer_pieces(kind, data, ["jaxprof open last"], limit))
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    return json.loads(text)


def test_the_envelope():
    assert answer("any", {"a": 1}) == {
        "schema": "3.0",
        "kind": "any",
        "data": {"a": 1},
        "truncated": {},
        "next": ["jaxprof open last"],
    }


@pytest.mark.parametrize("make", [list, iter])
def test_rows_are_bounded_and_what_is_left_out_is_counted(make):
    rows = [{"n": n} for n in range(ROWS + 7)]
    said = answer("any", {"rows": make(rows), "few": make(rows[:2])})
    assert said["data"] == {"rows": rows[:ROWS], "few": rows[:2]}
    assert said["truncated"] == {"rows": 7}
    assert answer("any", {"rows": make(rows)}, limit=3)["data"] == {"rows": rows[:3]}
    assert answer("any", {"rows": make(rows)}, limit=3)["truncated"] == {"rows": ROWS + 4}
    whole = answer("any", {"rows": make(rows)}, limit=0)
    assert (whole["data"], whole["truncated"]) == ({"rows": rows}, {})


def test_rows_inside_rows_are_counted_together_and_an_interval_stays_whole():
    runs = [{"parts": [{"n": 1}, {"n": 2}, {"n": 3}], "ci95": [1.0, 2.0]}, {"parts": [{"n": 4}, {"n": 5}]}]
    said = answer("any", {"runs": runs}, limit=2)
    assert said["truncated"] == {"runs.parts": 1}
    assert said["data"]["runs"][0]["ci95"] == [1.0, 2.0]
    assert answer("any", {"runs": runs}, limit=1)["data"]["runs"][0]["ci95"] == [1.0, 2.0]


def test_raw_samples_and_trees_of_passes_are_there_only_on_request():
    tree = {"name": "compile", "children": [{"name": "a", "children": [{"name": "b", "children": []}]}]}
    run = {"id": "r1", "samples_seconds": [0.1] * 931, "compile_passes": tree}
    said = answer("session", {"runs": [run, {"id": "r2", "samples_seconds": []}]})
    assert said["data"] == {"runs": [{"id": "r1"}, {"id": "r2", "samples_seconds": []}]}
    assert said["truncated"] == {"runs.samples_seconds": 931, "runs.compile_passes": 3}
    assert answer("session", {"runs": [run]}, limit=1)["data"] == {"runs": [{"id": "r1"}]}
    assert answer("session", {"runs": [run]}, limit=0)["data"] == {"runs": [run]}


def test_of_the_checks_of_a_capture_the_doubtful_ones_are_kept():
    checks = [{"code": f"c{n}", "verdict": verdict} for n, verdict in enumerate(["good", "doubt", "good", "bad"])]
    said = answer("session", {"runs": [{"trust": checks}]})
    assert [check["code"] for check in said["data"]["runs"][0]["trust"]] == ["c1", "c3"]
    assert said["truncated"] == {"runs.trust": 2}
