"""Programs run twice: by Python alone, and under `jaxprof script --plain`; what each said, and the session."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from jaxprof.session import Session, load
from waiting import SLOWER

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


def environment(**more):
    """Ours without what pytest brings; `jaxprof` is found by the module search of the client alone."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONUNBUFFERED")}
    # jax sets one of these where it is imported: the program would not be started early, as it is for users.
    return {name: value for name, value in kept.items() if not name.startswith("TPU_")} | more


CLIENT = f"import sys; sys.path[0] = {str(SOURCE)!r}; from jaxprof.__main__ import main; main()"
"""Starts the client without a PYTHONPATH, which the program would inherit, and without the current folder, which `-c`
puts on the path."""


def client(*words):
    return [sys.executable, "-c", CLIENT, "script", "--plain", "--out", OUT, "--force", *words]


def run_alone(folder, *words, stdin="", **variables):
    return _run([sys.executable, *words], folder, stdin, variables, ours=False)


def run_recorded(folder, *words, stdin="", options=(), **variables):
    return _run(client(*options, *words), folder, stdin, variables, ours=True)


def _run(command, folder, stdin, variables, *, ours):
    done = subprocess.run(
        command,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=150 * SLOWER,
    )
    lines = done.stderr.splitlines(keepends=True)
    notes = [line for line in lines if ours and line.startswith("jaxprof: ")]
    return Said(done.returncode, done.stdout, "".join(line for line in lines if line not in notes), "".join(notes))


def session_in(folder):
    return load(folder / OUT, Session)


def program_in(folder):
    """The one program of the session; its events are there, and its log was closed in good order."""
    session = session_in(folder)
    assert session.complete
    (run,) = [run for run in session.runs.values() if run.plan.how == "program"]
    assert run.program.started is not None
    assert run.program.ended is not None
    assert run.closed is not None
    return run


def notes_of(run):
    return [note.code for note in run.program.ended.notes]
