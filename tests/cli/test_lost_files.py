"""What a program does to the file of its own session, while it is recorded into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import environment
from jaxprof.session import Session
from jaxprof.session.log import load

pytestmark = pytest.mark.process

HARMS = {"cut": "os.truncate(path, 0)", "replaced by another file": "os.unlink(path); open(path, 'w').write('mine')"}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, env=environment())


@pytest.mark.parametrize("harm", HARMS)
def test_a_recorded_program_cannot_lose_its_session(tmp_path: Path, harm: str) -> None:
    wait = "import os, time\npath = 'x.jaxprof'\nwhile not os.path.exists(path) or not os.path.getsize(path): pass\n"
    (tmp_path / "program.py").write_text(wait + HARMS[harm] + "\n")
    ran = run(tmp_path, "-m", "jaxprof", "script", "--plain", "--out", "x.jaxprof", "program.py")
    assert ran.returncode == 0, ran.stderr
    place = tmp_path / ("x-2.jaxprof" if "replaced" in harm else "x.jaxprof")
    assert f"session: {place.name} (x.jaxprof was {harm} while it was written" in ran.stderr
    session = load(place, Session)
    assert session.complete
    assert session.notices == []
    assert session.runs["r1"].closed is not None
