"""A process beside the others: its parts against their median, what it compiled again against what they did."""

from __future__ import annotations

from pathlib import Path

import job_folders
import program_events
from jaxprof.analysis.jobs.job import ProcessComparison, compare_with_others, job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job


def beside(folder: Path, index: int) -> ProcessComparison | None:
    return compare_with_others(job_figures(read_job(folder, Session)).processes, index)


def test_the_part_that_makes_it_late_comes_first_with_its_line(tmp_path: Path) -> None:
    loops = [job_folders.loop(data=0.40 if index == 1 else 0.02) for index in range(4)]
    found = beside(job_folders.job(tmp_path, *loops), 1)
    first, last = found.parts[0], found.parts[-1]
    assert first.part == "data"
    assert round(first.share, 3) == 0.4
    assert round(first.others_share, 3) == 0.02
    assert first.where.line == 86
    assert 7 < first.more_seconds < 8
    assert last.part == "device"
    assert last.more_seconds < 0


def test_what_it_compiled_alone_is_counted_against_the_most_of_the_others(tmp_path: Path) -> None:
    again = program_events.shaped(5)
    one = [*job_folders.loop(), *program_events.shaped(2)]
    found = beside(job_folders.job(tmp_path, [*job_folders.loop(), *again], one, job_folders.loop()), 0)
    (row,) = [row for row in found.compiled if row.function == "step"]
    assert (row.count, row.others_most) == (4, 1)
    assert "f32[4,128] → f32[5,128]" in row.reason
    other = beside(tmp_path, 2)
    assert other.compiled == ()


def test_of_a_process_alone_only_its_ledger_is_known(tmp_path: Path) -> None:
    folder = job_folders.job(tmp_path, [*job_folders.loop(), *program_events.shaped(3)])
    found = beside(folder, 0)
    assert found.parts is None
    assert [row.count for row in found.compiled] == [2]
    assert beside(folder, 7) is None
