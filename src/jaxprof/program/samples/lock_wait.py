"""Whether a sample had to wait for the interpreter's lock, and what its stack then means.

A thread that asks for the lock gets it where the holder lets go of it by itself (a call into XLA, a sleep), or after
the switch interval, wherever the holder is. In the first case the stack shows the call that let us in, and not the
Python before it, which was what ran when we knocked. Without this a program is found always at the same few calls.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

LATE_SECONDS: Final = 0.0002
"""Waiting for less than this is a call's own dispatch, and as good as inside the call."""
LATE_SECONDS_UNSURE: Final = 0.001
"""The same where the system does not tell whether we waited at all."""
FORCED_SHARE: Final = 0.9
"""Of the switch interval: who waited so long had the lock handed over wherever the holder was."""
_SWITCHES_OF_A_WAIT: Final = 2
"""How often a thread gives up the CPU that sleeps and then waits for the lock; without the wait, once."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How a sample got the lock."""

    waited: bool
    """Another thread held it when the sample was due."""
    let_in: bool
    """That thread let go of it by itself, at a call that it had not yet begun when the sample was due."""


def judge_wait(late_seconds: float, switches: int | None) -> Wait:
    """What the lateness of a sample says.

    `switches`: how often our thread gave up the CPU from before its sleep until now; None where the system does not
    tell.
    """
    if switches is None:
        waited = late_seconds > LATE_SECONDS_UNSURE
    else:
        waited = switches >= _SWITCHES_OF_A_WAIT and late_seconds > LATE_SECONDS
    return Wait(waited, waited and late_seconds < FORCED_SHARE * sys.getswitchinterval())
