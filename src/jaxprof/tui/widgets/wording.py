"""Figures of a run in words, the same on every screen. Pure functions; unknown is a dash, an estimate is called one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.units import UNKNOWN, integer, percent, ratio, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.events import Scalar
    from jaxprof.results import RunResult
    from jaxprof.stats import Speedup, Summary

STATUS_MARKS = {
    "queued": ("·", "$quiet"),
    "running": ("▶", "bold $warning"),
    "ok": ("✓", "$better"),
    "failed": ("✗", "bold $error"),
    "crashed": ("✗", "bold $error"),
    "cancelled": ("○", "$quiet"),
}
VERDICT_STYLES = {"faster": "$better", "slower": "$worse"}


def status_mark(status: str) -> Content:
    """One character for a status, that can be told from the others without colours."""
    return Content.styled(*STATUS_MARKS.get(status, ("?", "$warning")))


def clock(elapsed_seconds: float) -> str:
    """A clock that runs: tenths of a second up to a minute, then minutes and seconds."""
    if elapsed_seconds < 0:
        return "0.0 s"
    if elapsed_seconds < 59.95:
        return f"{int(elapsed_seconds * 10) / 10:.1f} s"
    whole = int(elapsed_seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d} h"


def remaining(left_seconds: float | None) -> str:
    """An estimate of what is left: `≈ 3 s`; empty when it is unknown."""
    if left_seconds is None:
        return ""
    return f"≈ {clock(max(1, round(left_seconds))).replace('.0', '')}"


def half_width(summary: Summary | None) -> str:
    """`± 0.9 %`, or a dash where there are too few samples for an interval."""
    share = summary.relative_halfwidth if summary is not None else None
    return UNKNOWN if share is None else f"± {percent(share)}"


def interval(summary: Summary | None) -> str:
    """`95 %: 0.62 ms to 0.64 ms`, or why there is none."""
    if summary is None:
        return UNKNOWN
    if summary.low is None or summary.high is None:
        return f"{summary.count} samples: too few for an interval"
    return f"95 %: {seconds(summary.low)} to {seconds(summary.high)}"


def speedup_short(found: Speedup | None) -> str:
    """As `speedup_text` for a column: `6.9× (6.8-7.0)`, or `6.9× ± 0.5 %` where the bounds would look the same."""
    if found is None or found.low is None or found.high is None:
        return speedup_text(found)
    low, high = (ratio(bound).removesuffix("×") for bound in (found.low, found.high))
    if low != high:
        return f"{ratio(found.ratio)} ({low}-{high})"
    return f"{ratio(found.ratio)} ± {percent((found.high - found.low) / 2 / found.ratio)}"


def speedup_text(found: Speedup | None) -> str:
    """`6.9× (6.8-7.0)`; the ratio alone without an interval."""
    if found is None:
        return UNKNOWN
    if found.low is None or found.high is None:
        return ratio(found.ratio)
    for significant in (2, 3):  # an interval that is narrower than the digits shown wants more of them
        low, high = (ratio(bound, significant).removesuffix("×") for bound in (found.low, found.high))
        if low != high:
            break
    return f"{ratio(found.ratio, significant)} ({low}-{high})"


def speedup_style(found: Speedup | None) -> str:
    """Green and red only where the interval allows to say so."""
    return VERDICT_STYLES.get(found.verdict, "$text-muted") if found is not None else "$quiet"


def verdict_text(found: Speedup | None, baseline: str) -> str:
    """The speed-up as a sentence: `faster than numpy`, `cannot be told apart from numpy`."""
    if found is None:
        return UNKNOWN
    if found.verdict == "cannot be told apart":
        return f"cannot be told apart from {baseline}"
    if found.verdict == "too few samples":
        return "too few samples for a verdict"
    return f"{found.verdict} than {baseline}"


def pays_off(one: RunResult) -> str:
    """After how many calls the once-only costs are earned back: `12 calls`, `never`, or a dash."""
    if one.versus is None:
        return UNKNOWN
    calls = one.versus.break_even_calls
    if calls is not None:
        number = integer(calls) if calls < 10_000 else scaled(calls, significant=2)
        return f"{number} call{'s' if calls != 1 else ''}"
    return "never" if one.once_seconds is not None and one.versus.speedup.ratio <= 1 else UNKNOWN


def parameters_text(parameters: Mapping[str, Scalar]) -> str:
    """`n=1 000 000 k=32`."""
    return " ".join(f"{name}={_value(value)}" for name, value in parameters.items())


def _value(value: Scalar) -> str:
    return integer(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
