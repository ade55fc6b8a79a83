from __future__ import annotations

from pathlib import Path

import pytest

import program_events
from cli.calling import Caller
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.session.log import LogWriter


@pytest.mark.parametrize("view", ["compiles", "findings", "transfers", "timeline"])
@pytest.mark.parametrize(("form", "sign"), [("text", "train.py"), ("json", '"run":"r1"'), ("csv", "run,")])
def test_views_of_a_program(call: Caller, tmp_path: Path, view: str, form: str, sign: str) -> None:
    path = tmp_path / "program.jaxprof"
    writer = LogWriter(program_events.HEADER, path)
    for event in program_events.program(*program_events.shaped(4), program_events.copies("host_to_device", 5)):
        writer.append(event)
    writer.close()
    said = call("show", path, f"--{view}", "--format", form)
    assert said.code == 0
    assert sign in said.out


def test_a_session_without_a_program_has_no_compilations(call: Caller, kept: Path) -> None:
    assert call("show", kept, "--compiles").out == "This session has no program.\n"
    assert call("show", kept, "--findings", "--format", "markdown").code == ExitCode.USAGE
