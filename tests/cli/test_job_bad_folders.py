"""Folders of jobs as they should not be: what is there is shown, what is missing is said, and nothing raises."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import Caller
from job_folders import job, loop, process
from query.conftest import InThisProcess


def a_named_pipe(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    os.mkfifo(folder / "process-00001.jaxprof")
    return "process-00001.jaxprof"


def a_clock_that_goes_back(folder: Path) -> str:
    path = folder / "process-00001.jaxprof"
    header, *lines = path.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events[len(events) // 2 :]:
        if isinstance(event.get("began_seconds"), float):
            event["began_seconds"] -= 500.0
    path.write_text("\n".join([header, *map(json.dumps, events), ""]))
    return "process 1: its clock went back"


def a_damaged_line(folder: Path) -> str:
    path = folder / "process-00001.jaxprof"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-4] = b"\xff{ torn\n"
    path.write_bytes(b"".join(lines))
    return "process 1: damaged lines were left out"


def a_huge_number(folder: Path) -> str:
    process(folder, 999_999_999, 3, *loop())
    return "processes have no session here"


def a_torn_file(folder: Path) -> str:
    """Cut in the middle of a line, as a copy that was broken off leaves it."""
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    return "interrupted"


def a_header_alone(folder: Path) -> str:
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    return "it has recorded no program"


def a_folder_in_its_place(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    (folder / "process-00001.jaxprof").mkdir()
    return "process-00001.jaxprof is a directory"


def a_copy_under_another_number(folder: Path) -> str:
    (folder / "process-00003.jaxprof").write_bytes((folder / "process-00001.jaxprof").read_bytes())
    return "the session of process 3 is a copy of that of process 1, and is left out"


def a_missing_file(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    return "1 of 3 processes have no session here: 1"


BAD = (
    a_torn_file, a_header_alone, a_folder_in_its_place, a_copy_under_another_number, a_missing_file, a_named_pipe,
    a_clock_that_goes_back, a_damaged_line, a_huge_number,
)  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_what_is_there_is_shown_and_what_is_missing_is_said(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], str]
) -> None:
    monkeypatch.setattr("jaxprof.query.asking.SqlProcess", InThisProcess)
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop())
    words = spoil(folder)
    said = call("show", folder)
    assert said.code == 0, said.err
    assert words in " ".join(said.out.split()), said.out
    assert "node0" in said.out
    assert "node2" in said.out
    assert call("explain", folder, "--format", "json").code == 0
    asked = call("query", folder, "SELECT count(DISTINCT process) AS there FROM processes", "--format", "json")
    assert asked.data["rows"][0]["there"] >= 2, asked.err
    assert call("compare", folder, job(tmp_path / "whole.jaxprof.d", loop(), loop(), loop())).code == 0
