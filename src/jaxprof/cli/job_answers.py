"""What commands answer about a job, from the folder with the sessions of its processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.cli.answers import command_line
from jaxprof.cli.output import print_json, print_pieces, print_text

if TYPE_CHECKING:
    from jaxprof.analysis.jobs import JobFigures


def read(folder: Path) -> JobFigures:
    """The job in figures. Raises FileRefusedError if the folder has no session that can be read."""
    from jaxprof.analysis.jobs import job_figures
    from jaxprof.session import Session
    from jaxprof.session.log.job_folder import read_job

    return job_figures(read_job(folder, Session))


def print_job(job: JobFigures, form: str) -> None:
    """Print it in that form. Raises UsageError for a form that it does not have."""
    from jaxprof.errors import UsageError
    from jaxprof.report import hosts
    from jaxprof.report.renderers import csv_lines

    if form == "json":
        late = dict.fromkeys(finding.index for finding in job.findings)
        paths = {process.index: process.path for process in job.processes}
        print_json("job", hosts.to_dict(job), [command_line("explain", paths[index]) for index in late])
    elif form == "csv":
        print_pieces(csv_lines(hosts.process_table(job)))
    elif form == "text":
        print_text(hosts.to_text(job))
    else:
        raise UsageError(f"a job has no {form} form", "It has --format text, json and csv.")
