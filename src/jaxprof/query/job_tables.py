"""The table of processes: what the sessions of a job come to, so that one SELECT says which process is late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from jaxprof.query.schema import REAL, TEXT, WHOLE, Part, SessionFile, described, row_table
from jaxprof.report.hosts import PROCESSES
from jaxprof.report.table import at
from jaxprof.session.log.job_folder import JobMember

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures


def _processes(file: SessionFile) -> Iterator[ProcessFigures]:
    from jaxprof.analysis.jobs.figures import process_figures

    if any(True for _ in file.session.programs):
        yield process_figures(JobMember(file.session.process_index, file.path, file.session, file.live))


PROCESSES_TABLE: Final = row_table(
    "processes",
    "The processes of a job beside each other, a row for each session with a recorded program",
    described(
        PROCESSES,
        ("index=process", WHOLE, "Which process of its job it is, from 0"),
        ("host", TEXT, "Name of the machine that it ran on"),
        ("status", TEXT, "ok, failed, crashed, cancelled; running; interrupted, where its session has no end"),
        ("wall_seconds", REAL, "Wall time of its program"),
        ("steps_per_second", REAL, "Steps of its loop a second; the same on all, where they wait for each other"),
        ("step_median_seconds", REAL, "The median step of its loop"),
        ("loop_shares.device=device_share", REAL, "Share of its loop: waiting for the device, and for other processes"),
        ("loop_shares.data=data_share", REAL, "Share of its loop: making or fetching its input"),
        ("loop_shares.host=host_share", REAL, "Share of its loop: Python on the host"),
        ("loop_shares.dispatch=dispatch_share", REAL, "Share of its loop: calling JAX"),
        ("loop_shares.copy=copy_share", REAL, "Share of its loop: copies between host and device"),
        ("loop_shares.compile=compile_share", REAL, "Share of its loop: compiling again"),
        ("compile_count", WHOLE, "Compilations"),
        ("compiled_again", WHOLE, "Compilations of the user's functions that were not the first of their function"),
        ("compile_seconds", REAL, "All of its compilations together"),
        ("error", TEXT, "Why it failed"),
        ("path", TEXT, "Its session"),
    ),
    _processes,
)


def process_part(figures: ProcessFigures) -> Part:
    """The row of a process whose figures are known, without its session; none if it has recorded no program."""
    rows = [figures] if figures.status != "unknown" else []
    return {column.name: [(column.value or at(column.name))(row) for row in rows] for column in PROCESSES_TABLE.columns}
