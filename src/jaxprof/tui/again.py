"""Asking for a run once more: as it was asked for, beside a fresh measurement of its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.safe_text import shorten

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.worker import Planned

_MOST_LINES = 8
_WIDEST = 150


def planned_again(session: Session, run_id: str, known: Mapping[str, Planned]) -> list[Planned]:
    """The plan of the run `run_id` of `session`, its baseline first.

    `known` holds what this app has asked for itself, by run id; of a session that was opened, what its file says is
    taken. Raises UsageError where that is not enough.
    """
    planned = known.get(run_id)
    if planned is None:
        from jaxprof.worker.again import plan_again

        return plan_again(session, run_id)
    if planned.baseline is None:
        return [replace(planned)]
    baseline = replace(planned.baseline)
    return [baseline, replace(planned, baseline=baseline)]


def to_be_looked_at(planned: list[Planned]) -> str:
    """What a user should see before it is run, because a file says it and it runs somebody's code; else empty."""
    from jaxprof.worker.again import is_of_a_user

    last = planned[-1]
    if not is_of_a_user(last):
        return ""
    lines = [f"  {shorten(spec, _WIDEST)}" for spec in last.arguments[:_MOST_LINES]]
    more = len(last.arguments) - len(lines)
    return "\n".join([last.target, *lines, *([f"  and {more} more arguments"] if more else [])])
