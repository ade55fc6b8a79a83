"""Bytes that a kernel reads from memory and writes to it.

Every operand counts once, however often it is used inside; what is computed inside a fusion causes no traffic. Only the
used part of an operand counts: a slice, dynamic slice or gather reads what it yields, and an update in place reads and
writes what it updates. The parts are fractions of elements, carried from the root of a fusion back to its parameters;
if two uses may overlap they are added, up to the whole. Caches are not modelled: the figure is the least traffic of a
kernel that finds nothing in a cache and reads nothing twice. On a TPU arrays take whole tiles, and arrays that XLA
placed in on-chip memory cause no traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from jaxprof.hlo.kernels.cost.flops import DEEPEST
from jaxprof.hlo.kernels.cost.library import SPLITS
from jaxprof.hlo.kernels.opcodes import ELEMENTWISE, base_opcode
from jaxprof.hlo.shape import HOST_MEMORY, MAIN_MEMORY, Shape
from jaxprof.hlo.text.model import Computation, Instruction

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
            # Before jax 0.12 an all-reduce gave its results alone, of which there may be several.
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
