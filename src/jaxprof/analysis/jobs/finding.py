"""One thing that is wrong with a job."""

from __future__ import annotations

from dataclasses import dataclass

from jaxprof.events import SourceLocation


@dataclass(frozen=True, slots=True)
class JobFinding:
    """What is wrong with one process of the job, or with all of them."""

    code: str
    """`process-failed`, `failed-after`, `recompiles-alone`, `process-stopped`, `straggler`, `slow-device`,
    `uneven-shards`, `throttled-device` or `exposed-exchange`."""
    index: int | None
    """Of the process; None for what all of them have."""
    message: str
    advice: str
    part: str = ""
    """Of a process that is late: the part of its loop, `own` where it is not known which one, or `device`."""
    seconds: float | None = None
    """What it cost: by a straggler's own part an estimate, by compilations as JAX announced it; None if unknown."""
    where: SourceLocation | None = None
    """The line that takes most of it."""
    since_seconds: float | None = None
    """Of a straggler: how long its loop had gone on when it became late; 0 from the start."""
    until_seconds: float | None = None
    """How long its loop had gone on when it was late no more; None if it is late to the end."""
    since_step: int | None = None
    """Number of the first step from which it is late; None if steps were not numbered."""
