"""A trust row, and the share from which something is worth one."""

from __future__ import annotations

from typing import Final

from jaxprof.events import TrustCheck

CLEARLY: Final = 0.01
"""Share of the time below which something is not worth a doubt."""


def row(code: str, verdict: str, message: str, advice: str = "") -> TrustCheck:
    """Return a row; `verdict` is `good`, `doubt`, `bad` or `unknown`, and `advice` says what can be done."""
    return TrustCheck(code=code, verdict=verdict, message=message, advice=advice)
