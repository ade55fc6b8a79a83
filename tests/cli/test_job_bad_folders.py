"""Folders of jobs as they should not be: what is there is shown, what is missing is said, and nothing raises."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import Caller
from job_folders import job, loop, process


def torn(folder: Path) -> str:
    """Cut in the middle of a line, as a copy that was broken off leaves it."""
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    return "interrupted"


def header_alone(folder: Path) -> str:
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    return "it has recorded no program"


def empty_file(folder: Path) -> str:
    (folder / "process-00001.jaxprof").write_bytes(b"")
    return "process-00001.jaxprof is empty"


def a_folder_in_its_place(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    (folder / "process-00001.jaxprof").mkdir()
    return "process-00001.jaxprof is a directory"


def a_link_to_nothing(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    (folder / "process-00001.jaxprof").symlink_to(folder / "gone")
    return "process-00001.jaxprof"


def a_named_pipe(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    os.mkfifo(folder / "process-00001.jaxprof")
    return "process-00001.jaxprof"


def missing(folder: Path) -> str:
    (folder / "process-00001.jaxprof").unlink()
    return "1 of 3 processes have no session here: 1"


def copied_to_another_index(folder: Path) -> str:
    (folder / "process-00003.jaxprof").write_bytes((folder / "process-00001.jaxprof").read_bytes())
    return "the session of process 3 is a copy of that of process 1, and is left out"


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


def another_name_for_the_same(folder: Path) -> str:
    (folder / "process-1.jaxprof").write_bytes((folder / "process-00001.jaxprof").read_bytes())
    return "process 1 was started again"


def hundreds_of_names(folder: Path) -> str:
    for number in range(500):
        (folder / f"process-{number:05}.jaxprof.partial").touch()
        (folder / f"note-{number}.txt").touch()
    return "process 1 on node1 is late"


BAD = (
    torn, copied_to_another_index, a_clock_that_goes_back, a_damaged_line, header_alone, empty_file,
    a_folder_in_its_place, a_link_to_nothing, a_named_pipe, missing, a_huge_number,
    another_name_for_the_same, hundreds_of_names,
)  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_what_is_there_is_shown_and_what_is_missing_is_said(
    call: Caller, tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop())
    words = spoil(folder)
    said = call("show", folder)
    assert said.code == 0, said.err
    assert words in " ".join(said.out.split()), said.out
    assert "node0" in said.out
    assert "node2" in said.out
    assert call("explain", folder).code == 0
    assert call("explain", folder, "--format", "json").code == 0
    asked = call("query", folder, "SELECT count(DISTINCT process) AS there FROM processes", "--format", "json")
    assert asked.code == 0, asked.err
    assert asked.data["rows"][0]["there"] >= 2
    assert spoil is not missing or f"note: {words}" in asked.err
    whole = job(tmp_path / "whole.jaxprof.d", loop(), loop(), loop())
    assert call("compare", folder, whole).code == 0
