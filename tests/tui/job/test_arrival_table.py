"""Who arrives last, and over the table what the collective moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jaxprof.analysis.jobs.job import JobFigures, job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from jaxprof.tui.job.panes import arrivals_title
from job_folders import ALL_REDUCE, captures, job, loop


def figures(folder: Path, hlo: str) -> JobFigures:
    taken = captures(4, exchange=4e-3, hlo=hlo)
    return job_figures(read_job(job(folder, *([*loop(), *each] for each in taken)), Session))


def test_the_title_has_what_is_moved_where_that_is_known(tmp_path: Path) -> None:
    known = figures(tmp_path / "known", ALL_REDUCE)
    title = arrivals_title(known.arrivals, known.collectives)
    assert title.startswith("all-reduce: 100 executions, the exchange itself ")
    assert ", 4.00 MiB at 1.7" in title
    assert title.endswith("GB/s")
    linked = [replace(known.collectives[0], possible_bytes_per_second=450e9)]
    assert arrivals_title(known.arrivals, linked) == f"{title} of 450 GB/s"


def test_it_has_nothing_of_that_without_the_program(tmp_path: Path) -> None:
    unknown = figures(tmp_path, "")
    assert " at " not in arrivals_title(unknown.arrivals, unknown.collectives)
    assert unknown.collectives[0].bus_bytes_per_second is None
    assert "how many bytes that are is not known" in unknown.findings[0].message
    assert arrivals_title(None) == "Arrivals"
