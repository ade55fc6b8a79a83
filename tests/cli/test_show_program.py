from __future__ import annotations

from pathlib import Path

import pytest

import program_events
from cli.calling import Caller
from folding import written
from jaxprof.cli.exit_codes import ExitCode


@pytest.mark.parametrize("view", ["compiles", "findings", "transfers", "timeline"])
def test_views_of_a_program(call: Caller, tmp_path: Path, view: str) -> None:
    path = tmp_path / "program.jaxprof"
    written(
        path,
        program_events.program(*program_events.shaped(4), program_events.copies("host_to_device", 5)),
        program_events.HEADER,
    )
    for form, sign in (("text", "train.py"), ("json", '"run":"r1"'), ("csv", "run,")):
        said = call("show", path, f"--{view}", "--format", form)
        assert (said.code, sign in said.out) == (0, True)


def test_a_session_without_a_program_has_no_compilations(call: Caller, kept: Path) -> None:
    assert call("show", kept, "--compiles").out == "This session has no program.\n"
    assert call("show", kept, "--findings", "--format", "markdown").code == ExitCode.USAGE
