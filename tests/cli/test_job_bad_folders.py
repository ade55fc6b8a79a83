"""Folders of jobs as they should not be: what is there is shown, what is missing is said, and nothing raises."""

import json
import os

import pytest

from golden import held_cases
from job_folders import job, loop, process
from query.conftest import InThisProcess


def a_named_pipe(folder):
    (folder / "process-00001.jaxprof").unlink()
    os.mkfifo(folder / "process-00001.jaxprof")


def a_clock_that_goes_back(folder):
    path = folder / "process-00001.jaxprof"
    header, *lines = path.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events[len(events) // 2 :]:
        if isinstance(event.get("began_seconds"), float):
            event["began_seconds"] -= 500.0
    path.write_text("\n".join([header, *map(json.dumps, events), ""]))


def a_damaged_line(folder):
    path = folder / "process-00001.jaxprof"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-4] = b"\xff{ torn\n"
    path.write_bytes(b"".join(lines))


def a_huge_number(folder):
    process(folder, 999_999_999, 3, *loop())


def a_torn_file(folder):
    """Cut in the middle of a line, as a copy that was broken off leaves it."""
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def a_header_alone(folder):
    path = folder / "process-00001.jaxprof"
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")


def a_folder_in_its_place(folder):
    (folder / "process-00001.jaxprof").unlink()
    (folder / "process-00001.jaxprof").mkdir()


def a_copy_under_another_number(folder):
    (folder / "process-00003.jaxprof").write_bytes((folder / "process-00001.jaxprof").read_bytes())


def a_missing_file(folder):
    (folder / "process-00001.jaxprof").unlink()


def an_attempt_before(folder):
    process(folder, 1, 3, *loop())


def nothing_of_ours(folder):
    (folder / "process-00001.jaxprof").write_bytes(b"\x00 nothing of ours")
    (folder / "notes.txt").write_text("not a session")


def most_missing(folder):
    process(folder, 31, 32, *loop())


def another_job(folder):
    process(folder, 3, 4, *loop(), header={"job": "slurm-99.0", "jaxprof": "0.0.9"})


BAD = (
    a_torn_file, a_header_alone, a_folder_in_its_place, a_copy_under_another_number, a_missing_file, a_named_pipe,
    a_clock_that_goes_back, a_damaged_line, a_huge_number, an_attempt_before, nothing_of_ours, most_missing,
    another_job,
)  # fmt: skip


@pytest.mark.process
def test_what_is_there_is_shown_and_what_is_missing_is_said(call, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.query.asking.SqlProcess", InThisProcess)
    whole = job(tmp_path / "whole.jaxprof.d", loop(), loop(), loop())
    cases = {}
    for spoil in BAD:
        folder = job(tmp_path / spoil.__name__ / "run.jaxprof.d", loop(), loop(data=0.3), loop())
        spoil(folder)
        data = call("show", folder, "--format", "json").data
        seen = [f"{each['process']} {each['host']}: {each['status']}" for each in data["processes"]]
        told = "".join(f"  {line}\n" for line in (*seen, *data["notices"]))
        cases[spoil.__name__] = told.replace(str(folder), "FOLDER")
        assert {"node0", "node2"} <= {each["host"] for each in data["processes"]}
        asked = call("query", folder, "SELECT count(DISTINCT process) AS there FROM processes", "--format", "json")
        assert asked.data["rows"][0]["there"] >= 2, asked.err
        for words in (("explain",), ("compare", whole)):
            assert call(*words, folder).code == 0
    held_cases("job_folders.txt", cases)
