"""Each format against a file that was looked at. `UPDATE_GOLDEN=1 pytest tests/report` writes them again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxprof.report.csv import to_csv
from jaxprof.report.json import to_dict
from jaxprof.report.markdown import to_markdown
from jaxprof.report.text import WIDTH, to_text
from jaxprof.safe_text import columns
from jaxprof.session import Session
from report import sessions

GOLDEN = Path(__file__).parent / "golden"


def as_json(session: Session) -> str:
    return json.dumps(to_dict(session), indent=2, ensure_ascii=False, allow_nan=False)


CASES: dict[str, tuple[Callable[[], Session], Callable[[Session], str]]] = {
    "whole.txt": (sessions.whole, to_text),
    "torn.txt": (sessions.torn, to_text),
    "swept.txt": (sessions.swept, to_text),
    "whole.json": (sessions.whole, as_json),
    "torn.json": (sessions.torn, as_json),
    "whole.csv": (sessions.whole, to_csv),
    "whole.md": (sessions.whole, to_markdown),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    make, render = CASES[name]
    text = render(make()).rstrip("\n") + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


@pytest.mark.parametrize("make", [sessions.whole, sessions.torn, sessions.swept])
def test_text_fits_eighty_columns(make: Callable[[], Session]) -> None:
    assert max(columns(line) for line in to_text(make()).splitlines()) <= WIDTH
