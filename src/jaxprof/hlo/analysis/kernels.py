"""The kernels of a module: one value for each instruction that launches work, in the order of execution.

A program of a hundred layers has the same kernels a hundred times, so kernels that differ only in names are counted
once. What they must share is what the figures depend on: opcode, shapes, and for a fusion the text of its computation
with names replaced by numbers and without its origins. A kernel that this does not clearly cover is counted by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.cost.flops import Cost, CostModel
from jaxprof.hlo.analysis.cost.traffic import TrafficModel
from jaxprof.hlo.analysis.execution import Execution
from jaxprof.hlo.analysis.kinds import KernelKind, fused, kind_of
from jaxprof.hlo.analysis.opcodes import ARITHMETIC, SAME_PLACE, TRANSCENDENTAL, base_opcode
from jaxprof.hlo.analysis.origin import HloSourceLocation, OpPath, Origin, op_path, origins, sources_of
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.collecting import not_collecting
from jaxprof.hlo.read.plain import Gaps

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from jaxprof.hlo.model import Instruction, Module
    from jaxprof.hlo.shape import Shape


MATRIX_KINDS: Final = frozenset({"GEMM", "convolution", "attention"})
"""Kinds whose FLOPs run on matrix units where the device has them."""


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

    __slots__ = ("_origins", "_sources", "_traits", "conditional", "count", "instruction")

    def __init__(self, instruction: Instruction, traits: KernelTraits, count: int | None, conditional: bool) -> None:
        self.instruction: Final = instruction
        self.count: Final = count
        """Executions in one run of the module; None where a loop's trip count is not known."""
        self.conditional: Final = conditional
        """In a branch that may not be taken: `count` is then an upper bound."""
        self._traits: Final = traits
        self._origins: tuple[Origin, ...] | None = None
        self._sources: tuple[HloSourceLocation, ...] | None = None

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
            held = fused(instruction) if instruction.opcode == "fusion" else ()
            self._origins = origins(own, [inner.metadata for inner in held], module.stack_of)
        return self._origins

    @property
    def attributes_text(self) -> str:
        """What stands after its operands, its origin among it."""
        read = self.instruction.parts
        return read.text[read.inside[1] : read.limit]

    def release(self) -> None:
        """Gives back what was read of its origins: of half a million kernels that is more than all else."""
        self._origins = self._sources = None

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
        if self._sources is None:
            self._sources = sources_of([origin.source for origin in self.origins])
        return self._sources

    @property
    def uses_matrix_units(self) -> bool:
        return self.kind in MATRIX_KINDS


_PAGE: Final = 256
_LARGE: Final = 16 << 20
"""Characters of a text from which what was parsed for one kernel is freed at once."""
_MOST_ALIKE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ModuleTotals:
    """The cost of one run of a module: loops multiplied, of a conditional the branch that costs most."""

    cost: Cost
    bytes_read: int
    bytes_written: int
    complete: bool
    """False where FLOPs are missing: a loop's trip count is unknown (its body is counted once), a call is opaque, or a
    computation is not in the text."""
    sized: bool = True
    """False where bytes are missing, likewise: of an opaque call, operands and results are known."""

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


def kernels(module: Module) -> tuple[Kernel, ...]:
    """The kernels of `module` in the order of execution. Made once for each module; empty for one without entry."""
    return analysis_of(module).kernels


def stream(module: Module, *, keep: bool = True) -> Iterator[Kernel]:
    """The kernels in the order of execution, each as soon as it is read. Unless they are kept, whoever asks for all of
    them later reads them again."""
    return analysis_of(module).stream(keep=keep)


def totals(module: Module) -> ModuleTotals:
    """What one run of `module` costs: loops multiplied, and of a conditional the most expensive branch."""
    return analysis_of(module).totals()


def analysis_of(module: Module) -> KernelAnalysis:
    """What has been derived about the kernels of a module. It lives as long as the module."""
    return module.once(KernelAnalysis)


class KernelAnalysis:
    """Builds the kernels of one module, and keeps what the other parts of the analysis ask for again."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.execution = Execution(module)
        self.costs = CostModel()
        self._gaps = module.once(Gaps)
        self.traffic = TrafficModel(self._gaps.missing, tiled=platform_of(module) == "tpu")
        self._made: list[Kernel] = []
        self._making = self._make()
        self._lock = Lock()
        self._all: tuple[Kernel, ...] | None = None
        self._alike: dict[Hashable, KernelTraits] = {}
        self._unlike: list[KernelTraits] = []
        """Of kernels like no other: kept, because `Kernel.likeness` is their identity."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them, in the order of execution."""
        with self._lock:  # a second thread must not take an unfinished list for the whole one
            if self._all is None:
                with not_collecting():
                    self._made.extend(self._making)
                self._keep_all()
            assert self._all is not None
            return self._all

    def _keep_all(self) -> None:
        """After the last kernel was made."""
        self._gaps.is_complete = True
        self._all = tuple(self._made)
        self._made = []

    def first(self, count: int) -> Sequence[Kernel]:
        """The first `count` kernels, or as many as there are; the others are read on request."""
        return self._between(0, count)

    def _between(self, begin: int, end: int) -> Sequence[Kernel]:
        """Those of these places, of which there may be fewer. Copies no others: all pages together cost what there
        is."""
        with self._lock:
            if self._all is not None:
                return self._all[begin:end]
            self._made.extend(islice(self._making, max(0, end - len(self._made))))
            page = self._made[begin:end]
            if len(self._made) < end:
                self._keep_all()
            return page

    def stream(self, *, keep: bool = True) -> Iterator[Kernel]:
        """All of them, each as soon as it was read."""
        if not keep and not self._made and self._all is None:
            yield from self._make()
            self._gaps.is_complete = True
            return
        at = 0
        while page := self._between(at, at + _PAGE):
            yield from page
            at += len(page)

    @property
    def pairs(self) -> Iterator[tuple[Kernel, Instruction]]:
        """The kernels with their instructions."""
        return ((kernel, kernel.instruction) for kernel in self.kernels)

    def _make(self) -> Iterator[Kernel]:
        large = len(self.module.text) > _LARGE
        self._gaps.unsized.clear()
        called = (edge.callee for edges in self.execution.edges.values() for edge in edges if edge.callee)
        self._gaps.missing.update(name for name in called if self.module.get(name) is None)
        for instruction, count, conditional in self.execution.launches():
            key = alike(instruction)
            traits = self._alike.get(key) if key is not None else None
            if traits is None:
                before = len(self._gaps.missing)
                traits = self._traits(instruction)
                if key is not None and len(self._gaps.missing) == before and len(self._alike) < _MOST_ALIKE:
                    self._alike[key] = traits
                else:
                    self._unlike.append(traits)
                if large and instruction.opcode == "fusion":
                    for fused_computation in instruction.called_computations():
                        fused_computation.forget()
            if traits.unsized:
                self._gaps.unsized.append(instruction.name)
            yield Kernel(instruction, traits, count, conditional)

    def _traits(self, instruction: Instruction) -> KernelTraits:
        opcode = instruction.opcode
        held = fused(instruction) if opcode == "fusion" else []
        kind = kind_of(instruction, held)
        cost = self.costs.instruction(instruction)
        traffic = self.traffic.kernel(instruction)
        self._gaps.missing.update(name for name in instruction.called if self.module.get(name) is None)
        heavy = _heaviest(instruction, held)
        wrapped = instruction.wrapped_opcode if opcode == "async-start" else ""
        return KernelTraits(
            kind=kind.words,
            opcode=wrapped or base_opcode(opcode),
            instructions=len(held) if opcode == "fusion" else 1,
            flops=None if cost.opaque else cost.flops,
            transcendentals=None if cost.opaque else cost.transcendentals,
            bytes_read=traffic.read,
            bytes_written=traffic.written,
            estimated=cost.estimated,
            target=kind.target,
            dtype=_dtype(instruction, heavy, kind),
            precision=_precision(heavy) if kind.words in MATRIX_KINDS else "",
            sizes=tuple(size for _, size in traffic.operands),
            results=len(instruction.shape.tuple_shapes) or 1,
            unsized=bool(instruction.shape.dtype) and not instruction.shape.known,
        )

    def totals(self) -> ModuleTotals:
        """What one run of the module costs."""
        execution = self.execution
        by_computation: dict[str, ModuleTotals] = {}
        launching: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            launching.setdefault(kernel.computation, []).append(kernel)
        for name in execution.post_order():
            total = _NO_TOTAL
            for kernel in launching.get(name, ()):
                total = _add(total, _of_kernel(kernel), 1)
            alternatives: dict[str, ModuleTotals] = {}
            for edge in execution.edges[name]:
                part = by_computation.get(edge.callee, _NOT_THERE)
                if edge.branch:
                    best = alternatives.get(edge.caller.name)
                    alternatives[edge.caller.name] = part if best is None else _dearer(best, part)
                else:
                    total = _add(total, part, edge.times)
            for part in alternatives.values():
                total = _add(total, part, 1)
            by_computation[name] = total
        entry = self.module.entry
        return by_computation.get(entry.name, _NO_TOTAL) if entry is not None else _NO_TOTAL


_NO_TOTAL: Final = ModuleTotals(Cost(), 0, 0, True)
_NOT_THERE: Final = ModuleTotals(Cost(), 0, 0, complete=False, sized=False)


def _weight(total: ModuleTotals) -> tuple[float, int]:
    return total.cost.flops + total.cost.transcendentals, total.bytes


def _dearer(one: ModuleTotals, other: ModuleTotals) -> ModuleTotals:
    """The branch that costs more; where one is not whole, it may be that one."""
    most = max(one, other, key=_weight)
    return replace(most, complete=one.complete and other.complete, sized=one.sized and other.sized)


def _of_kernel(kernel: Kernel) -> ModuleTotals:
    opaque = kernel.flops is None
    cost = Cost(kernel.flops or 0.0, kernel.transcendentals or 0.0, kernel.estimated, int(opaque))
    return ModuleTotals(cost, kernel.bytes_read, kernel.bytes_written, not opaque, not kernel.unsized)


def _add(total: ModuleTotals, part: ModuleTotals, times: int | None) -> ModuleTotals:
    count = 1 if times is None else times
    return ModuleTotals(
        total.cost + part.cost.times(count),
        total.bytes_read + part.bytes_read * count,
        total.bytes_written + part.bytes_written * count,
        total.complete and part.complete and times is not None,
        total.sized and part.sized and times is not None,
    )


HEAVY: Final = ("dot", "ragged-dot", "scaled-dot", "convolution")
"""Opcodes of matrix products and convolutions."""


def _heaviest(instruction: Instruction, held: list[Instruction]) -> Instruction:
    """The instruction that gives a kernel its dtype: the first dot or convolution in it, or itself."""
    return next((inner for inner in held if inner.opcode in HEAVY), instruction)


def _dtype(instruction: Instruction, heavy: Instruction, kind: KernelKind) -> str:
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


_ELEMENTWISE: Final = ARITHMETIC | TRANSCENDENTAL
_BY_ATTRIBUTES: Final = SAME_PLACE | {
    "dot", "slice", "dynamic-slice", "dynamic-update-slice", "gather", "broadcast", "concatenate", "pad",
}  # fmt: skip
"""Opcodes whose kernels are the same if attributes and shapes are: neither what makes their operands nor another
computation counts."""
_ORIGIN_TEXT = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*+")*+\}')
_LOCAL_NAME = re.compile(r"(?<![=\w])%([^\s,(){}=]+)")
_LONGEST_COMPARED: Final = 4096
"""Characters up to which fused computations are compared: longer ones are few."""


def alike(instruction: Instruction) -> Hashable | None:
    """What two kernels must share to have the same figures; None where the text alone does not show it."""
    opcode, read = instruction.opcode, instruction.parts
    if opcode in _ELEMENTWISE:
        held = ""
    elif opcode in _BY_ATTRIBUTES:
        held = _ORIGIN_TEXT.sub("", read.text[read.inside[1] : read.limit].rstrip())
    elif opcode == "fusion":
        held = _fused_text(instruction)
        if not held:
            return None
    else:
        return None
    names = read.operands
    operands = list(map(instruction.computation.get, names))
    if None in operands:
        return None
    # A module has one object for all shapes that are written alike, and keeps it.
    shapes = tuple([id(operand.shape) for operand in operands if operand is not None])
    twice = tuple(map(names.index, names)) if len(set(names)) < len(names) else ()
    return opcode, held, id(instruction.shape), shapes, twice


def _fused_text(fusion: Instruction) -> str:
    """The text of the fused computation, and the fusion's settings, in a form that does not depend on names."""
    called = fusion.called_computations()
    if len(called) != 1 or called[0].is_synthetic:
        return ""
    _, start, end = called[0].span
    if end - start > _LONGEST_COMPARED:
        return ""
    text = called[0].source.text[start:end]
    # Its origin tells a convolution from a product, and its surroundings identify attention.
    if "convolution(" in text or "%" not in text:
        return ""
    numbers: dict[str, str] = {}
    attributes = fusion.attributes
    written = _LOCAL_NAME.sub(lambda name: numbers.setdefault(name[1], f"%{len(numbers)}"), _ORIGIN_TEXT.sub("", text))
    return f"{attributes.get('kind', '')} {attributes.get('backend_config', '')} {written}"
