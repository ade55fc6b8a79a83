"""Figures, times and source locations as text, the same on every screen. Unknown is a dash; estimates are marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, WIDEST_HALF, between, counted, percent, ratio, seconds, spread
from jaxprof.stats.summary import FEWEST_FOR_INTERVAL, Summary
from jaxprof.tui import clock

if TYPE_CHECKING:
    from jaxprof.events import SourceLocation
    from jaxprof.session import Run, Session
    from jaxprof.stats.comparison import TimeComparison


STATUS_MARKS = {
    "queued": ("·", "$quiet"),
    "running": ("▶", "bold $warning"),
    "standing still": ("■", "bold $error"),
    "ok": ("✓", "$better"),
    "failed": ("✗", "bold $error"),
    "crashed": ("✗", "bold $error"),
    "interrupted": ("✗", "bold $error"),
    "cancelled": ("○", "$quiet"),
    "timed out": ("✗", "bold $error"),
}
BROKEN = ("failed", "crashed", "interrupted", "timed out")
_STYLES = {"faster": "$better", "slower": "$worse"}


def status_mark(status: str) -> Content:
    """Return one character for a status, distinct even without colours."""
    return Content.styled(*STATUS_MARKS.get(status, ("?", "$warning")))


def clock_text(elapsed_seconds: float) -> str:
    """Return a time that counts: tenths of a second up to a minute, then whole seconds in the words of reports."""
    if elapsed_seconds < 59.95:
        return f"{max(0, int(elapsed_seconds * 10)) / 10:.1f} s"
    return seconds(int(elapsed_seconds), significant=2)


def half_width(summary: Summary | None) -> str:
    """Return ` ± 0.9 %`, to follow the median; ` -` for too few samples; empty where both ends say more."""
    text = UNKNOWN if summary is None else spread(summary.relative_halfwidth, summary.low, summary.high)
    return "" if " to " in text else f" {text}"


def interval(summary: Summary | None) -> str:
    """Return `95 %: 0.62 ms to 0.64 ms`, or why there is no interval."""
    if summary is None:
        return UNKNOWN
    if summary.low is None or summary.high is None:
        few = summary.count < FEWEST_FOR_INTERVAL
        return f"{counted(summary.count, 'sample')}: too {'few' if few else 'similar'} for an interval"
    return f"95 %: {between(summary.low, summary.high)}"


SPEEDUP_WIDTH = 17


def speedup_short(speedup: TimeComparison | None) -> str:
    """Return the ratio with its bounds for a column, `6.9× ± 0.5 %` where these do not fit or look the same."""
    if speedup is None:
        return UNKNOWN
    low, high, bounds = speedup.low, speedup.high, speedup.ratio_text
    if low is None or high is None or (ratio(low) != ratio(high) and len(bounds) <= SPEEDUP_WIDTH):
        return bounds
    half = (high - low) / 2 / (speedup.ratio or 1.0)
    if half > WIDEST_HALF:
        return f"{ratio(low, 2).removesuffix('×')}-{ratio(high, 2)}"
    return f"{ratio(speedup.ratio)} ± {percent(half)}"


def speedup_style(speedup: TimeComparison | None) -> str:
    """Return the style of a speed-up, green or red unless the size of the difference is uncertain."""
    if speedup is None:
        return "$quiet"
    return "$text-muted" if speedup.is_rough else _STYLES.get(speedup.verdict, "$text-muted")


def baseline_name(session: Session, run: Run) -> str:
    baseline = session.runs.get(run.plan.baseline)
    return baseline.as_baseline if baseline is not None else ""


def ago(unix_seconds: float) -> str:
    """Return the age of a Unix time: `just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date."""
    passed = max(0.0, clock.unix_seconds() - unix_seconds)
    if passed < 60:
        return "just now"
    if passed < 3600:
        return f"{passed // 60:.0f} min ago"
    if passed < 86_400:
        return f"{passed // 3600:.0f} h ago"
    if passed < 7 * 86_400:
        return f"{passed // 86_400:.0f} d ago"
    return _local(unix_seconds, "%Y-%m-%d")


def moment(unix_seconds: float) -> str:
    """Return a Unix time in local time: `2026-11-20 14:05`; a dash for a time outside the calendar."""
    return _local(unix_seconds, "%Y-%m-%d %H:%M")


def _local(unix_seconds: float, form: str) -> str:
    try:
        return clock.strftime(form, clock.localtime(unix_seconds))
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def location_text(where: SourceLocation | None, directory: str = "") -> str:
    """Return `train.py:88`, relative to the program's `directory`; empty if unknown."""
    return safe(where.short(directory)) if where else ""


def location_in_full(where: SourceLocation | None) -> str:
    if not where:
        return ""
    return safe(where.text + (f" in {where.function}" if where.function else ""))
