"""FLOPs and transcendentals of instructions, from their shapes: a table from the opcode to the formula.

The convention is that of XLA's own `HloCostAnalysis`, so that totals can be compared with `compiled.cost_analysis()`:
one FLOP per element for every elementwise operation of any dtype, two for a multiplication and an addition of a dot;
transcendentals are counted separately. This module departs from it (`docs/hlo.md` lists the places) where XLA counts
nothing, or counts once what runs many times. What the text does not show is counted as opaque, never as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, log2, prod

from jaxprof.hlo.kernels.cost import NOTHING, OPAQUE, Cost, NotShownError, library
from jaxprof.hlo.kernels.cost.library import first_leaf
from jaxprof.hlo.kernels.cost.linear import convolution_flops, dot_flops, is_spread_reduction, matmul_flops, windows
from jaxprof.hlo.kernels.opcodes import (
    ARITHMETIC,
    COLLECTIVES,
    CONTROL,
    FINISHING,
    FREE,
    MOVING,
    TRANSCENDENTAL,
    base_opcode,
)
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text.model import Computation, Instruction

_COMPLEX_FLOPS = {"add": 2, "subtract": 2, "multiply": 6, "divide": 11, "abs": 3}
DEEPEST = 100
"""Most nested calls that are followed. XLA's own modules have a few; a file may nest deeper than Python's stack."""
_ZERO = FREE | MOVING | FINISHING


class CostModel:
    """Costs of the instructions and computations of one module; each computation is summed once."""

    def __init__(self) -> None:
        self._known: dict[str, Cost] = {}
        self._depth = 0

    def computation(self, computation: Computation | None) -> Cost:
        """Return the cost of running every instruction of the computation once."""
        if computation is None or self._depth > DEEPEST:
            return OPAQUE
        cost = self._known.get(computation.name)
        if cost is None:
            self._known[computation.name] = OPAQUE  # a computation that calls itself (malformed text) ends here
            self._depth += 1
            cost = self._known[computation.name] = sum(map(self.instruction, computation.instructions), NOTHING)
            self._depth -= 1
        return cost

    def instruction(self, instruction: Instruction) -> Cost:
        """Return the cost of one execution; for a fusion, call or loop body the sum of its instructions, each once."""
        opcode = instruction.opcode
        if opcode in _ZERO:
            return NOTHING
        if not instruction.shape.dtype:
            return OPAQUE  # an array that cannot exist
        if opcode in ARITHMETIC:
            shape = instruction.shape
            factor = _COMPLEX_FLOPS.get(opcode, 1) if shape.dtype in ("c64", "c128") else 1
            return Cost(flops=float(shape.elements * factor))
        if opcode in TRANSCENDENTAL:
            return Cost(transcendentals=float(instruction.shape.elements))
        formula = _FORMULAS.get(opcode)
        if formula is not None:
            try:
                cost = formula(self, instruction)
            except (NotShownError, OverflowError):  # a window or a factor of a hundred digits
                return OPAQUE
            return cost if cost.flops < inf and cost.transcendentals < inf else OPAQUE
        if opcode == "fusion" or opcode in CONTROL or opcode == "async-start":
            total = NOTHING
            for name in instruction.called:
                total += self.computation(instruction.computation.module.get(name))
            return total
        if base_opcode(opcode) in ("all-reduce", "reduce-scatter"):
            elements = sum(operand.shape.elements for operand in instruction.operand_instructions())
            return self.cost_of_called(instruction).times(elements)
        return NOTHING if base_opcode(opcode) in COLLECTIVES else OPAQUE

    def cost_of_called(self, instruction: Instruction, number: int = 0) -> Cost:
        """Return the cost of one run of the computation that the instruction applies (a reducer, a comparator)."""
        names = instruction.called
        if number >= len(names):
            return OPAQUE
        return self.computation(instruction.computation.module.get(names[number]))


def _operand_shape(instruction: Instruction, number: int) -> Shape:
    operand = instruction.operand(number)
    if operand is None or not operand.shape.is_array:
        raise NotShownError
    return operand.shape


def _dot(_: CostModel, instruction: Instruction) -> Cost:
    lhs, rhs = _operand_shape(instruction, 0), _operand_shape(instruction, 1)
    result = instruction.shape
    if "lhs_contracting_dims" in instruction.attributes:
        return Cost(flops=dot_flops(lhs, result, instruction.integers("lhs_contracting_dims")))
    return Cost(flops=matmul_flops(lhs, rhs, result))


def _convolution(_: CostModel, instruction: Instruction) -> Cost:
    source, kernel = _operand_shape(instruction, 0), _operand_shape(instruction, 1)
    return Cost(convolution_flops(instruction, source, kernel, instruction.shape))


def _reduce(model: CostModel, instruction: Instruction) -> Cost:
    operations = _operand_shape(instruction, 0).elements - first_leaf(instruction).elements
    return model.cost_of_called(instruction).times(max(0, operations))


def _reduce_window(model: CostModel, instruction: Instruction) -> Cost:
    """Count one operation less than the window has positions, per element of the result, including padding as XLA does.

    XLA for TPUs writes a reduction whose result is broadcast again as a window that sees the whole dimension from every
    position; that costs one reduction.
    """
    source, result = _operand_shape(instruction, 0), first_leaf(instruction)
    sliding = windows(instruction)
    if is_spread_reduction(instruction):
        left = prod(size for window, size in zip(sliding, source.dimensions, strict=True) if window.size == 1)
        return model.cost_of_called(instruction).times(max(0, source.elements - left))
    size = prod(window.size for window in sliding)
    return model.cost_of_called(instruction).times((size - 1) * result.elements)


def _select_and_scatter(model: CostModel, instruction: Instruction) -> Cost:
    source = _operand_shape(instruction, 1)
    size = prod(window.size for window in windows(instruction))
    select = model.cost_of_called(instruction, 0).times((size - 1) * source.elements)
    return select + model.cost_of_called(instruction, 1).times(source.elements)


def _sort(model: CostModel, instruction: Instruction) -> Cost:
    """Count the comparisons of a merge sort: n ceil(log2 n) per row. This is an estimate, because a radix sort compares
    nothing."""
    keys = _operand_shape(instruction, 0)
    along = instruction.integers("dimensions")
    if not along or not 0 <= along[0] < keys.rank:
        return OPAQUE
    steps = ceil(log2(max(2, keys.dimensions[along[0]])))
    return replace(model.cost_of_called(instruction).times(keys.elements * steps), estimated=True)


def _fft(_: CostModel, instruction: Instruction) -> Cost:
    """Count 5 n log2 n for n complex points (Cooley and Tukey, radix 2), half of that if one side is real."""
    source = _operand_shape(instruction, 0)
    points = prod(instruction.integers("fft_length"))
    if points < 1:
        return OPAQUE
    is_real = "R" in instruction.attributes.get("fft_type", "")
    elements = max(source.elements, instruction.shape.elements) if is_real else source.elements
    transform = 5.0 * elements * log2(max(2, points))
    return Cost(flops=transform / 2 if is_real else transform, estimated=True)


def _random(_: CostModel, instruction: Instruction) -> Cost:
    """Count one transcendental per element, XLA's own convention for a generator."""
    leaves = instruction.shape.leaves()
    return Cost(transcendentals=float(leaves[-1].elements), estimated=True) if leaves else OPAQUE


_FORMULAS: dict[str, Callable[[CostModel, Instruction], Cost]] = {
    "dot": _dot,
    "ragged-dot": _dot,
    "scaled-dot": _dot,
    "convolution": _convolution,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "scatter": lambda model, update: model.cost_of_called(update).times(_operand_shape(update, -1).elements),
    "map": lambda model, instruction: model.cost_of_called(instruction).times(instruction.shape.elements),
    "sort": _sort,
    "fft": _fft,
    "triangular-solve": lambda _model, instruction: library.cost_as("triangular solve", instruction),
    "cholesky": lambda _model, instruction: library.cost_as("Cholesky", instruction),
    "topk": lambda _model, instruction: library.cost_as("top-k", instruction),
    "rng": _random,
    "rng-bit-generator": _random,
    "rng-get-and-update-state": lambda _model, _instruction: NOTHING,
    "custom-call": lambda _model, instruction: library.cost_of(instruction),
}
