"""What a kernel costs, counted from its shapes: FLOPs, bytes, and the least time that a device needs for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of computing, without that of moving data (`jaxprof.hlo.analysis.cost.traffic`)."""

    flops: float = 0.0
    transcendentals: float = 0.0
    """exp, tanh, sqrt and similar: one per element, not included in `flops`."""
    estimated: bool = False
    """Whether a part of the cost depends on the library's algorithm (sort, FFT, factorisations) or on the data."""
    opaque: bool = False
    """Whether the text does not show a part of the cost; the figures are then a lower bound."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.estimated or other.estimated,
            self.opaque or other.opaque,
        )

    def times(self, count: float) -> Cost:
        """Return the cost of `count` executions."""
        return Cost(self.flops * count, self.transcendentals * count, self.estimated, self.opaque)


NOTHING: Final = Cost()
OPAQUE: Final = Cost(opaque=True)
