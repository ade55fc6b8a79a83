"""How the measuring of a comparison ends: what is known of it then, where it is, and with which exit code."""

from __future__ import annotations

import signal
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
        (None, (), True, ExitCode.OK, True),
        (None, ("B",), True, ExitCode.FAILED, True),
        (None, (), False, ExitCode.FAILED, True),
        (signal.SIGINT, (), True, ExitCode.INTERRUPTED, True),
        (signal.SIGINT, ("B",), False, ExitCode.INTERRUPTED, True),
        (signal.SIGTERM, (), True, 128 + signal.SIGTERM, False),
    ],
    ids=["well", "a side failed", "not kept", "ctrl+c", "ctrl+c and not kept", "SIGTERM"],
)
def test_how_the_measuring_ends(monkeypatch, capsys, stopped_by, failed, kept, code, has_result):
    class Runs:
        exit_code = run_headless.HeadlessRuns.exit_code

        def __init__(self, writer: Any, interpreter: Any, progress: Any) -> None:
            assert interpreter == "the interpreter of A"
            self.scheduler = SimpleNamespace(session="the session", max_silence_seconds=None)
            self.stopped_by = stopped_by

        def work(self, runs: Any) -> None:
            assert (runs, self.scheduler.max_silence_seconds) == (planned, 7.0)

    result: Any = SimpleNamespace(failed=failed)
    planned = [SimpleNamespace(comparison=SimpleNamespace(notes=["the environments differ"]))]
    monkeypatch.setattr(run_headless, "HeadlessRuns", Runs)
    monkeypatch.setattr(ab, "ab_results", lambda session: [result])
    monkeypatch.setattr(cli_sides, "report_location", lambda writer, note: kept)
    of_a: Any = "the interpreter of A"
    writer: Any = SimpleNamespace(path=Path("s.jaxprof"))
    found = cli_sides.measure_planned(planned, of_a, writer, 7.0)  # type: ignore[arg-type]
    assert (found.exit_code, found.path) == (code, "s.jaxprof" if kept else None)
    assert (found.result is result) == has_result
    assert "note: the environments differ" in capsys.readouterr().err
