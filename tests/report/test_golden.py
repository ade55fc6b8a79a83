"""Each format against a file that was looked at. `UPDATE_GOLDEN=1 pytest tests/report` writes them again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import program_events
from jaxprof.report.json import to_dict
from jaxprof.report.markdown import to_markdown
from jaxprof.report.recording.json import program_view_csv
from jaxprof.report.recording.text import program_view_text, summary_lines
from jaxprof.report.runs import to_csv
from jaxprof.report.text import WIDTH, to_text
from jaxprof.report.views import VIEWS, view_csv, view_text
from jaxprof.session import Session
from jaxprof.text import columns
from report import sessions

GOLDEN = Path(__file__).parent / "golden"
LONG_NUMBER = re.compile(r"\b\d+\.\d{12,}(?:e[-+]?\d+)?\b")


def of_any_python(text: str) -> str:
    """Without the last digits of sums: from Python 3.12 on `sum` makes up for what rounding loses."""
    return LONG_NUMBER.sub(lambda found: repr(float(f"{float(found[0]):.12g}")), text)


def as_json(session: Session) -> str:
    return json.dumps(to_dict(session), indent=2, ensure_ascii=False, allow_nan=False)


def summary(session: Session) -> str:
    return "\n".join(summary_lines(session))


CASES: dict[str, tuple[Callable[[], Session], Callable[[Session], str]]] = {
    "whole.txt": (sessions.whole, to_text),
    "torn.txt": (sessions.torn, to_text),
    "swept.txt": (sessions.swept, to_text),
    "whole.json": (sessions.whole, as_json),
    "torn.json": (sessions.torn, as_json),
    "whole.csv": (sessions.whole, to_csv),
    "whole.md": (sessions.whole, to_markdown),
    "program.txt": (program_events.training, to_text),
    "program.json": (program_events.training, as_json),
    "program.csv": (program_events.training, to_csv),
    "program.md": (program_events.training, to_markdown),
    "program_cut_off.txt": (program_events.cut_off, to_text),
    "program_without_jax.txt": (program_events.without_jax, to_text),
    "program_compiles.txt": (program_events.training, partial(program_view_text, view="compiles")),
    "program_compiles.csv": (program_events.training, partial(program_view_csv, view="compiles")),
    "captured.txt": (sessions.captured, to_text),
    "captured.json": (sessions.captured, as_json),
    **{f"captured_{view}.txt": (sessions.captured, partial(view_text, view=view)) for view in VIEWS},
    **{f"captured_{view}.csv": (sessions.captured, partial(view_csv, view=view)) for view in VIEWS},
    "program_summary.txt": (program_events.training, summary),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    make, render = CASES[name]
    text = of_any_python(render(make()).rstrip("\n") + "\n")
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == of_any_python((GOLDEN / name).read_text())


@pytest.mark.parametrize(
    ("said", "kept"), [("0.6800000000000003", "0.68"), ("2.0000000000000004e-05", "2e-05"), ("0.046", "0.046"),
                       ("0.123456789013", "0.123456789013")]
)  # fmt: skip
def test_golden_files_hold_twelve_digits_of_a_number(said: str, kept: str) -> None:
    assert of_any_python(f'"seconds": {said},') == f'"seconds": {kept},'


EIGHTY = [sessions.whole, sessions.torn, sessions.swept, program_events.training, program_events.without_jax]


@pytest.mark.parametrize("make", EIGHTY)
def test_text_fits_eighty_columns(make: Callable[[], Session]) -> None:
    assert max(columns(line) for line in to_text(make()).splitlines()) <= WIDTH
