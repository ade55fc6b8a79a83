"""Model FLOPs utilisation and the share of the roofline, as words and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.units import percent

if TYPE_CHECKING:
    from jaxprof.analysis.utilisation import Utilisation


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


def utilisation_json(use: Utilisation) -> dict[str, Any]:
    """The documented form (docs/json.md): shares in 0..1, rates in FLOP/s."""
    return {
        "run": use.run,
        "of": use.of,
        "seconds": _rounded(use.seconds),
        "mfu": _rounded(use.mfu),
        "hfu": _rounded(use.hfu),
        "at_least": use.at_least,
        "roofline": _rounded(use.roofline),
        "flops": _rounded(use.flops),
        "recomputed_flops": _rounded(use.recomputed_flops),
        "peak_flops_per_second": _rounded(use.peak_flops_per_second),
        "dtypes": list(use.dtypes),
        "peak_source": use.peak_source or None,
        "reason": use.reason or None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
