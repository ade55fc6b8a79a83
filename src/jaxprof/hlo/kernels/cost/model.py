"""FLOPs and transcendentals of instructions, from their shapes: a table from the opcode to the formula; and the bytes
that a kernel reads from memory and writes to it.

The convention is that of XLA's own `HloCostAnalysis`, so that totals can be compared with `compiled.cost_analysis()`:
one FLOP per element for every elementwise operation of any dtype, two for a multiplication and an addition of a dot;
transcendentals are counted separately. This module departs from it (`docs/hlo.md` lists the places) where XLA counts
nothing, or counts once what runs many times. What the text does not show is counted as opaque, never as 0.

Of the bytes every operand counts once, however often it is used inside; what is computed inside a fusion causes no
traffic. Only the used part of an operand counts: a slice, dynamic slice or gather reads what it yields, and an update
in place reads and writes what it updates. The parts are fractions of elements, carried from the root of a fusion back
to its parameters; if two uses may overlap they are added, up to the whole. Caches are not modelled: the figure is the
least traffic of a kernel that finds nothing in a cache and reads nothing twice. On a TPU arrays take whole tiles, and
arrays that XLA placed in on-chip memory cause no traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, log2, prod
from operator import attrgetter

from jaxprof.hlo.kernels import (
    ARITHMETIC,
    COLLECTIVES,
    CONTROL,
    ELEMENTWISE,
    FINISHING,
    FREE,
    MOVING,
    TRANSCENDENTAL,
    base_opcode,
)
from jaxprof.hlo.kernels.cost import (
    NOTHING,
    OPAQUE,
    Cost,
    NotShownError,
    convolution_flops,
    dot_flops,
    is_spread_reduction,
    library,
    matmul_flops,
    windows,
)
from jaxprof.hlo.kernels.cost.library import SPLITS, first_leaf
from jaxprof.hlo.shape import HOST_MEMORY, MAIN_MEMORY, Shape
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
        """Return the cost of executing once what the instruction applies (a reducer, a comparator)."""
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


_SLICING = frozenset({"slice", "dynamic-slice", "gather"})
_UPDATING = frozenset({"dynamic-update-slice", "scatter"})


class TrafficModel:
    """Traffic of the kernels of one module; each fused computation is walked once."""

    def __init__(self, *, tiled: bool = False) -> None:
        self._known: dict[str, tuple[tuple[float, ...], int, int]] = {}
        self._size: Callable[[Shape], int] = _bytes_in_tiles if tiled else attrgetter("bytes")
        """Bytes of a shape in main memory; `tiled` for TPU modules, whose layouts name tiles and memory spaces."""
        self._depth = 0

    def kernel(self, instruction: Instruction) -> tuple[int, int, tuple[int, ...]]:
        """Return the bytes that one execution of `instruction`, a kernel, reads and writes, and those that it reads of
        each distinct operand."""
        fractions, constants, written = self._parts(instruction)
        used: dict[str, float] = {}
        for number, name in enumerate(instruction.operands):
            fraction = fractions[number] if number < len(fractions) else 1.0
            used[name] = min(1.0, used.get(name, 0.0) + fraction)
        sizes = []
        for name, fraction in used.items():
            operand = instruction.computation.get(name)
            if operand is not None:
                sizes.append(round(self._size(operand.shape) * fraction))
        return sum(sizes) + constants, written, tuple(sizes)

    def _parts(self, instruction: Instruction) -> tuple[tuple[float, ...], int, int]:
        """Return the used fraction of each operand, the bytes of constants inside, and the bytes written."""
        opcode = instruction.opcode
        if opcode in ("fusion", "async-start"):
            called = instruction.callees()
            if called:
                return self.computation(called[0])
        if opcode in _SLICING or opcode in _UPDATING or opcode == "custom-call":
            fractions = tuple(_demand(instruction, number, 1.0, True) for number in range(len(instruction.operands)))
        else:
            fractions = ()  # every operand is read whole
        return fractions, 0, self._result_bytes(instruction, opcode)

    def computation(self, computation: Computation) -> tuple[tuple[float, ...], int, int]:
        """Return the same three values as `_parts` for a fused computation, whose parameters are the operands."""
        parts = self._known.get(computation.name)
        if parts is None:
            if self._depth > DEEPEST:
                return (), 0, 0  # every operand is read whole
            self._known[computation.name] = ((), 0, 0)  # a computation that calls itself (malformed text) ends here
            self._depth += 1
            parts = self._known[computation.name] = self._sum_of(computation)
            self._depth -= 1
        return parts

    def _sum_of(self, computation: Computation) -> tuple[tuple[float, ...], int, int]:
        root = computation.root
        if root is None:
            return (), 0, 0
        outputs = list(root.operand_instructions()) if root.opcode == "tuple" else [root]
        used: dict[str, float] = {output.name: 1.0 for output in outputs}
        used[root.name] = 1.0
        updates: set[str] = set()
        constants = written = 0
        for output in outputs:
            update = _through_bitcasts(output)
            if is_update_of_parameter(update):
                updates.add(update.name)
                written += self._update_bytes(update)
            else:
                written += self._size(output.shape)
        fractions: dict[int, float] = {}
        for instruction in reversed(computation.instructions):
            need = used.get(instruction.name, 0.0)
            opcode = instruction.opcode
            if opcode == "parameter":
                fractions[instruction.parameter_number or 0] = min(1.0, need)
                continue
            if not need:
                continue
            if opcode == "constant" and instruction.shape.elements > 1:
                constants += round(self._size(instruction.shape) * need)
            called = instruction.callees() if opcode in ("fusion", "call") else ()
            inner = self.computation(called[0])[0] if called else None
            for number, name in enumerate(instruction.operands):
                if inner is not None:
                    part = inner[number] if number < len(inner) else 1.0
                else:
                    part = _demand(instruction, number, min(1.0, need), instruction.name in updates)
                used[name] = min(1.0, used.get(name, 0.0) + part)
        # Parameters are numbered from 0 without gaps, but a text from outside may number one 10**12.
        count = len(fractions) if all(number < len(fractions) for number in fractions) else 0
        return tuple(fractions.get(number, 0.0) for number in range(count)), constants, written

    def _update_bytes(self, instruction: Instruction) -> int:
        update = instruction.operand(1 if instruction.opcode == "dynamic-update-slice" else -1)
        whole = self._size(instruction.shape)
        if update is None or not instruction.shape.elements:
            return whole
        # The update may be on the chip, where its own bytes do not count, so take its share of the array.
        return min(whole, round(whole * update.shape.elements / instruction.shape.elements))

    def _result_bytes(self, instruction: Instruction, opcode: str) -> int:
        """Return the bytes that a single instruction writes, without the operands that an asynchronous start
        repeats."""
        shape = instruction.shape
        if opcode in _UPDATING:
            return self._update_bytes(instruction)
        if opcode in ("copy-start", "recv"):
            return self._size(shape.tuple_shapes[0] if shape.tuple_shapes else shape)
        if opcode == "send":
            return 0
        if opcode.endswith("-start") and len(shape.tuple_shapes) > 1:
            # Before jax 0.12 an all-reduce gave its results alone; there may be several.
            repeats = base_opcode(opcode) != "all-reduce" or bool(shape.tuple_shapes[0].tuple_shapes)
            return self._size(shape.tuple_shapes[1] if repeats else shape)
        if opcode == "custom-call":
            leaves = shape.leaves()
            # The last result of NVIDIA's and AMD's calls may be their scratch memory, an array of bytes.
            has_scratch = instruction.string("custom_call_target").startswith(("__cu", "xla.gpu.ext.cub"))
            if len(leaves) > 1 and has_scratch and leaves[-1].dtype in ("s8", "u8") and leaves[-1].rank == 1:
                leaves = leaves[:-1]
            return sum(map(self._size, leaves))
        return self._size(shape)


def _through_bitcasts(instruction: Instruction) -> Instruction:
    for _ in range(1000):  # in malformed text, two bitcasts may be each other's operand
        if instruction.opcode not in ("bitcast", "reshape"):
            break
        operand = instruction.operand(0)
        if operand is None or operand.shape.bytes != instruction.shape.bytes:
            break
        instruction = operand
    return instruction


def is_update_of_parameter(instruction: Instruction) -> bool:
    """Return whether the instruction is a dynamic-update-slice or scatter into a parameter, so only what it updates is
    touched.

    If the old value is still needed, XLA puts a copy before it, which is a kernel of its own.
    """
    if instruction.opcode not in _UPDATING:
        return False
    target = instruction.operand(0)
    return target is not None and _through_bitcasts(target).opcode == "parameter"


def _bytes_in_tiles(shape: Shape) -> int:
    """Return bytes in whole tiles; 0 for arrays on the chip (`S(1)` and every other space except main memory and the
    host)."""
    return sum(
        leaf.padded_bytes if leaf.rank else leaf.bytes
        for leaf in shape.leaves()
        if leaf.layout is None or leaf.layout.memory_space in (MAIN_MEMORY, HOST_MEMORY)
    )


def _share(part: Shape, whole: Shape, need: float) -> float:
    return min(1.0, need * part.elements / whole.elements) if whole.elements else 0.0


def _demand(user: Instruction, number: int, need: float, is_update: bool) -> float:
    """Return the fraction of operand `number` that `user` reads if the fraction `need` of its own value is needed."""
    opcode = user.opcode
    if opcode in ELEMENTWISE or opcode in ("concatenate", "pad"):
        return need
    operand = user.operand(number)
    if opcode == "custom-call":
        made_by = operand.string("custom_call_target") if operand is not None and operand.opcode == opcode else ""
        if made_by in ("AllocateBuffer", "CreateBuffer"):
            return 0.0  # a new buffer, which holds nothing yet
        return 0.5 if user.string("custom_call_target") in SPLITS else 1.0
    if operand is None:
        return need
    whole = operand.shape
    if opcode in _SLICING:
        return _share(user.shape, whole, need) if number == 0 else 1.0
    if opcode == "broadcast":
        return _share(user.shape, whole, need)
    if opcode in _UPDATING and number == 0:
        update = user.operand(1 if opcode == "dynamic-update-slice" else -1)
        if update is None:
            return need
        if opcode == "scatter":
            if not is_update:
                return need
            # The old value is read by a combiner such as `add`, and not by one that only returns the new value.
            combiner = user.called_root
            overwrites = combiner is not None and combiner.opcode == "parameter"
            return 0.0 if overwrites else _share(update.shape, whole, need)
        return 0.0 if is_update else max(0.0, need - _share(update.shape, whole, need))
    return 1.0 if need else 0.0
