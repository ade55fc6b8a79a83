from __future__ import annotations

from pathlib import Path

import pytest

import job_folders
from cli.calling import Caller
from jaxprof.cli.output import ExitCode


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"HloModule m\n", "jaxprof hlo FILE"),
        (b'{"format":"other"}\n', "neither a session nor a profile"),
        (b"\x00\x01\x02", "neither a session nor a profile"),
        (b'{"format":"jaxprof","session":"x","schema_major":99,"jaxprof":"9.0"}\n', "schema 99"),
    ],
)
def test_other_files_are_refused_with_what_they_are(call: Caller, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.jaxprof"
    path.write_bytes(content)
    said = call("show", path)
    assert said.code == ExitCode.USAGE
    assert words in said.err
    assert said.out == ""


def test_a_count_of_processes_that_nobody_knows_is_null(call: Caller, tmp_path: Path) -> None:
    path = job_folders.process(tmp_path, 2, 0)
    assert call("show", path, "--format", "json").data["session"]["process_count"] is None
    known = job_folders.process(tmp_path, 3, 4)
    assert call("show", known, "--format", "json").data["session"]["process_count"] == 4
