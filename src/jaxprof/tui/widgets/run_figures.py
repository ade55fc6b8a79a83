"""What the Run screen says of a run in words: its figures while they get narrower, or why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import safe_lines, shorten
from jaxprof.tui.widgets.distribution import WAITING
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.wording import half_width, interval, pays_off, speedup_style, speedup_text, verdict_text
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.results import RunResult
    from jaxprof.session import Run

_FAILURE_LINES = 8


def why_no_samples(run: Run) -> str:
    """What is said where the samples would be."""
    if run.plan.how == "compile":
        return "compiled, and not run" if run.over else "this is compiled, and not run"
    if run.plan.how == "imported":
        return "a profile that was opened: its kernels have times, and no call was timed"
    return "no samples were taken" if run.over else WAITING


def figures(one: RunResult, baseline: str, so_far: str, width: int) -> list[Content]:
    """The median with its interval, how the interval got narrower, and what it means beside the baseline."""
    summary = one.summary
    if summary is None:
        return []
    calls = one.run.series["run"].calls_per_sample
    each = f" of {calls} calls" if calls > 1 else ""
    lines = [
        Content.assemble(
            ("median ", "$text-muted"),
            (seconds(summary.median), "bold"),
            f" {half_width(summary)}  ",
            (interval(summary), "$text-muted"),
            (f"   {summary.count} samples{each}", "$text-muted"),
        ).truncate(width, ellipsis=True)
    ]
    if one.versus is not None:
        found = one.versus.speedup
        lines.append(
            Content.assemble(
                (speedup_text(found), speedup_style(found)),
                (f"  {shorten(verdict_text(found, baseline), 44)}", "$text-muted"),
                ("   pays off after ", "$text-muted") if one.versus.break_even_calls else "",
                pays_off(one) if one.versus.break_even_calls else "",
            ).truncate(width, ellipsis=True)
        )
    if so_far:
        lines.append(Content.styled(shorten(so_far, width), "$quiet"))
    return lines


def failure(run: Run, width: int) -> list[Content]:
    """What went wrong, and what mends it."""
    lines = [cell(line, width, "$error") for line in safe_lines(run.error) if line] if run.error else []
    lines += [cell(line, width, "$text-muted") for line in safe_lines(run.advice) if line]
    return lines[:_FAILURE_LINES]
