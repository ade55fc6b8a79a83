"""Each code of a job is in the catalogue, is said of a job that has it, and of no clean one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import program_events
from jaxprof.analysis.explain.catalogue import entries
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import captures, job, loop, process


def failed(folder: Path) -> None:
    for index, wall in enumerate((20.0, 25.0)):
        process(folder, index, 2, *loop(), wall=wall, exit_code=1)


def recompiled(folder: Path) -> None:
    process(folder, 0, 2, *loop())
    process(folder, 1, 2, *loop(), *program_events.shaped(30))


def late(folder: Path) -> None:
    job(folder, loop(), loop(data=0.3), loop())


def slow(folder: Path) -> None:
    job(folder, *([*loop(), *taken] for taken in captures(3, late=1)))


def uneven(folder: Path) -> None:
    for index, rows in enumerate((32, 32, 96)):
        own = program_events.compiled("encode", signature=[program_events.leaf("x", f"f32[{rows},1024]")])
        process(folder, index, 3, *loop(), own)


def exchanging(folder: Path) -> None:
    job(folder, *([*loop(), *taken] for taken in captures(3, exchange=4e-3)))


def clean(folder: Path) -> None:
    job(folder, *([*loop(), *taken] for taken in captures(3)))


CASES: dict[str, Callable[[Path], None]] = {
    "process-failed": failed,
    "failed-after": failed,
    "recompiles-alone": recompiled,
    "straggler": late,
    "slow-device": slow,
    "uneven-shards": uneven,
    "exposed-exchange": exchanging,
}
ELSEWHERE = {"process-stopped": "test_stopped.py", "throttled-device": "test_throttled.py"}
"""Codes whose cases, and those in which they are not said, have a file of tests of their own."""


def said_of(make: Callable[[Path], None], folder: Path) -> set[str]:
    make(folder)
    return {finding.code for finding in job_figures(read_job(folder, Session)).findings}


def test_every_code_of_a_job_has_a_case_and_a_clean_job_has_none(tmp_path: Path) -> None:
    assert all(f'"{code}"' in (Path(__file__).parent / file).read_text() for code, file in ELSEWHERE.items())
    assert set(CASES) | set(ELSEWHERE) == {entry.code for entry in entries().values() if entry.source == "job"}
    for code, make in CASES.items():
        assert code in said_of(make, tmp_path / code), code
    assert said_of(clean, tmp_path / "clean") == set()
