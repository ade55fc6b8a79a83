"""Tells which views of a run have something to show, which run holds the data, how to get a missing capture, and
whether a capture can be trusted: the worst check in one line, all checks in a dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from jaxprof.analysis.programs.sentences import window_text
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.analysis.timeline.profile import is_whole, programs_of, with_hlo
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import seconds
from jaxprof.session.run import IMPORTED
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.dialogs import TextDialog, rerun_program
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.picture import Lines

if TYPE_CHECKING:
    from jaxprof.facts.captures import CaptureCheck
    from jaxprof.session import Run, Session
    from jaxprof.tui.kit.host import Host


def source_of(session: Session, run: Run) -> Run:
    """Return the run with the captures: `run` itself, or the whole profile if `run` is a program of one."""
    whole = None if TEXT_NAME in run.texts else whole_of(session, run)
    return whole if whole is not None and TEXT_NAME in whole.texts else run


def views_of(session: Session, run: Run) -> frozenset[str]:
    views = set()
    if TEXT_NAME in source_of(session, run).texts:
        views.add("timeline")
    if run.compile_passes is not None:
        views.add("compile")
    compiled = with_hlo(session, run)
    if compiled.buffers is not None or compiled.memory is not None or "hlo" in compiled.texts:
        views.add("memory")
    if whole_of(session, run) is not None:
        views.add("overview")
    return frozenset(views)


def whole_of(session: Session, run: Run) -> Run | None:
    """Return the whole profile that a run is or belongs to; None for a run that was measured here."""
    if run.plan.how != IMPORTED:
        return None
    return next(
        (whole for whole in session.runs.values() if is_whole(whole) and run in (whole, *programs_of(session, whole))),
        None,
    )


def last_window(session: Session) -> tuple[str, str]:
    """Return the run with the timeline of the last capture window, and its run with HLO whose kernels took longest."""
    imported = [run for run in session.runs.values() if run.plan.how == "imported"]
    whole = next((run.id for run in reversed(imported) if TEXT_NAME in run.texts), "")
    of_window = imported[next((at for at, run in enumerate(imported) if run.id == whole), 0) :]
    return whole, next((run.id for run in of_window if "hlo" in run.texts), "")


def first_with_capture(session: Session, wanted: str) -> str:
    """Return the `wanted` run if it has anything to show, otherwise the first run that has, best with a timeline."""
    runs = session.runs
    if wanted in runs and views_of(session, runs[wanted]):
        return wanted

    def rank(run: Run) -> tuple[bool, ...]:
        views = views_of(session, run)
        return "timeline" in views and run.plan.how == "jit", "timeline" in views, run.id == wanted, bool(views)

    return max(runs.values(), key=rank).id if runs else ""


CAPTURE_SECONDS = 2.0


def program_without_capture(session: Session) -> Run | None:
    """Return the program of `session` if none of its captures has been read; None for other sessions."""
    program = next((run for run in session.runs.values() if run.is_program), None)
    return program if program is not None and last_window(session) == ("", "") else None


def is_ours(app: Host) -> bool:
    return app.session is app.live.session and app.live.program is not None


def how_to_capture(app: Host, run: Run) -> str:
    """Return, in two sentences, why there is nothing to show and how to get it."""
    name, key = safe(run.plan.workload), key_of("program.capture")
    windows = run.program.windows if run.program is not None else []
    if windows and windows[-1].state == "began":
        return f"{name} is being captured now. Its kernels, timeline and memory appear here once they have been read."
    if run.shown.over:
        failed = window_text(windows[-1]) if windows and windows[-1].state == "failed" else ""
        why = f"The capture of {name} failed ({safe(failed)})" if failed else f"{name} has no capture"
        wall_seconds = run.closed.wall_seconds if run.closed is not None else None
        took = f", which took {seconds(wall_seconds)}," if wall_seconds else ""
        return f"{why}. {key} runs it again{took} with a capture of 5 steps, and shows the command first."
    if is_ours(app):
        return (
            f"{name} has no capture yet. Press {key} to capture {CAPTURE_SECONDS:g} s now; reading that takes a moment."
        )
    return (
        f"{name} is being recorded by another process and has no capture yet. To capture it, start it with "
        "--capture-steps 5, or pass capture_steps=5 to jaxprof.record."
    )


def nothing_was_run(app: Host) -> str:
    """Return in two sentences what is open instead of a session with runs, and the keys that lead on."""
    kernels, summary, start = (key_of(f"app.mode.{section}") for section in ("kernels", "summary", "start"))
    to = app.destination
    if to.file is not None and to.module is not None:
        name, memory = safe(to.file.name), key_of("app.mode.memory")
        return (
            f"{name} is HLO that was not run here: it has no measured times and no timeline. "
            f"Press {kernels} for its kernels, {memory} for its memory."
        )
    if app.job_folder is not None:
        return (
            f"{safe(app.job_folder.name)} is a job; this screen shows the session of one process. "
            f"Press {summary} for the job, then {key_of('processes.open')} on a process to open its session."
        )
    opened = app.session_path
    what = "Nothing was run yet" if opened is None else f"{safe(opened.name)} has no run that can be shown"
    return f"{what}. Press {start} to profile your code, run a workload, or open a session or a profile."


def can_capture(app: Host, run: Run | None) -> bool:
    return run is not None and (run.shown.over or is_ours(app))


def capture(app: Host, run: Run | None) -> None:
    """Start the profiler in a running program; for one that has ended, ask for a rerun with a capture."""
    if run is None:
        return
    if run.shown.over:
        rerun_program(app, run, capture=True)
        return
    windows = run.program.windows if run.program is not None else []
    if windows and windows[-1].state == "began":
        app.say("A capture is already in progress.")
        return
    app.live.capture(CAPTURE_SECONDS)
    app.say(
        f"The profiler records for {CAPTURE_SECONDS:g} s; Kernels and Timeline show the capture when it is ready.",
        "Capturing",
    )


MARKS = {
    "bad": ("✗", "bold $error"),
    "doubt": ("!", "bold $warning"),
    "unknown": ("?", "bold $warning"),
    "good": ("✓", "bold $better"),
}
"""Mark and style of each verdict, the worst first."""
CAPTURES = {"run": "steady calls", "compile": "compile", "attribution": "command buffers off", "imported": "profile"}


def trust_of(run: Run) -> list[CaptureCheck]:
    """Return the checks of a run's captures, the worst first."""
    from jaxprof.facts.captures import trust_rows

    order = {verdict: rank for rank, verdict in enumerate(MARKS)}
    return sorted(trust_rows(run), key=lambda row: order.get(row.check.verdict, order["unknown"]))


OF_A_SIDE = "Sides of a comparison are captured only with jaxprof compare --capture."


def why_no_capture(run: Run) -> str:
    if run.plan.how == "numpy":
        return "NumPy runs have no profile: JAX's profiler records only what XLA runs."
    if run.plan.how == "compile":
        return "This module was compiled but not run."
    if not run.shown.over:
        later = "The capture starts after the timing, which has not finished yet."
        return "Nothing of this program has been captured yet." if run.is_program else later
    if run.shown.status != "ok":
        how = f"{'was ' * (run.shown.status in ('cancelled', 'interrupted'))}{run.shown.status}"
        return f"This run {how} before it was captured."
    if run.plan.how == "imported":
        return "This module has no capture of its own; see the whole profile."
    if run.is_program:
        return "Nothing of this program was captured."
    if run.plan.side:
        return OF_A_SIDE
    return "No capture was recorded (--no-capture)."


class TrustLine(Lines):
    """One line under the tabs: the worst check of a run's captures."""

    def show_run(self, run: Run | None) -> None:
        self.show(lambda width: [] if run is None else [_line(run, width).truncate(max(1, width - 1), ellipsis=True)])


_LEAST_MESSAGE = 24
"""Columns of a message that are shown in the narrowest terminal."""


def _line(run: Run, width: int) -> Content:
    rows = trust_of(run)
    if not rows:
        return Content.assemble((" - ", "bold $quiet"), (safe(why_no_capture(run)), "$text-muted"))
    worst = rows[0].check
    mark, style = MARKS.get(worst.verdict, MARKS["unknown"])
    same = sum(row.check.verdict == worst.verdict for row in rows)
    click = Style.from_meta({"@click": "screen.trust"})
    key = f"  {in_words('hlo.trust')}: all checks"
    if worst.verdict == "good":
        words = [(f"Capture OK: {len(rows)} checks passed", "$text-muted")]
    else:
        more = f" (and {same - 1} more)" if same > 1 else ""
        room = max(_LEAST_MESSAGE, width - len(more) - len(key) - 5)
        words = [(shorten(safe(worst.message), room), "$foreground"), (more, "$text-muted")]
    return Content.assemble((f" {mark} ", style), *words, (key, "$footer-key-foreground")).stylize(click)


def show_checks(app: Host, run: Run) -> None:
    source = source_of(app.session, run)

    def draw(width: int) -> list[Content]:
        lines: list[Content] = []
        for kind, rows in grouped((row.kind, row.check) for row in trust_of(source)).items():
            lines += [Content("")] if lines else []
            lines.append(Content.styled(CAPTURES.get(kind, safe(kind)), "bold $primary"))
            for check in rows:
                mark, style = MARKS.get(check.verdict, MARKS["unknown"])
                lines += hang(Content.assemble((f"{mark} ", style)), check.message, width)
                lines += hang(Content("  "), check.advice, width, "$text-muted") if check.advice else []
        return lines or [Content.styled(safe(why_no_capture(source)), "$text-muted")]

    app.push_screen(TextDialog("Can this capture be trusted?", draw))
