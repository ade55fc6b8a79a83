"""A timeline from outside is whole, or refused in words: whatever its text holds, and however much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jaxprof.analysis.timeline import read_timeline
from jaxprof.errors import FileRefusedError


def text(**changes: Any) -> str:
    lane = {"device": "gpu:0", "name": "n", "kind": "stream", "labels": [["k", 0]], "label": [0], "start": [0]}
    made = {"version": 1, "started_unix_ns": None, "left_out": 0, "ops": [["m", None, "o"]], "counters": []}
    return json.dumps({**made, "lanes": [{**lane, "duration": [5], **changes}]})


def test_a_whole_one() -> None:
    assert read_timeline(text()).intervals == 1


@pytest.mark.parametrize(
    "damaged",
    ["[" * 100_000, text(steps=[[float("inf"), 1]]), text(start=["x"]), text(label=[7]), text(duration=[1, 2]),
     text().replace('"start": [0]', '"start": [' + "9" * 5000 + "]"), "{}", ""],
    ids=["levels", "infinity", "text", "label", "columns", "digits", "empty", "nothing"],
)  # fmt: skip
def test_a_damaged_one_is_refused_in_words(damaged: str) -> None:
    with pytest.raises(FileRefusedError, match="is damaged"):
        read_timeline(damaged)


def test_one_of_too_many_values_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXPROF_LIMITS", "events=100")
    assert read_timeline(text()).intervals == 1
    with pytest.raises(FileRefusedError, match="more than 100 events") as refused:
        read_timeline(text(counters=[[]] * 200))
    assert "JAXPROF_LIMITS=events=" in refused.value.hint
