"""The kernels of a run, from its HLO text; parsed once for each text."""

from __future__ import annotations

from functools import lru_cache

from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis import Kernel, kernels
from jaxprof.hlo.parse import module
from jaxprof.session import Session


def kernels_of(session: Session, run_id: str) -> tuple[Kernel, ...] | None:
    """The kernels in the order of execution; None where the run has no HLO, or it cannot be read."""
    recorded = session.runs[run_id].texts.get("hlo")
    if recorded is None:
        return None
    try:
        text = session.text(run_id, "hlo")
        return _kernels(text) if text else None
    except JaxprofError:
        return None


@lru_cache(maxsize=64)
def _kernels(text: str) -> tuple[Kernel, ...]:
    return tuple(kernels(module(text)))
