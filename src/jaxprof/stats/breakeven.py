"""Compute the break-even: after how many calls the one-time cost (trace, lower, compile, the transfer in, the
first run) is won back."""

from __future__ import annotations

import math


def total_seconds(calls: int, once_seconds: float, first_seconds: float, call_seconds: float) -> float:
    """Return the total time of `calls` calls: the one-time cost, the first call, and the others. Zero calls cost
    nothing."""
    if calls <= 0:
        return 0.0
    return once_seconds + first_seconds + (calls - 1) * call_seconds


def break_even_calls(
    baseline_seconds: float, once_seconds: float, first_seconds: float, call_seconds: float
) -> int | None:
    """Return the smallest number of calls after which `total_seconds` is at most `calls * baseline_seconds`.

    `baseline_seconds` is one call of the baseline, which has no one-time cost. None if it never breaks even.
    Solves once + first + (k - 1) * call <= k * baseline for k.
    """
    gain = baseline_seconds - call_seconds
    debt = once_seconds + first_seconds - call_seconds
    if debt <= gain:
        return 1
    if gain <= 0:
        return None
    calls = max(1, math.floor(debt / gain))
    while total_seconds(calls, once_seconds, first_seconds, call_seconds) > calls * baseline_seconds:
        calls += 1
    return calls
