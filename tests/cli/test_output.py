"""JSON that is written piece by piece is the JSON that would be written at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jaxprof.cli.output import json_pieces


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
        [],
        {"a": 1, "b": None, "c": "é\n\"'", "d": {}, "e": []},
        {"a": [{"b": [{"c": 1}, {}]}, {"b": []}], "z": [["x"], ["y"]]},
        [{"a": {"b": {"c": [{"d": True}]}}}, {"a": 1.5}],
        {"list": ["one", "two"], "empty": [{}]},
        "text",
        3,
    ],
)
def test_pieces_add_up_to_what_json_writes(data: Any) -> None:
    expected = json.dumps(data, indent=2, ensure_ascii=False)
    assert "".join(json_pieces(data)) == expected
    assert "".join(json_pieces(_streamed(data))) == expected


def test_numbers_stand_on_one_line_at_any_depth() -> None:
    assert "".join(json_pieces({"a": [{"b": [1, 2.5]}]})) == '{\n  "a": [\n    {\n      "b": [1, 2.5]\n    }\n  ]\n}'
    assert "".join(json_pieces({"a": [1, 2]})) == '{\n  "a": [1, 2]\n}'


def test_an_iterator_is_asked_for_one_item_at_a_time_and_an_empty_one_is_a_list() -> None:
    asked = []

    def items() -> Iterator[dict[str, int]]:
        for number in range(3):
            asked.append(number)
            yield {"n": number}

    pieces = json_pieces({"items": items(), "none": iter(())})
    text = ""
    while '"n": 0' not in text:
        text += next(pieces)
    assert asked == [0]
    assert json.loads(text + "".join(pieces)) == {"items": [{"n": 0}, {"n": 1}, {"n": 2}], "none": []}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_unknown(number: float) -> None:
    text = "".join(json_pieces({"a": [{"b": number}, [1.5, number]]}))
    assert json.loads(text) == {"a": [{"b": None}, [1.5, None]]}
