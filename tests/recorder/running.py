"""Programs run twice: by Python alone, and under `jaxprof script --plain`; what each said, and the session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxprof.session import Run, Session
from jaxprof.session.log import load

SOURCE = Path(__file__).parents[2] / "src"
OUT = "s.jaxprof"


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str
    """Without our own lines."""
    notes: str
    """Our own lines."""


def environment(**more: str) -> dict[str, str]:
    """Ours without what pytest brings; `jaxprof` is found by the module search of the client alone."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONUNBUFFERED")}
    # jax sets one of these where it is imported: the program would not be started early, as it is for users.
    return {name: value for name, value in kept.items() if not name.startswith("TPU_")} | more


CLIENT = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from jaxprof.__main__ import main; main()"
"""Starts the client without a PYTHONPATH, which the program would inherit."""


def client(*words: str, force: bool = True) -> list[str]:
    return [sys.executable, "-c", CLIENT, "script", "--plain", "--out", OUT, *(["--force"] if force else []), *words]


def _said(done: subprocess.CompletedProcess[str], *, ours: bool) -> Said:
    lines = done.stderr.splitlines(keepends=True)
    notes = [line for line in lines if ours and line.startswith("jaxprof: ")]
    return Said(done.returncode, done.stdout, "".join(line for line in lines if line not in notes), "".join(notes))


def run_alone(folder: Path, *words: str, stdin: str = "", **variables: str) -> Said:
    return _said(_run([sys.executable, *words], folder, stdin, variables), ours=False)


def run_recorded(
    folder: Path, *words: str, stdin: str = "", options: Sequence[str] = (), force: bool = True, **variables: str
) -> Said:
    return _said(_run(client(*options, *words, force=force), folder, stdin, variables), ours=True)


def _run(command: list[str], folder: Path, stdin: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, text=True, env=environment(**variables), timeout=150
    )


def session_in(folder: Path) -> Session:
    return load(folder / OUT, Session)


def program_in(folder: Path) -> Run:
    """The one program of the session; its events are there, and its log was closed in good order."""
    session = session_in(folder)
    assert session.complete
    (run,) = [run for run in session.runs.values() if run.plan.how == "program"]
    assert run.program is not None
    assert run.program.started is not None
    assert run.program.ended is not None
    assert run.closed is not None
    return run


def notes_of(run: Run) -> list[str]:
    return [note.code for note in run.program.ended.notes]
