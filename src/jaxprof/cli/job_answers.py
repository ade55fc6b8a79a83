"""Answers of commands about a job, from the folder with the sessions of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.cli.answers import command_line
from jaxprof.cli.output import print_json, print_pieces, print_text
from jaxprof.cli.target import job_at, job_named
from jaxprof.errors import FileRefusedError, UsageError

if TYPE_CHECKING:
    from jaxprof.analysis.explain.jobs import JobStart
    from jaxprof.analysis.explain.model import Explanation
    from jaxprof.analysis.jobs.job import JobFigures


def read(folder: Path) -> JobFigures:
    """Return the job in figures. Raises FileRefusedError if nothing in the folder can be read."""
    from jaxprof.rollup.job import read_job_figures

    return read_job_figures(folder)


def print_job(job: JobFigures, form: str) -> None:
    """Print the job in that form. Raises UsageError for a form that it does not have."""
    from jaxprof.report import hosts
    from jaxprof.report.renderers import csv_lines
    from jaxprof.session.log import Library

    if form == "json":
        late = dict.fromkeys(finding.index for finding in job.findings if finding.index is not None)
        places = {process.index: Library().name_of(Path(process.path)) for process in job.processes}
        print_json("job", hosts.to_dict(job), [command_line("explain", places[index]) for index in late])
    elif form == "csv":
        print_pieces(csv_lines(hosts.process_table(job)))
    elif form == "text":
        print_text(hosts.to_text(job))
    else:
        raise UsageError(f"a job has no {form} form", "It has --format text, json and csv.")


def explained(folder: Path) -> Explanation:
    """Return what to do about the job in `folder`. Raises FileRefusedError if it has no readable session."""
    from jaxprof.analysis.explain.jobs import explanation_of_job
    from jaxprof.session.log.state import with_urls

    return explanation_of_job(read(folder), with_urls(str(folder)), _restart(folder))


def _restart(folder: Path) -> JobStart | None:
    """Return how to start the same job again, beside this one; None if `jaxprof script -n` did not start it."""
    from jaxprof.analysis.explain.jobs import JobStart
    from jaxprof.job_process import OWN_JOBS
    from jaxprof.session.log.entry import program_start, read_entry
    from jaxprof.session.log.job_folder import job_sessions
    from jaxprof.session.log.state import url_of
    from jaxprof.session_names import JOB_EXTENSION

    restart_folder = folder.with_name(f"{folder.name.removesuffix(JOB_EXTENSION)}-again{JOB_EXTENSION}")
    if url_of(folder) is not None:  # a store that can be read may refuse to be written
        restart_folder = Path(restart_folder.name)
    for _, path in job_sessions(folder)[0]:
        try:
            entry, program = read_entry(path), program_start(path)
        except (OSError, FileRefusedError):
            continue
        if entry.header is not None and program is not None:
            ours = entry.header.job.startswith(OWN_JOBS)
            return JobStart(entry.process_count, str(restart_folder), tuple(program.argv)) if ours else None
    return None


def compare_jobs(files: Sequence[str], form: str) -> bool:
    """Compare the first job with the others, and print that. Return False if none of the files is a job.

    Raises UsageError for a job beside a session, and for a job beside itself.
    """
    if not any(map(job_at, files)):
        return False
    folders = [job_named(file) for file in files]
    job = next(filter(None, folders))
    other = next((file for file, folder in zip(files, folders, strict=True) if not folder), None)
    if other is not None:
        raise UsageError(
            f"{job} is a job and {other} is not one", "Name two jobs, or a session of each: A/process-00000.jaxprof."
        )
    jobs = [folder for folder in folders if folder is not None]
    if len({folder.resolve() for folder in jobs}) < len(jobs):
        raise UsageError("the same job is given twice", "Name two different ones.")
    from jaxprof.analysis.jobs.difference import job_difference
    from jaxprof.report.recording import job_comparison as report

    first, *others = map(read, jobs)
    differences = [job_difference(first, other_job) for other_job in others]
    if form == "json":
        sessions = [next(iter(job.processes)).path for job in (first, *others)]
        next_commands = [*(command_line("explain", folder) for folder in jobs), command_line("compare", *sessions)]
        print_json("job-comparison", {"comparisons": list(map(report.job_comparison_json, differences))}, next_commands)
    elif form == "csv":
        print_pieces(report.job_comparison_csv(differences))
    else:
        written = report.job_comparison_text if form == "text" else report.job_comparison_markdown
        print_text("\n\n".join(map(written, differences)))
    return True
