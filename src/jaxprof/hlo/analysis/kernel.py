"""A kernel: an instruction that launches work, with what it costs and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.analysis.origin import HloSourceLocation, OpPath, Origin, op_path, origins, sources_of

if TYPE_CHECKING:
    from jaxprof.hlo.model import Instruction, Module
    from jaxprof.hlo.shape import Shape

MATRIX_KINDS: Final = frozenset({"GEMM", "convolution", "attention"})
"""Kinds whose FLOPs run on matrix units where the device has them."""


_MOST_KNOWN: Final = 1 << 16


def _by_metadata(module: Module) -> dict[str, tuple[Origin, ...]]:
    """The origins of what is no fusion, by the text of its metadata: a loop that was unrolled has the same ones."""
    return {}


@dataclass(frozen=True, slots=True)
class KernelTraits:
    """What kernels of the same shape share. `Kernel` describes the fields."""

    kind: str
    opcode: str
    instructions: int
    flops: float | None
    transcendentals: float | None
    bytes_read: int
    bytes_written: int
    estimated: bool
    target: str
    dtype: str
    precision: str
    sizes: tuple[int, ...]
    """Bytes read of each operand, each operand once."""
    results: int
    """Arrays that it writes: of a tuple its members."""
    unsized: bool


class Kernel:
    """An instruction that launches work. Figures are of one execution; `count` says how many there are.

    A module may have half a million of them, most of a few kinds: what several have in common they share.
    """

    __slots__ = ("_origins", "_traits", "conditional", "count", "instruction")

    def __init__(self, instruction: Instruction, traits: KernelTraits, count: int | None, conditional: bool) -> None:
        self.instruction: Final = instruction
        self.count: Final = count
        """Executions in one run of the module; None where a loop's trip count is not known."""
        self.conditional: Final = conditional
        """In a branch that may not be taken: `count` is then an upper bound."""
        self._traits: Final = traits
        self._origins: tuple[Origin, ...] | None = None

    def __repr__(self) -> str:
        return f"<Kernel {self.computation}/{self.name}: {self.kind}>"

    @property
    def likeness(self) -> int:
        """The same number for kernels of a module that differ in nothing but names and origins."""
        return id(self._traits)

    @property
    def name(self) -> str:
        """The instruction's name, which is also the `hlo_op` of a trace."""
        return self.instruction.name

    @property
    def computation(self) -> str:
        """Where it stands: the entry, a loop's body, a branch."""
        return self.instruction.computation.name

    @property
    def kind(self) -> str:
        """In words: `loop fusion`, `GEMM`, `all-reduce`."""
        return self._traits.kind

    @property
    def opcode(self) -> str:
        """XLA's word; of an asynchronous pair that of the operation itself (`all-reduce`, not `all-reduce-start`)."""
        return self._traits.opcode

    @property
    def instructions(self) -> int:
        """Instructions inside, those of nested fusions too, parameters not counted; 1 for what is no fusion."""
        return self._traits.instructions

    @property
    def flops(self) -> float | None:
        """None where the text does not tell (an opaque library call)."""
        return self._traits.flops

    @property
    def transcendentals(self) -> float | None:
        return self._traits.transcendentals

    @property
    def bytes_read(self) -> int:
        return self._traits.bytes_read

    @property
    def bytes_written(self) -> int:
        return self._traits.bytes_written

    @property
    def unsized(self) -> bool:
        """Its result has no size in the text, and counts as nothing."""
        return self._traits.unsized

    @property
    def asynchronous(self) -> bool:
        """It overlaps with what stands between its start and its done."""
        opcode = self.instruction.opcode
        return opcode.endswith("-start") or opcode in ("send", "recv")

    @property
    def estimated(self) -> bool:
        """`flops` is an estimate that depends on a library's algorithm."""
        return self._traits.estimated

    @property
    def target(self) -> str:
        """The library's target or the code generator; empty for XLA's own emitters."""
        return self._traits.target

    @property
    def dtype(self) -> str:
        """What it computes with: for a GEMM the dtype of its operands, else of its result."""
        return self._traits.dtype

    @property
    def precision(self) -> str:
        """The precision that JAX requested for a GEMM or convolution: `default`, `high`, `highest`, or an
        algorithm's name."""
        return self._traits.precision

    @property
    def shape(self) -> Shape:
        """Of its result, with layout."""
        return self.instruction.shape

    @property
    def results(self) -> int:
        """Arrays that it writes: of a tuple its members."""
        return self._traits.results

    @property
    def operands(self) -> int:
        """Values that it reads, each once."""
        return len(self._traits.sizes)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where it came from, its own place first; several where several lines were fused. Read on request."""
        if self._origins is None:
            instruction = self.instruction
            module = instruction.computation.module
            own = instruction.metadata
            if instruction.opcode == "fusion":
                held = fused(instruction)
                self._origins = origins(own, (inner.metadata for inner in held), module.stack_of)
            else:
                known = module.once(_by_metadata)
                found = known.get(own.text)
                if found is None:
                    found = origins(own, (), module.stack_of)
                    if len(known) < _MOST_KNOWN:
                        known[own.text] = found
                self._origins = found
        return self._origins

    def release(self) -> None:
        """Gives back what was read of its origins: of half a million kernels that is more than all else."""
        self._origins = None

    @property
    def operand_bytes(self) -> tuple[tuple[str, int], ...]:
        """Bytes that are read of each operand, by the operand's name."""
        instruction = self.instruction
        names = [name for name in dict.fromkeys(instruction.operands) if instruction.computation.get(name) is not None]
        return tuple(zip(names, self._traits.sizes, strict=True))

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
    def source(self) -> HloSourceLocation | None:
        """The first of its source lines, one of the user's own where there is one."""
        return next(iter(self.sources), None)

    @property
    def sources(self) -> tuple[HloSourceLocation, ...]:
        """All lines that it came from, each once: the user's own first, its own operation's before those fused in."""
        return sources_of([origin.source for origin in self.origins])

    @property
    def uses_matrix_units(self) -> bool:
        return self.kind in MATRIX_KINDS
