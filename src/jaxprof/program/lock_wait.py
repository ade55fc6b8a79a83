"""What it means that a sample came late: somebody held the interpreter's lock.

A thread that asks for the lock gets it where the holder lets go of it by itself (a call into XLA, a sleep), or after
the switch interval, wherever the holder is. In the first case the stack shows the call that let us in, and not the
Python before it, which was what ran when we knocked. Unless the program calls into XLA all the time: then we were too
slow to get in at the calls before, and the stack is right. The late samples of the second kind tell which it is.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Final

LATE_SECONDS: Final = 0.00025
"""Later than this, beyond what the scheduler itself caused, is waiting for the lock."""
LATE_SECONDS_UNSURE: Final = 0.001
"""The same where the scheduler's part is not known."""
FORCED_SHARE: Final = 0.9
"""Of the switch interval: who waited so long had the lock handed over wherever the holder was."""
_EVIDENCE: Final = 3
_CODES_AT_MOST: Final = 2_000

FREE, PYTHON, AS_SEEN = "free", "python", "as seen"


class LockWaits:
    """Judges how late a sample was."""

    def __init__(self) -> None:
        self._forced: dict[int, tuple[CodeType, int, int]] = {}
        """By id of the code of the innermost frame: forced samples, and those of them at a call that lets go."""

    def judge(
        self, late_seconds: float, scheduler_seconds: float | None, code: CodeType | None, *, lets_go: bool
    ) -> str:
        """`FREE`: the lock was free. `PYTHON`: Python ran when we knocked, the call seen came after. `AS_SEEN`: the
        thread held the lock, and the stack shows at what. `lets_go`: the stack is at a call that releases the lock."""
        late = late_seconds - (scheduler_seconds or 0.0)
        if late <= (LATE_SECONDS_UNSURE if scheduler_seconds is None else LATE_SECONDS):
            return FREE
        forced = late >= FORCED_SHARE * sys.getswitchinterval()
        if code is None:
            return AS_SEEN if forced else PYTHON
        _, count, calls = self._forced.get(id(code), (code, 0, 0))
        if forced:
            if len(self._forced) >= _CODES_AT_MOST:
                self._forced.clear()
            self._forced[id(code)] = (code, count + 1, calls + lets_go)
            return AS_SEEN
        if not lets_go or (count >= _EVIDENCE and calls > count / 2):
            return AS_SEEN
        return PYTHON
