"""How the measuring of a comparison ends: what is known of it then, where it is, and with which exit code."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof.analysis import ab
from jaxprof.cli import run_headless
from jaxprof.cli import sides as cli_sides
from jaxprof.cli.output import ExitCode


@pytest.mark.parametrize(
    ("stopped_by", "failed", "kept", "code", "has_result"),
    [
        (None, False, True, ExitCode.OK, True),
        (None, True, True, ExitCode.FAILED, True),
        (None, False, False, ExitCode.FAILED, True),
        (signal.SIGINT, False, True, ExitCode.INTERRUPTED, True),
        (signal.SIGINT, True, False, ExitCode.INTERRUPTED, True),
        (signal.SIGTERM, False, True, 128 + signal.SIGTERM, False),
    ],
    ids=["well", "a side failed", "not kept", "ctrl+c", "ctrl+c and not kept", "SIGTERM"],
)
def test_how_the_measuring_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stopped_by: int | None,
    failed: bool,
    kept: bool,
    code: int,
    has_result: bool,
) -> None:
    result = SimpleNamespace(failed=("B",) if failed else ())
    writer: Any = SimpleNamespace(path=Path("s.jaxprof"))
    worked: list[Any] = []

    class Runs:
        def __init__(self, given: Any, interpreter: Any, progress: Any) -> None:
            assert (given, interpreter) == (writer, "the interpreter of A")
            self.scheduler = SimpleNamespace(session="the session", max_silence_seconds=None)
            self.stopped_by = stopped_by

        def work(self, planned: Any) -> None:
            assert self.scheduler.max_silence_seconds == 7.0
            worked.append(planned)

    def location(given: Any, note: Callable[[str], None]) -> bool:
        return kept

    planned = [SimpleNamespace(comparison=SimpleNamespace(notes=["the environments differ"]))]
    monkeypatch.setattr(run_headless, "HeadlessRuns", Runs)
    monkeypatch.setattr(cli_sides, "plan_comparison", lambda *_: planned)
    monkeypatch.setattr(ab, "ab_results", lambda session: [result])
    monkeypatch.setattr(cli_sides, "report_location", location)
    read: Any = SimpleNamespace(sides=[SimpleNamespace(interpreter="the interpreter of A")], notes=())
    options: Any = SimpleNamespace(max_silence_seconds=7.0)
    found = cli_sides.measure(read, options, lambda: writer)
    assert worked == [planned]
    assert found.exit_code == code
    assert found.path == ("s.jaxprof" if kept else None)
    assert (found.result is result) == has_result
    assert "note: the environments differ" in capsys.readouterr().err
