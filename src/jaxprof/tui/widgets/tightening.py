"""How the interval of a median got narrower as samples came: its half width at each doubling of their number."""

from __future__ import annotations

from collections.abc import Sequence

from jaxprof.units import percent

_FIRST = 8
_SHOWN = 4
"""Steps that are told: the first, and the last ones."""


class Tightening:
    """Keeps what was computed: each doubling costs one bootstrap, once."""

    def __init__(self) -> None:
        self._steps: dict[str, list[tuple[int, float]]] = {}

    def of(self, run: str, samples: Sequence[float]) -> str:
        """`interval so far: ± 8.1 % at 8 samples, …, 2.2 % at 128, 1.1 % at 256`; empty before the first step."""
        from jaxprof.stats import summarise

        known = self._steps.setdefault(run, [])
        count = _FIRST << len(known)
        while count <= len(samples):
            summary = summarise(samples[:count])
            half = summary.relative_halfwidth if summary is not None else None
            known.append((count, half if half is not None else float("nan")))
            count <<= 1
        if not known:
            return ""
        texts = [f"{percent(half)} at {count}" for count, half in known]
        between = ["…"] if len(texts) > _SHOWN else []
        return "interval so far: ± " + ", ".join([f"{texts[0]} samples", *between, *texts[1:][1 - _SHOWN :]])
