"""How a run ended, also one whose session was cut off before it could be said."""

from __future__ import annotations

from dataclasses import dataclass

from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is one of `events.STATUSES`; `queued` and `running` only in a session that is being written now."""

    status: str
    error: str
    advice: str


def outcome(session: Session, run: Run, *, live: bool = False) -> Outcome:
    """The outcome of `run`. `live`: a process is writing the session's file at this moment."""
    if run.over or live:
        return Outcome(run.status, run.error, run.advice)
    again = "Run it again to have it."
    if run.status == "queued":
        return Outcome("cancelled", "the session ended before this run began", again)
    where = f", in phase {run.current_phase}" if run.current_phase else ""
    return Outcome("crashed", f"the session was cut off in the middle of this run{where}", again)


def failed(session: Session, *, live: bool = False) -> list[Run]:
    """The runs that did not end well."""
    return [run for run in session.runs.values() if outcome(session, run, live=live).status != "ok"]
