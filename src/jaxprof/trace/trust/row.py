"""A trust row, and the share from which something is worth one."""

from __future__ import annotations

from typing import Final

from jaxprof.events import TrustCheck
from jaxprof.trace.checks import TRUST

CLEARLY: Final = 0.01
"""Share of the time below which something is not worth a doubt."""


def row(code: str, verdict: str, message: str, own_fix: str | None = None) -> TrustCheck:
    """Return a row; `verdict` is `good`, `doubt`, `bad` or `unknown`. A doubtful one has the fix of its check, unless
    this case has one of its own."""
    usual = TRUST[code][1] if verdict in ("bad", "doubt") else ""
    return TrustCheck(code=code, verdict=verdict, message=message, advice=usual if own_fix is None else own_fix)
