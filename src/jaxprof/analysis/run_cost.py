"""The cost of one call of a run: FLOPs, transcendentals and bytes counted from its HLO, the only source of the figures.

XLA's `cost_analysis` takes the body of a loop once, however often it runs, and counts nothing for library calls. It is
read nowhere: of a session that holds it, the kept HLO is counted again. What XLA does not compile as a whole (NumPy,
op by op) has the estimate of its workload. A figure that the HLO does not tell is unknown, with the reason.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.errors import JaxprofError
from jaxprof.events import COUNTED_BY_XLA

if TYPE_CHECKING:
    from collections.abc import Collection

    from jaxprof.events import TextRecorded
    from jaxprof.hlo.analysis.kernels import ModuleTotals
    from jaxprof.hlo.model import Module
    from jaxprof.session import Run, Session

COUNTED: Final = "HLO, loops by their trip counts"
"""The source of what is counted here."""
COUNTED_FACTS: Final = frozenset({"flops", "bytes", "transcendentals"})
"""The exact facts that are, by code."""
OLD_COUNT: Final = "counted by XLA's cost analysis, which takes the body of a loop once"
"""What is said of a figure that an older version wrote."""
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of one call, on one device. None is unknown."""

    flops: float | None = None
    bytes_accessed: float | None = None
    """What its kernels read and write, each operand once."""
    transcendentals: float | None = None
    source: str = ""
    """`COUNTED`, or who estimated it; empty where nothing is known."""
    note: str = ""
    """Why a figure is unknown, or why it is an upper bound; empty where neither is so."""


NOTHING_KNOWN: Final = RunCost()
BEING_COUNTED: Final = "its HLO is being counted"
_PROMPT_BYTES: Final = 1 << 18
_counted: dict[str, RunCost] = {}
_MOST_KEPT: Final = 1024


def run_cost(session: Session, run: Run) -> RunCost:
    """The cost of one call of `run`. Counts its HLO, a text once in a process: 0.1 s for each MB of it."""
    kept = run.texts.get("hlo")
    if kept is not None:
        key = _key(kept)
        cost = _counted.get(key)
        if cost is None:
            cost = _count(session, run)
            if len(_counted) >= _MOST_KEPT:
                _counted.clear()
            if not kept.digest or kept.digest in session.texts:  # the chunks of a text may still be on their way
                _counted[key] = cost
        return cost
    reported = run.cost
    if reported is None:
        return NOTHING_KNOWN
    if reported.source == COUNTED_BY_XLA:
        return RunCost(note=f"its HLO was not kept, and its figure is {OLD_COUNT}")
    return RunCost(reported.flops, reported.bytes_accessed, reported.transcendentals, reported.source)


def prompt_cost(session: Session, run: Run) -> RunCost:
    """The same for who cannot wait, as a screen: of a long HLO nothing until somebody has called `run_cost`."""
    return RunCost(note=BEING_COUNTED) if is_uncounted(run) else run_cost(session, run)


def is_uncounted(run: Run) -> bool:
    """Whether counting takes longer than a screen may wait."""
    kept = run.texts.get("hlo")
    return kept is not None and kept.bytes > _PROMPT_BYTES and _key(kept) not in _counted


def _key(text: TextRecorded) -> str:
    return text.digest or hashlib.sha256(text.text.encode("utf-8", "backslashreplace")).hexdigest()


def _count(session: Session, run: Run) -> RunCost:
    from jaxprof.hlo.open.parsed import modules

    try:
        text = session.text(run.id, "hlo")
        return module_cost(modules(text)[0]) if text else NOTHING_KNOWN
    except JaxprofError as error:
        return RunCost(note=f"its HLO cannot be read: {error}")


def module_cost(module: Module) -> RunCost:
    """The cost of one run of `module`."""
    from jaxprof.hlo.analysis.kernels import totals

    if module.entry is None:
        return RunCost(note="its HLO has no entry computation")
    whole = totals(module)
    return RunCost(
        flops=whole.cost.flops if whole.complete else None,
        bytes_accessed=float(whole.bytes) if whole.sized else None,
        transcendentals=whole.cost.transcendentals if whole.complete else None,
        source=COUNTED,
        note=_note(module, whole),
    )


def _note(module: Module, whole: ModuleTotals) -> str:
    from jaxprof.hlo.analysis.kernels import analysis_of, kernels

    parts: list[str] = []
    edges = [edge for edges in analysis_of(module).execution.edges.values() for edge in edges]
    if not whole.complete or not whole.sized:
        loops = dict.fromkeys(edge.caller.name for edge in edges if edge.times is None)
        if loops:
            parts.append(f"how often a loop runs is not in its HLO: {_names(loops)}")
        opaque = {kernel.name: kernel for kernel in kernels(module) if kernel.flops is None}
        if opaque:
            named = [f"{name} ({each.target})" if each.target else name for name, each in opaque.items()]
            parts.append(f"what a call computes is not in its HLO: {_names(named)}")
        if not parts:
            parts.append("its HLO is not whole")
    if any(edge.branch for edge in edges):
        parts.append("at most: of a conditional the most expensive branch counts")
    return "; ".join(parts)


def _names(found: Collection[str]) -> str:
    more = len(found) - _NAMED
    return ", ".join(list(found)[:_NAMED]) + (f" and {more} more" if more > 0 else "")
