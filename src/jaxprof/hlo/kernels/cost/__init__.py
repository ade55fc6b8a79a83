"""What a kernel costs, counted from its shapes: FLOPs, bytes, and the least time that a device needs for them."""

from __future__ import annotations

from dataclasses import replace

from jaxprof.base.values import frozen


@frozen
class Cost:
    """Cost of an instruction, a computation, or one run of a module. Bytes are those of whole kernels
    (`jaxprof.hlo.kernels.cost.traffic`): an instruction inside one has none."""

    flops: float = 0.0
    transcendentals: float = 0.0
    """exp, tanh, sqrt and similar: one per element, not included in `flops`."""
    bytes: int = 0
    """Bytes read and written."""
    estimated: bool = False
    """Whether a part of the cost depends on the library's algorithm (sort, FFT, factorisations) or on the data."""
    opaque: bool = False
    """Whether FLOPs are missing, and those given are a lower bound: a call is opaque, a computation is not in the text,
    or a loop's trip count is unknown (its body is counted once)."""
    unsized: bool = False
    """Whether bytes are missing for the same reasons, except opaque calls, whose operands and results are known."""
    written: int = 0
    """The part of `bytes` that is written."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            self.estimated or other.estimated,
            self.opaque or other.opaque,
            self.unsized or other.unsized,
            self.written + other.written,
        )

    def times(self, count: int | None) -> Cost:
        """Return the cost of `count` executions; if their number is unknown, that of one, marked as incomplete."""
        if count is None:
            return replace(self, opaque=True, unsized=True)
        flops, transcendentals = self.flops * count, self.transcendentals * count
        moved, written = self.bytes * count, self.written * count
        return replace(self, flops=flops, transcendentals=transcendentals, bytes=moved, written=written)


class NotShownError(Exception):
    """Raised by a formula if the text does not show what it needs."""


NOTHING = Cost()
OPAQUE = Cost(opaque=True)
