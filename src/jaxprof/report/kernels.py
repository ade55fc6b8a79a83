"""The kernels of a run as data. The HLO room is imported only for a run that has HLO."""

from __future__ import annotations

from typing import Any

from jaxprof.session import Run, Session


def kernels_json(session: Session, run: Run) -> list[dict[str, Any]] | None:
    """The documented keys of each kernel, in the order of execution; None where there is no HLO that can be read."""
    if "hlo" not in run.texts:
        return None
    from jaxprof.results.kernels import kernels_of

    found = kernels_of(session, run.id)
    return None if found is None else [kernel.to_dict() for kernel in found]
