"""One compiled program of a test: the session that describes it, and its exact facts.

The facts are those of `jaxprof gate` and `jaxprof compare`; they are derived on first use.
"""

from __future__ import annotations

from functools import cached_property

from jaxprof.analysis.memory import MemoryPicture, buffers_of
from jaxprof.analysis.run_difference import facts_of
from jaxprof.api.session import Session
from jaxprof.session import Run

UNKNOWN_MEMORY = MemoryPicture("unknown", None, (), (), (), None)


class ProgramFacts:
    """A compiled program. What is not known of it is None."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The program as a session of one run: prints as text, can be saved, and holds the HLO."""

    @property
    def kernels(self) -> int | None:
        """How many kernels one call launches, those of a loop counted once."""
        return _whole(self.facts["kernels"])

    @property
    def flops(self) -> float | None:
        """FLOPs of one call, as XLA counts them, else as the HLO says."""
        return self.facts["flops"]

    @property
    def bytes(self) -> float | None:
        """Bytes that one call reads and writes, as XLA counts them, else as the HLO says."""
        return self.facts["bytes"]

    @property
    def memory(self) -> MemoryPicture:
        """What the program holds while it runs: `peak_bytes`, and what it is made of."""
        return buffers_of(self.session, self.run.id) or UNKNOWN_MEMORY

    @property
    def failure(self) -> str:
        """Why the program is not known; empty if it is."""
        return self.run.error

    @property
    def run(self) -> Run:
        """The one run of the session."""
        (run,) = self.session.runs.values()
        return run

    @cached_property
    def facts(self) -> dict[str, float | None]:
        """Every exact fact by its code, as `jaxprof gate --fail-on` names them."""
        return facts_of(self.session, self.run)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
