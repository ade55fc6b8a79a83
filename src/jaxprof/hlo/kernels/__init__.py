"""What a module's text shows about its kernels: what they are, what they cost, where they came from, why not fused.

    from jaxprof.hlo.kernels.kernels import kernels
    for kernel in kernels(module): ...

Pure functions over `jaxprof.hlo.text.model`; standard library only. Figures are counted from shapes (`docs/hlo.md` says
how), so they are the same on every machine; they give the least time of a kernel, not the time that it took.

Here: HLO's opcodes by the classes that the analysis uses, as data. The words are XLA's (`xla/hlo/ir/hlo_opcode.h`). An
opcode in none of these tables is unknown to this version: its cost is unknown, never 0.
"""

from __future__ import annotations

NAMING = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain"})
"""Opcodes whose result is their first operand under another name."""

FREE = NAMING | {
    "parameter", "constant", "tuple", "get-tuple-element", "after-all", "partition-id", "replica-id",
    "get-dimension-size", "set-dimension-size", "create-token",
}  # fmt: skip
"""Opcodes that launch nothing: names for existing values, or bookkeeping between them."""

CONTROL = frozenset({"while", "call", "conditional"})
"""Opcodes that launch what the computations that they call launch."""

FINISHING = frozenset(
    {
        "async-update", "async-done", "all-gather-done", "all-reduce-done", "collective-permute-done", "copy-done",
        "send-done", "recv-done",
    }
)  # fmt: skip
"""Second halves of asynchronous pairs, counted with the first."""

TRANSCENDENTAL = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosine", "cosh", "erf", "exponential",
        "exponential-minus-one", "log", "log-plus-one", "logistic", "power", "rsqrt", "sine", "sinh", "sqrt", "tan",
        "tanh",
    }
)  # fmt: skip
"""Elementwise opcodes counted separately from FLOPs, one per element, as `HloCostAnalysis` does."""

ARITHMETIC = frozenset(
    {
        "abs", "add", "and", "bitcast-convert", "ceil", "clamp", "compare", "complex", "convert",
        "count-leading-zeros", "divide", "floor", "imag", "is-finite", "maximum", "minimum", "multiply", "negate",
        "not", "or", "popcnt", "real", "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even",
        "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "stochastic-convert",
        "subtract", "xor",
    }
)  # fmt: skip
"""Elementwise opcodes with one FLOP per element for any dtype: the convention of `HloCostAnalysis`, comparisons
included.
"""

MOVING = frozenset(
    {
        "broadcast", "concatenate", "copy", "copy-start", "dynamic-reshape", "dynamic-slice",
        "dynamic-update-slice", "gather", "infeed", "iota", "outfeed", "pad", "recv", "reshape", "reverse", "send",
        "slice", "transpose",
    }
)  # fmt: skip
"""Opcodes that move or make data without arithmetic."""

COLLECTIVES = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
"""Opcodes that communicate with other devices, in the synchronous form; `base_opcode` converts the asynchronous one."""

PRODUCTS = frozenset({"dot", "ragged-dot", "scaled-dot", "convolution"})
"""Opcodes of matrix products and convolutions."""

SAME_PLACE = frozenset({"bitcast", "reshape", "copy", "transpose", "convert", "reverse", "bitcast-convert"})
"""Opcodes whose one operand has as many elements as the result: the fraction needed of the result is needed of the
operand.
"""

ELEMENTWISE = ARITHMETIC | TRANSCENDENTAL | SAME_PLACE
"""Opcodes that give one element for each element of every operand."""


def base_opcode(opcode: str) -> str:
    """Return the operation that an opcode starts: `all-reduce` for `all-reduce-start`, `copy` for `copy-start`."""
    return opcode.removesuffix("-start")
