"""The kernels of a module: one value for each instruction that launches work, in the order of execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.cost import Cost, CostModel
from jaxprof.hlo.analysis.execution import Execution
from jaxprof.hlo.analysis.kinds import Kind, fused, kind_of
from jaxprof.hlo.analysis.opcodes import base_opcode
from jaxprof.hlo.analysis.origin import OpPath, Origin, Place, op_path, origins
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.analysis.traffic import TrafficModel

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.execution import Launch
    from jaxprof.hlo.model import Instruction, Module, Shape

MATRIX_KINDS: Final = frozenset({"GEMM", "convolution", "attention"})
"""Kinds whose FLOPs run on matrix units where the device has them."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An instruction that launches work. Figures are of one execution; `count` says how many there are."""

    name: str
    """The instruction's name, which is also the `hlo_op` of a trace."""
    computation: str
    """Where it stands: the entry, a loop's body, a branch."""
    kind: str
    """In words: `loop fusion`, `GEMM`, `all-reduce`."""
    opcode: str
    """XLA's word; of an asynchronous pair that of the operation itself (`all-reduce`, not `all-reduce-start`)."""
    instructions: int
    """Instructions inside, those of nested fusions too, parameters not counted; 1 for what is no fusion."""
    flops: float | None
    """None where the text does not tell (an opaque library call)."""
    transcendentals: float | None
    bytes_read: int
    bytes_written: int
    count: int | None
    """Executions in one run of the module; None where a loop's trip count is not known."""
    conditional: bool
    """In a branch that may not be taken: `count` is then an upper bound."""
    asynchronous: bool
    """It overlaps with what stands between its start and its done."""
    estimated: bool
    """`flops` is an estimate that depends on a library's algorithm."""
    target: str
    """The library's target or the code generator; empty for XLA's own emitters."""
    dtype: str
    """What it computes with: for a GEMM the dtype of its operands, else of its result."""
    precision: str
    """Of a GEMM or convolution as JAX asked for it: `default`, `high`, `highest`, or an algorithm's name."""
    shape: Shape
    """Of its result, with layout."""
    origins: tuple[Origin, ...]
    """Where it came from, its own place first; several where several lines were fused."""
    operand_bytes: tuple[tuple[str, int], ...]
    """Bytes that are read of each operand, by the operand's name."""

    @property
    def bytes(self) -> int:
        """Bytes read and written by one execution."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """Operational intensity: FLOPs for each byte moved; None where either is unknown or nothing is moved."""
        return None if self.flops is None or not self.bytes else self.flops / self.bytes

    @property
    def total_flops(self) -> float | None:
        """Of all executions; None where FLOPs or count are unknown."""
        return None if self.flops is None or self.count is None else self.flops * self.count

    @property
    def total_bytes(self) -> float | None:
        return None if self.count is None else float(self.bytes * self.count)

    @property
    def op_name(self) -> str:
        return self.origins[0].op_name if self.origins else ""

    @property
    def path(self) -> OpPath:
        """`op_name` taken apart: functions, scopes, primitive, forward or backward."""
        return op_path(self.op_name)

    @property
    def source(self) -> Place | None:
        """The first source line that is known."""
        return next((origin.source for origin in self.origins if origin.source), None)

    @property
    def uses_matrix_units(self) -> bool:
        return self.kind in MATRIX_KINDS


@dataclass(frozen=True, slots=True)
class Totals:
    """The cost of one run of a module: loops multiplied, of a conditional the branch that costs most."""

    cost: Cost
    bytes_read: int
    bytes_written: int
    complete: bool
    """False where a loop's trip count is unknown (its body is counted once) or a call is opaque."""

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


class KernelTable:
    """Builds the kernels of one module, and keeps what the other parts of the analysis ask for again."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.execution = Execution(module)
        self.costs = CostModel()
        self.traffic = TrafficModel(tiled=platform_of(module) == "tpu")
        self.launches = tuple(self.execution.launches())
        self.kernels = tuple(self._kernel(launch) for launch in self.launches)

    def _kernel(self, launch: Launch) -> Kernel:
        instruction = launch.instruction
        opcode = instruction.opcode
        held = fused(instruction) if opcode == "fusion" else []
        kind = kind_of(instruction, held)
        cost = self.costs.instruction(instruction)
        traffic = self.traffic.kernel(instruction)
        heavy = _heaviest(instruction, held)
        wrapped = instruction.wrapped_opcode if opcode == "async-start" else ""
        return Kernel(
            name=instruction.name,
            computation=instruction.computation.name,
            kind=kind.words,
            opcode=wrapped or base_opcode(opcode),
            instructions=len(held) if opcode == "fusion" else 1,
            flops=None if cost.opaque else cost.flops,
            transcendentals=None if cost.opaque else cost.transcendentals,
            bytes_read=traffic.read,
            bytes_written=traffic.written,
            count=launch.count,
            conditional=launch.conditional,
            asynchronous=opcode.endswith("-start") or opcode in ("send", "recv"),
            estimated=cost.estimated,
            target=kind.target,
            dtype=_dtype(instruction, heavy, kind),
            precision=_precision(heavy) if kind.words in MATRIX_KINDS else "",
            shape=instruction.shape,
            origins=origins(instruction, held),
            operand_bytes=traffic.operands,
        )

    def totals(self) -> Totals:
        """What one run of the module costs."""
        execution = self.execution
        known: dict[str, Totals] = {}
        by_place = {(kernel.computation, kernel.name): kernel for kernel in self.kernels}
        for name in execution.post_order():
            total = _NO_TOTAL
            for instruction in execution.launching[name]:
                kernel = by_place[name, instruction.name]
                total = _add(total, _of_kernel(kernel, self.costs.instruction(instruction)), 1)
            alternatives: dict[str, Totals] = {}
            for edge in execution.edges[name]:
                part = known.get(edge.callee, _NO_TOTAL)
                if edge.branch:
                    best = alternatives.get(edge.caller.name)
                    alternatives[edge.caller.name] = part if best is None else max(best, part, key=_weight)
                else:
                    total = _add(total, part, edge.times)
            for part in alternatives.values():
                total = _add(total, part, 1)
            known[name] = total
        entry = self.module.entry
        return known.get(entry.name, _NO_TOTAL) if entry is not None else _NO_TOTAL


_NO_TOTAL: Final = Totals(Cost(), 0, 0, True)


def _weight(total: Totals) -> tuple[float, int]:
    return total.cost.flops + total.cost.transcendentals, total.bytes


def _of_kernel(kernel: Kernel, cost: Cost) -> Totals:
    return Totals(cost, kernel.bytes_read, kernel.bytes_written, not cost.opaque)


def _add(total: Totals, part: Totals, times: int | None) -> Totals:
    count = 1 if times is None else times
    return Totals(
        total.cost + part.cost.times(count),
        total.bytes_read + part.bytes_read * count,
        total.bytes_written + part.bytes_written * count,
        total.complete and part.complete and times is not None,
    )


_HEAVY: Final = ("dot", "ragged-dot", "scaled-dot", "convolution")


def _heaviest(instruction: Instruction, held: list[Instruction]) -> Instruction:
    """The instruction that gives a kernel its dtype: the first dot or convolution in it, or itself."""
    return next((inner for inner in held if inner.opcode in _HEAVY), instruction)


def _dtype(instruction: Instruction, heavy: Instruction, kind: Kind) -> str:
    if kind.words in MATRIX_KINDS:
        operand = heavy.operand(0)
        if operand is not None:
            leaves = operand.shape.leaves()
            if leaves:
                return leaves[0].dtype
    leaves = instruction.shape.leaves()
    return leaves[0].dtype if leaves else ""


def _precision(heavy: Instruction) -> str:
    attributes = heavy.attributes
    if "algorithm" in attributes:
        return attributes["algorithm"]
    asked = attributes.get("operand_precision", "").strip("{}").split(",")
    order = ("highest", "high")
    return next((level for level in order if level in asked), "default")
