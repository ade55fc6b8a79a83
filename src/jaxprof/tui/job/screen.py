"""The Job screen: the processes of a job side by side, which one is late, since when, and what takes its time.

A thread reads the folder, and derives there everything that the screen shows. A job that is over, or has many
processes, is read from its roll-ups, if they are valid; otherwise its sessions are followed: each reading continues
where the last one ended. Enter on a process opens its session, and Esc comes back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from jaxprof.base.errors import JaxprofError
from jaxprof.base.text import columns, safe
from jaxprof.base.units import counted
from jaxprof.base.values import frozen
from jaxprof.jobs.findings import JobFigures
from jaxprof.jobs.folder import ROLL_UP_FOLDER, JobFollower, may_grow
from jaxprof.jobs.job import JobFiles, JobSteps, ProcessFile
from jaxprof.jobs.standstill import STANDS
from jaxprof.jobs.step_grid import STEP, StepGrid
from jaxprof.session.files import url_of
from jaxprof.tui import clock
from jaxprof.tui.job.processes import VIEWS, ProcessList, legend
from jaxprof.tui.kit.drawing import cell, wrap_content
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import in_thread, on
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.kit.picture import Lines, show_titles
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import ViewsScreen
from jaxprof.tui.kit.screen_bars import StageTabs
from jaxprof.tui.kit.text_lists import Claim, ClaimList, claim_of

_LOSS_COLUMNS = 100
"""Columns of the grid from which the lost seconds are computed."""
_LEAST_PAUSE_SECONDS = 5.0
"""Shortest pause between two readings of the roll-ups of a running job."""
_PAUSE_FACTOR = 10.0
"""The pause between two readings of the roll-ups of a running job is this many times the duration of a reading."""


@frozen
class JobInView:
    figures: JobFigures
    job_steps: JobSteps
    lost_seconds: Mapping[int, float]
    """Estimated seconds that a process's own work takes more than that of the median process, by process."""

    def steps(self, columns: int, values_of: str) -> StepGrid:
        """Return all steps of all processes in a number of columns. Blocks: for threads."""
        columns = columns if values_of == STEP else min(columns, self.job_steps.windows)
        return self.job_steps.grid(columns, values_of)


class JobReading:
    """Reads one folder. Only one thread at a time may call it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._follower: JobFollower | None = None
        """Follows the sessions, once roll-ups do not suffice."""
        self._read: dict[int, ProcessFile] = {}
        self._notices: list[str] = []
        self._seen: object = None
        """Names, sizes and times of all sessions and roll-ups in the folder when its roll-ups were last read."""
        self._due = 0.0

    def read(self) -> JobInView | None:
        """Return the job; None if nothing has changed or is due. Blocks: for threads. Raises FileRefusedError."""
        if self._follower is not None:
            return self._follow(self._follower)
        from jaxprof.jobs.job import SESSIONS_READ, JobSteps, read_roll_ups

        began = clock.monotonic()
        if began < self._due:
            return None
        seen = []
        for listed in (self.folder, self.folder / ROLL_UP_FOLDER / "processes"):
            try:
                with os.scandir(listed) as entries:
                    seen += [(entry.name, (status := entry.stat()).st_size, status.st_mtime_ns) for entry in entries]
            except OSError:  # `read_roll_ups` reports the error
                seen.append((str(listed), 0, 0))
        seen.sort()
        if seen == self._seen:
            return None
        files = read_roll_ups(self.folder)
        rest = files.rest
        few = len(files.sessions) <= SESSIONS_READ
        if not files.rolled or len(rest) > SESSIONS_READ or (few and any(map(may_grow, rest.values()))):
            self._follower = JobFollower(self.folder)
            return self._follow(self._follower)
        files.read_rest()
        job = _in_view(files.job_figures(), JobSteps(files))
        self._seen = seen
        if any(process.status in ("running", STANDS) for process in job.figures.processes):
            ended = clock.monotonic()
            self._due = ended + max(_LEAST_PAUSE_SECONDS, _PAUSE_FACTOR * (ended - began))
        return job

    def _follow(self, follower: JobFollower) -> JobInView | None:
        changed = follower.poll()
        if not changed and follower.notices == self._notices and self._read:
            return None
        self._notices = follower.notices
        files = JobFiles(follower.folder, {}, notices=follower.notices)
        for index, member in sorted(follower.members.items()):
            if index in changed:
                self._read[index] = ProcessFile(member.path, member.session, index=index)
            files.take(self._read[index])
        return _in_view(files.job_figures(), JobSteps(files))


def _in_view(figures: JobFigures, steps: JobSteps) -> JobInView:
    """Return a job with the seconds that each process loses, and the notices about how its steps are numbered."""
    grid = steps.grid(_LOSS_COLUMNS)
    lost = grid.lost_seconds if len(grid.steps) else {}
    return JobInView(replace(figures, notices=(*figures.notices, *grid.notices)), steps, lost)


def claims_of(job: JobFigures) -> list[Claim]:
    """Return the notices of missing parts, then the findings, or what was compared without a finding."""
    from jaxprof.report.hosts import nothing_found

    claims = [Claim(notice, "!", style="") for notice in job.notices]
    claims += [claim_of(finding, finding.index, "✗") for finding in job.findings]
    if not job.names_somebody and (words := nothing_found(job)):
        claims.append(Claim(words, "✓", style=""))
    return claims


class JobFindings(ClaimList, keys="job_findings"):
    """The findings of a job; Enter opens the process that one is about."""

    EMPTY = "Reading the job…"


def fitting(cost: str, width: int) -> str:
    """Return the costs of a job without what does not fit into `width`: no figure is cut."""
    costs = cost.rpartition(" (")[0] or cost
    named, _, rest = costs.partition(", the rest ")
    forms = cost, costs, f"{named} of {rest.rpartition(' of ')[2]}" if rest else costs
    return next((form for form in forms if columns(form) <= width), forms[-1])


_LEAST_BELOW = 9
"""Lines that always remain below the findings."""


class JobScreen(ViewsScreen, keys="job"):
    MODE = "job"
    TICK_SECONDS = 1.0
    """How often the folder is read; while a reading takes longer, the next one waits for it."""
    AUTO_FOCUS = "#processes"
    VIEWS = VIEWS

    _reading: JobReading | None = None
    _job: JobInView | None = None
    _error: JaxprofError | None = None
    _busy = False
    _requested: tuple[object, ...] = ()
    """Key of the grid of steps that was requested last."""

    def compose_body(self) -> ComposeResult:
        yield Lines(id="job-head")
        with Vertical(id="job-findings-box", classes="box") as box:
            box.border_title = "Findings"
            yield JobFindings(id="job-findings")
        yield StageTabs(id="job-tabs")
        yield FilterLine("processes")
        with Vertical(id="job-body", classes="box"):
            yield ProcessList()
            yield Lines(id="map-facts")
            yield Lines(id="map-legend")

    @property
    def processes(self) -> ProcessList:
        return self.query_one(ProcessList)

    def focus_view(self) -> None:
        self.processes.focus()

    # -- reading ----------------------------------------------------------------------------------------------

    @property
    def figures(self) -> JobFigures | None:
        return self._job.figures if self._job is not None else None

    def arrive(self, destination: Destination) -> None:
        folder = self.profiler.job_folder
        if folder is not None and (self._reading is None or self._reading.folder != folder):
            self._reading, self._job, self._error = JobReading(folder), None, None
            self._busy, self._requested = False, ()
            self.processes.forget()
            self._show()
        self.action_read()
        self.set_clock(True)

    def tick(self) -> None:
        self.action_read()

    def action_read(self) -> None:
        reading = self._reading
        if reading is None or self._busy:
            return
        self._busy = True
        in_thread(
            self,
            reading.read,
            "job",
            then=lambda job: self._take(reading, job),
            failed=lambda error: self._take(reading, None, error),
        )

    def _take(self, reading: JobReading, job: JobInView | None, error: JaxprofError | None = None) -> None:
        """Show what the thread has read, unless the user has opened another folder since."""
        if reading is not self._reading:
            return
        self._busy = False
        if not self.whole or (job is None and str(error) == str(self._error)):
            return
        self._error = error
        self._job = job if job is not None else self._job
        self._show()

    # -- showing ----------------------------------------------------------------------------------------------

    def _show(self) -> None:
        figures, error, folder = self.figures, self._error, self.profiler.job_folder
        # At the head stand folder, processes, hosts, id and state of the job; below, what costs most in all processes.
        name = folder.name if folder is not None else ""
        url = url_of(folder) if folder is not None else None
        cost, words = "", list[str]()
        if figures is not None:
            from jaxprof.report.conclusion import job_cost

            cost = job_cost(figures)[0]
            hosts = {process.host for process in figures.processes}
            words = [
                figures.condition,
                f"{counted(figures.count, 'process', 'processes')} on {counted(len(hosts), 'host')}",
            ]
            words += [figures.job] if figures.job else []
            states = Counter(process.status for process in figures.processes).most_common()
            of_each = ", ".join(f"{count} {status}" for status, count in states)
            words += [of_each] if len(states) > 1 else []
        short, whole = (safe(" · ".join([start, *words])) for start in (name, url or name))

        def draw(width: int) -> list[Content]:
            head = cell(f" {whole if len(whole) < width else short}", width, "bold")
            return [head, *([cell(f" costs most  {fitting(cost, width - 13)}", width)] if cost else [])]

        self.query_one("#job-head", Lines).show(draw)
        claims = claims_of(figures) if figures is not None else []
        if error is not None:
            # The name of the folder, because its path would fill a narrow terminal.
            what = error.what.replace(str(folder), folder.name) if folder is not None else error.what
            claims.insert(0, Claim(what, "!", fix=error.hint, style=""))
        self.query_one(JobFindings).show(claims)
        if self._job is not None and error is None:
            self.processes.show(self._job.figures, self._job.lost_seconds)
            self._show_frame()
        self.share_room()
        self.refresh_bindings()

    def on_resize(self) -> None:
        self.call_after_refresh(self.share_room)  # when the screen has the classes of its new size

    def share_room(self) -> None:
        """Give the findings the lines that they need, as long as enough is left for what is below."""
        if self._reading is not None and self.whole:
            super().share_room()
            box = self.query_one("#job-findings-box")
            room = self.size.height - 4
            most = min(room // 2, room - _LEAST_BELOW) - 2
            box.styles.height = self.query_one(JobFindings).lines_wanted(max(24, self.size.width - 3), most) + 2

    # -- the processes ----------------------------------------------------------------------------------------

    @on(ProcessList.Changed)
    @on(ProcessList.Sorted)
    @on(FilterLine.Edited)
    @on(RowList.Highlighted, "#processes")
    def _show_frame(self) -> None:
        """Show what is under the cursor of the steps, the title and the order; make the steps, if they are others."""
        # the grid of the steps in view, made in a thread: only the one that was requested last is shown
        job, view = self._job, self.processes
        if job is not None and view.size.width and view.view == "map":
            columns, values_of = view.columns, view.values_of
            requested = (id(job), columns, values_of)
            if requested != self._requested:
                self._requested = requested

                def show(grid: StepGrid) -> None:
                    if requested == self._requested:  # no other grid was requested since
                        view.show_steps(grid)

                in_thread(self, lambda: job.steps(columns, values_of), "steps", then=show)
        listed, box, figures = self.processes, self.query_one("#job-body"), self.figures
        facts, count = listed.facts, len(figures.processes) if figures is not None and listed.view == "map" else 0
        self.query_one("#map-facts", Lines).show(lambda width: wrap_content(Content.styled(facts, "bold"), width)[:2])
        self.query_one("#map-legend", Lines).show(lambda width: [legend(count)] if count else [])
        show_titles(box, Content(listed.title), Content(listed.note))

    # -- keys -------------------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if action in ("copy", "filter", "findings", "tab") and self.figures is None:
            return ""
        return super().why_not(action, parameters)

    def action_tab(self, name: str) -> None:
        super().action_tab(name)
        self.processes.show_view(name)

    def action_findings(self) -> None:
        self.query_one(JobFindings).focus()

    def action_copy(self) -> None:
        figures = self.figures
        if self.processes.has_focus and self.processes.facts:
            self.copy(self.processes.facts)
        elif figures is not None:
            from jaxprof.report.hosts import to_text

            self.copy(to_text(figures), figures.folder)

    @on(RowList.Chosen)
    def _open(self, message: RowList.Chosen) -> None:
        claim = self.query_one(JobFindings).current_row
        index = message.rows.current
        if isinstance(message.rows, JobFindings):
            index = claim.about if claim is not None else None
        for process in self.figures.processes if self.figures is not None else ():
            if process.index == index:
                self.profiler.open_session(Path(process.path))
