"""Explain a job: what is wrong with which of its processes, in the form of every explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.model import (
    MOST_ABSTENTIONS,
    MOST_FINDINGS,
    Abstention,
    Explanation,
    command,
)
from jaxprof.errors import FileRefusedError
from jaxprof.session_names import JOB_EXTENSION

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.finding import Finding

_FAULTS: Final = ("process-failed", "failed-after")
"""Findings without a cost that come before all others: the job did not complete its work."""
_READ_ON: Final = "Its session has what it was doing, and what it wrote."
_EXACT: Final = ("recompiles-alone", "recompiles", "process-stopped")
"""Findings whose seconds were reported, not estimated from samples."""


@dataclass(frozen=True, slots=True)
class JobStart:
    """How `jaxprof script -n` starts the same job again."""

    count: int
    folder: str
    """Folder of the new job."""
    argv: tuple[str, ...]

    def command(self, *options: str) -> str:
        """Return the command line, with these options."""
        return command("script", "-n", str(self.count), *options, "--out", self.folder, *self.argv)


def job_start(folder: Path) -> JobStart | None:
    """Return how to start the same job again, beside this one; None if `jaxprof script -n` did not start it."""
    from jaxprof.job_process import OWN_JOBS
    from jaxprof.session.log.entry import program_start, read_entry
    from jaxprof.session.log.job_folder import job_sessions
    from jaxprof.session.log.state import url_of

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


def explanation_of_job(job: JobFigures, name: str, again: JobStart | None = None) -> Explanation:
    """Return what to do about a job, in at most `MOST_FINDINGS` findings. `name` is the job's folder in commands;
    `again` is None if a launcher starts the job."""
    verify = f"{again.command()} && {command('explain', again.folder)}" if again is not None else ""
    ranked = [_ranked(job, finding, verify) for finding in job.findings]
    # findings about all processes have larger costs than a late process, but come after it
    ranked.sort(key=lambda each: (not each.fault, each.index is None, -(each.seconds or 0.0)))
    return Explanation(
        name=name,
        subject="job",
        findings=tuple(ranked[:MOST_FINDINGS]),
        left_out=max(0, len(ranked) - MOST_FINDINGS),
        abstentions=tuple(_abstentions(job, again))[:MOST_ABSTENTIONS],
        job=job,
    )


def _ranked(job: JobFigures, finding: Finding, verify: str) -> Finding:
    process = next((each for each in job.processes if each.index == finding.index), None)
    walls = [each.wall_seconds for each in job.processes if each.wall_seconds is not None and process in (None, each)]
    wall = max(walls, default=None)
    return replace(
        finding,
        own_fix=finding.advice or _READ_ON,
        share=finding.seconds / wall if finding.seconds is not None and wall else None,
        estimate=finding.code not in _EXACT,
        verify=verify or command("explain", process.path if process is not None else job.folder),
        fault=finding.code in _FAULTS,
        host=process.host if process is not None else "",
    )


def _abstentions(job: JobFigures, again: JobStart | None) -> Iterator[Abstention]:
    """Yield what is missing of the job, and whether no capture shows who arrives last at the collectives."""
    for number, notice in enumerate(job.notices):
        yield Abstention("job-incomplete" if number == 0 else f"job-incomplete-{number + 1}", notice)
    if job.arrivals is None and job.count > 1:
        yield Abstention(
            "no-arrivals",
            "fewer than two processes have captured a collective: a slow device would not show",
            again.command("--capture-steps", "100") if again is not None else "",
        )
