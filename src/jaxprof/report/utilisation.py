"""Model FLOPs utilisation and the share of the roofline, as words and as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jaxprof.facts import Fact, at
from jaxprof.facts.units import FLOPS, LIST, RATE, SECONDS, SHARE, TEXT, TRUTH
from jaxprof.units import percent

if TYPE_CHECKING:
    from jaxprof.analysis.ceilings import Utilisation


def utilisation_text(use: Utilisation) -> str:
    """`MFU 41 % of the vendor's bf16 peak (HFU 52 %), 63 % of its device's roofline`; what is unknown is left out, so
    empty if both are."""
    parts = []
    if use.mfu is not None:
        whose = "peak that was measured here" if use.peak_is_measured else f"vendor's {'/'.join(use.dtypes)} peak"
        again = f" (HFU {percent(use.hfu)})" if use.recomputed_flops else ""
        parts.append(f"MFU {'at least ' if use.at_least else ''}{percent(use.mfu)} of the {whose}{again}")
    if use.roofline is not None:
        parts.append(f"{percent(use.roofline)} of its device's roofline")
    return ", ".join(parts)


def to_four_digits(value: float | None) -> float | None:
    """A figure that is rounded so that an explanation stays small."""
    return None if value is None else float(f"{value:.4g}")


def rounded(key: str) -> Callable[[Any], float | None]:
    """What reads a figure, rounded so that an explanation stays small."""
    read = at(key)
    return lambda row: to_four_digits(read(row))


def rounded_interval(row: Any) -> list[float | None] | None:
    """`[low, high]`; None if either is unknown."""
    return None if row.low is None or row.high is None else [to_four_digits(row.low), to_four_digits(row.high)]


UTILISATION: Final[tuple[Fact[Utilisation], ...]] = (
    Fact("run", TEXT, "Id of the run"),
    Fact("of", TEXT, "What was timed: call or step"),
    Fact("seconds", SECONDS, "Time of the call or step", rounded("seconds")),
    Fact("mfu", SHARE, "Share of the peak that the FLOPs of the model reach", rounded("mfu")),
    Fact("hfu", SHARE, "Share of the peak that all FLOPs reach, recomputed ones included", rounded("hfu")),
    Fact("at_least", TRUTH, "Whether the shares are lower bounds"),
    Fact("roofline", SHARE, "Share of the roofline of the whole", rounded("roofline")),
    Fact("flops", FLOPS, "FLOPs of the matrix products", rounded("flops")),
    Fact("recomputed_flops", FLOPS, "Those that are computed again (remat)", rounded("recomputed_flops")),
    Fact("peak_flops_per_second", RATE, "The peak of the device for these dtypes", rounded("peak_flops_per_second")),
    Fact("dtypes", LIST, "The dtypes of the matrix products"),
    Fact("peak_source", TEXT, "Where the peak comes from"),
    Fact("reason", TEXT, "Why mfu is unknown"),
)
