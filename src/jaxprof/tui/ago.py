"""Moments and spans as people say them."""

from __future__ import annotations

import time


def ago(seconds: float, now: float | None = None) -> str:
    """How long ago a Unix time was: `just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date."""
    passed = max(0.0, (time.time() if now is None else now) - seconds)
    if passed < 60:
        return "just now"
    if passed < 3600:
        return f"{passed // 60:.0f} min ago"
    if passed < 86_400:
        return f"{passed // 3600:.0f} h ago"
    if passed < 7 * 86_400:
        return f"{passed // 86_400:.0f} d ago"
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def moment(seconds: float) -> str:
    """A Unix time in local time: `2026-11-20 14:05`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
