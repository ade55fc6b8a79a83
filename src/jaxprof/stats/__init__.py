"""Summaries and intervals of raw samples, and comparisons of them. NumPy only, no state, no rounding.

Medians, not means: a shared machine only ever makes a call slower, and a few slow calls must not move the figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.stats.breakeven import break_even_calls, total_seconds
    from jaxprof.stats.changes import ChangePoint, change_points
    from jaxprof.stats.comparison import (
        MARGIN,
        TimeComparison,
        Verdict,
        compare,
        compare_apart,
        corrected,
        is_rough,
        narrow_enough,
        refuse,
    )
    from jaxprof.stats.launches import LaunchSummary, summarise_launches, summarise_run, turns_over_alone
    from jaxprof.stats.modes import Modes, two_modes
    from jaxprof.stats.summary import Summary, histogram, median_interval, outliers, summarise
    from jaxprof.stats.turns import (
        BLOCK_SECONDS,
        Block,
        LaunchBlocks,
        TurnPlan,
        balanced_order,
        in_blocks,
        middle,
        plan_turns,
    )

__all__ = [
    "BLOCK_SECONDS",
    "MARGIN",
    "Block",
    "ChangePoint",
    "LaunchBlocks",
    "LaunchSummary",
    "Modes",
    "Summary",
    "TimeComparison",
    "TurnPlan",
    "Verdict",
    "balanced_order",
    "break_even_calls",
    "change_points",
    "compare",
    "compare_apart",
    "corrected",
    "histogram",
    "in_blocks",
    "is_rough",
    "median_interval",
    "middle",
    "narrow_enough",
    "outliers",
    "plan_turns",
    "refuse",
    "summarise",
    "summarise_launches",
    "summarise_run",
    "total_seconds",
    "turns_over_alone",
    "two_modes",
]

_HOME = {
    "break_even_calls": "breakeven",
    "total_seconds": "breakeven",
    "ChangePoint": "changes",
    "change_points": "changes",
    **dict.fromkeys(("MARGIN", "TimeComparison", "Verdict", "compare", "compare_apart", "corrected"), "comparison"),
    **dict.fromkeys(("is_rough", "narrow_enough", "refuse"), "comparison"),
    **dict.fromkeys(("LaunchSummary", "summarise_launches", "summarise_run", "turns_over_alone"), "launches"),
    "Modes": "modes",
    "two_modes": "modes",
    **dict.fromkeys(("Summary", "histogram", "median_interval", "outliers", "summarise"), "summary"),
    **dict.fromkeys(("BLOCK_SECONDS", "Block", "LaunchBlocks", "TurnPlan", "balanced_order"), "turns"),
    **dict.fromkeys(("in_blocks", "middle", "plan_turns"), "turns"),
}
"""`growth` has its own module's name, and is imported from there."""

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.stats", _HOME)  # a job needs a quantile, and no comparison of runs
