"""The kernels of a module in execution order: one value for each instruction that launches work.

A program of a hundred layers has the same kernels a hundred times, so kernels that differ only in names are analysed
once. They must agree in everything that the figures depend on: opcode, shapes, and for a fusion the text of its
computation, with names replaced by numbers and without origins. A kernel that this does not clearly cover is analysed
by itself.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen, not_collecting
from jaxprof.hlo.kernels import ARITHMETIC, CONTROL, PRODUCTS, SAME_PLACE, TRANSCENDENTAL, base_opcode
from jaxprof.hlo.kernels.cost import NOTHING, Cost
from jaxprof.hlo.kernels.cost.model import CostModel, TrafficModel
from jaxprof.hlo.kernels.execution import CallEdge, Execution, calls_of, is_one_kernel
from jaxprof.hlo.kernels.kinds import instructions_in, kind_of, platform_of
from jaxprof.hlo.kernels.origin import HloSourceLocation, OpPath, Origin, Origins, op_path, origins_of
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text import STRING
from jaxprof.hlo.text.model import Instruction, Module

Shared = TypeVar("Shared")

MATRIX_KINDS = frozenset({"GEMM", "convolution", "attention"})
"""Kinds whose FLOPs run on matrix units where the device has them."""


@frozen(eq=False)
class KernelTraits:
    """Properties that kernels of the same form share; `Kernel` documents the fields. Not equal to those of another form
    with the same figures."""

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
    """Bytes read of each distinct operand."""
    unsized: bool


class _Trait(property, Generic[Shared]):
    """An attribute of a kernel that is the same for all kernels of its form."""

    def __set_name__(self, _owner: type, name: str) -> None:
        super().__init__(attrgetter(f"_traits.{name}"))  # takes a third of the time of a method

    if TYPE_CHECKING:

        def __get__(self, kernel: Any, _owner: type | None = None, /) -> Shared: ...  # type: ignore[override]


class Kernel:
    """An instruction that launches work. Figures are for one execution; `count` is the number of executions.

    A module may have half a million kernels, most of them of a few forms, so kernels of one form share their traits.
    """

    __slots__ = ("_origins", "_traits", "conditional", "count", "instruction")

    def __init__(self, instruction: Instruction, traits: KernelTraits, count: int | None, conditional: bool) -> None:
        self.instruction: Final = instruction
        self.count: Final = count
        """Executions in one call of the module; None if a loop's trip count is unknown."""
        self.conditional: Final = conditional
        """Whether the kernel lies in a branch that may not be taken; `count` is then an upper bound."""
        self._traits: Final = traits
        self._origins: Origins | None = None

    def __repr__(self) -> str:
        return f"<Kernel {self.computation}/{self.name}: {self.kind}>"

    kind = _Trait[str]()
    """Kind in words: `loop fusion`, `GEMM`, `all-reduce`."""
    opcode = _Trait[str]()
    """XLA's opcode; for an asynchronous pair, the opcode of the operation itself (`all-reduce`, not
    `all-reduce-start`)."""
    instructions = _Trait[int]()
    """Number of instructions in the kernel and its nested fusions, without parameters; 1 if it is not a fusion."""
    flops = _Trait[float | None]()
    """FLOPs of one execution; None if the text does not show them (an opaque library call)."""
    transcendentals = _Trait[float | None]()
    bytes_read = _Trait[int]()
    bytes_written = _Trait[int]()
    unsized = _Trait[bool]()
    """Whether the text gives no size for the result, which then counts as 0 bytes, or of what a loop, branch or call
    runs."""
    estimated = _Trait[bool]()
    """Whether `flops` is an estimate that depends on a library's algorithm."""
    target = _Trait[str]()
    """Library target or code generator; empty for XLA's own emitters."""
    dtype = _Trait[str]()
    """Dtype that the kernel computes with: that of its operands for a GEMM, else that of its result."""
    precision = _Trait[str]()
    """Precision that JAX requested for a GEMM or convolution: `default`, `high`, `highest`, or an algorithm's
    name."""

    @property
    def likeness(self) -> Hashable:
        """Value that is equal for kernels of a module that differ only in names and origins."""
        return self._traits

    @property
    def name(self) -> str:
        """Name of the instruction, which is also the `hlo_op` of a trace."""
        return self.instruction.name

    @property
    def computation(self) -> str:
        """Name of the computation that holds the kernel: the entry, a loop's body or a branch."""
        return self.instruction.computation.name

    @property
    def runs_kernels(self) -> bool:
        """Whether it is a loop, branch or call whose kernels are listed themselves: its cost is theirs."""
        return self.instruction.opcode in CONTROL and not is_one_kernel(self.instruction)

    @property
    def computations_inside(self) -> list[str]:
        """Names of the computations that it runs; empty unless it `runs_kernels`."""
        return (
            self.instruction.computation.module.once(Execution).callees_of(self.instruction)
            if self.runs_kernels
            else []
        )

    @property
    def asynchronous(self) -> bool:
        """Whether the kernel overlaps with the instructions between its start and its done."""
        opcode = self.instruction.opcode
        return opcode.endswith("-start") or opcode in ("send", "recv")

    @property
    def shape(self) -> Shape:
        """Shape of the result, with its layout."""
        return self.instruction.shape

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Origins of the kernel, its own first, then those of the operations fused into it. Read on request."""
        return self.read_origins().each

    def read_origins(self) -> Origins:
        """Return all that is known of where the kernel came from; kernels with the same metadata share it."""
        if self._origins is None:
            self._origins = origins_of(self.instruction)
        return self._origins

    def release(self) -> None:
        """Free what was read of the origins, which for half a million kernels takes more memory than everything
        else."""
        self._origins = None

    @property
    def operand_bytes(self) -> tuple[tuple[str, int], ...]:
        """Bytes read of each operand, by the operand's name."""
        instruction = self.instruction
        names = [name for name in dict.fromkeys(instruction.operands) if instruction.computation.get(name) is not None]
        return tuple(zip(names, self._traits.sizes, strict=True))

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """Operational intensity in FLOPs per byte moved; None if FLOPs are unknown or nothing is moved."""
        return None if self.flops is None or not self.bytes else self.flops / self.bytes

    @property
    def total_flops(self) -> float | None:
        """FLOPs of all executions; None if FLOPs or count are unknown."""
        return None if self.flops is None or self.count is None else self.flops * self.count

    @property
    def total_bytes(self) -> float | None:
        traits, count = self._traits, self.count
        return None if count is None else float((traits.bytes_read + traits.bytes_written) * count)

    @property
    def op_name(self) -> str:
        origins = self.origins
        return origins[0].op_name if origins else ""

    @property
    def path(self) -> OpPath:
        """`op_name` split into functions, scopes, primitive and direction (forward or backward)."""
        return op_path(self.op_name)

    @property
    def source(self) -> HloSourceLocation | None:
        """First of the kernel's source lines; one in the user's own code if there is any."""
        return next(iter(self.sources), None)

    @property
    def sources(self) -> tuple[HloSourceLocation, ...]:
        """Distinct source lines of the kernel: the user's own first, and the kernel's own operation before those fused
        into it."""
        return self.read_origins().sources

    @property
    def uses_matrix_units(self) -> bool:
        return self.kind in MATRIX_KINDS


_LARGE = 16 << 20
"""Characters of HLO text above which a fused computation is freed as soon as its kernel is built."""
_MOST_ALIKE = 1 << 16  # forms that are remembered: a module may have a million, all different


def kernels(module: Module) -> tuple[Kernel, ...]:
    """Return the kernels of `module` in execution order, built once per module; empty for a module without an entry."""
    return module.once(_build)


def _build(module: Module) -> tuple[Kernel, ...]:
    with not_collecting():
        return tuple(stream(module))


_STEP = 500
"""Kernels that are read from one report of `build_in_steps` to the next."""


def build_in_steps(module: Module) -> Iterator[Sequence[Kernel]]:
    """Build `kernels(module)`, and after each few hundred of them yield those that were read by then: a screen shows
    these meanwhile."""
    built: list[Kernel] = []
    with not_collecting():
        for kernel in stream(module):
            built.append(kernel)
            if len(built) % _STEP == 0:
                yield built
    module.remember(_build, tuple(built))


def stream(module: Module) -> Iterator[Kernel]:
    """Yield the kernels in execution order, each as soon as it is read; none is kept."""
    costs, traffic = CostModel(), TrafficModel(tiled=platform_of(module) == "tpu")
    forms: dict[Hashable, KernelTraits] = {}
    large = len(module.text) > _LARGE
    for instruction, count, conditional in module.once(Execution).launches():
        key = alike(instruction)
        traits = forms.get(key) if key is not None else None
        if traits is None:
            traits = _traits(instruction, costs, traffic)
            if key is not None and len(forms) < _MOST_ALIKE:
                forms[key] = traits
            if large and instruction.opcode == "fusion":
                for fused_computation in instruction.callees():
                    fused_computation.forget()
        yield Kernel(instruction, traits, count, conditional)


def totals(module: Module) -> Cost:
    """Return the cost of one call of `module`. Loops are multiplied; a conditional counts as its most expensive
    branch."""
    execution = module.once(Execution)
    by_computation: dict[str, Cost] = {}
    launching = grouped((kernel.computation, kernel) for kernel in kernels(module))
    for name in execution.post_order:
        total = NOTHING
        for kernel in launching.get(name, ()):
            cost = kernel.flops or 0.0, kernel.transcendentals or 0.0, kernel.bytes
            total += Cost(*cost, opaque=kernel.flops is None, unsized=kernel.unsized)
        by_computation[name] = _with_calls(total, execution.edges[name], by_computation)
    return by_computation[module.entry.name] if module.entry is not None else NOTHING


_MISSING = Cost(opaque=True, unsized=True)


def _with_calls(cost: Cost, edges: Iterable[CallEdge], known: Mapping[str, Cost]) -> Cost:
    """Add the costs of the computations that are run; of alternatives, the most expensive one."""
    alternatives: dict[str, Cost] = {}
    for edge in edges:
        part = known.get(edge.callee, _MISSING)
        if edge.branch:
            best = alternatives.setdefault(edge.caller.name, part)
            most = max(best, part, key=lambda cost: (cost.flops + cost.transcendentals, cost.bytes))
            # What is missing in either is missing in the result, because that one may cost more.
            missing = {"opaque": best.opaque or part.opaque, "unsized": best.unsized or part.unsized}
            alternatives[edge.caller.name] = replace(most, **missing)
        else:
            cost += part.times(edge.times)
    return sum(alternatives.values(), cost)


def with_running(module: Module, names: Container[str]) -> tuple[Kernel, ...]:
    """Return the kernels of `module`, and then the loops, branches and calls with these names, each with the cost of
    all that one execution runs: a profile has times of them."""
    execution = module.once(Execution)
    callers = {edge.caller.name: edge.caller for edges in execution.edges.values() for edge in edges}
    costs, traffic = CostModel(), TrafficModel(tiled=platform_of(module) == "tpu")
    named = (
        Kernel(caller, _traits(caller, costs, traffic), *execution.runs(caller.computation))
        for name, caller in callers.items()
        if name in names and caller.opcode in CONTROL
    )
    return (*kernels(module), *(kernel for kernel in named if kernel.runs_kernels))


def _cost_inside(control: Instruction, costs: CostModel, traffic: TrafficModel) -> Cost:
    """Return the cost of all that one execution of a loop, branch or call runs. Which of several branches runs is
    unknown, and so is their cost, unless it is the same."""
    module = control.computation.module
    execution = module.once(Execution)
    inside = execution.callees_of(control)
    by_computation: dict[str, Cost] = {}
    for name in inside:
        total = NOTHING
        for instruction in execution.launches_in(module[name]):
            traits = _traits(instruction, costs, traffic)
            total += Cost(
                traits.flops or 0.0,
                traits.transcendentals or 0.0,
                traits.bytes_read + traits.bytes_written,
                opaque=traits.flops is None,
                unsized=traits.unsized,
                written=traits.bytes_written,
            )
        by_computation[name] = _with_calls(total, execution.edges[name], by_computation)
    edges = [*calls_of(control), *(edge for name in inside for edge in execution.edges[name])]
    branches = grouped((edge.caller.name, by_computation.get(edge.callee, _MISSING)) for edge in edges if edge.branch)
    whole = _with_calls(NOTHING, calls_of(control), by_computation)
    if any(part != parts[0] for parts in branches.values() for part in parts):
        return replace(whole, opaque=True, unsized=True)
    return whole


def _traits(instruction: Instruction, costs: CostModel, traffic: TrafficModel) -> KernelTraits:
    opcode = instruction.opcode
    held = instructions_in(instruction)
    kind = kind_of(instruction, held)
    cost = costs.instruction(instruction)
    bytes_read, bytes_written, sizes = traffic.kernel(instruction)
    heavy = next((inner for inner in held if inner.opcode in PRODUCTS), instruction)
    if opcode in CONTROL:
        cost = _cost_inside(instruction, costs, traffic)
        bytes_read, bytes_written = cost.bytes - cost.written, cost.written
        if heavy is instruction:
            heavy = max(held, key=lambda inner: costs.instruction(inner).flops, default=instruction)
    wrapped = instruction.wrapped_opcode if opcode == "async-start" else ""
    # A product computes with the dtype of its operands, whatever it writes.
    operand = heavy.operand(0) if kind.words in MATRIX_KINDS else None
    result = heavy if opcode in CONTROL else instruction
    leaves = (operand.shape.leaves() if operand is not None else ()) or result.shape.leaves()
    precision = ""
    if kind.words in MATRIX_KINDS:
        requested = heavy.attributes.get("operand_precision", "").strip("{}").split(",")
        highest = next((level for level in ("highest", "high") if level in requested), "default")
        precision = heavy.attributes.get("algorithm", highest)
    return KernelTraits(
        kind=kind.words,
        opcode=wrapped or base_opcode(opcode),
        instructions=len(held),
        flops=None if cost.opaque else cost.flops,
        transcendentals=None if cost.opaque else cost.transcendentals,
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        estimated=cost.estimated,
        target=kind.target,
        dtype=leaves[0].dtype if leaves else "",
        precision=precision,
        sizes=sizes,
        unsized=cost.unsized if opcode in CONTROL else bool(instruction.shape.dtype) and not instruction.shape.known,
    )


_BY_ATTRIBUTES = SAME_PLACE | {
    "dot", "slice", "dynamic-slice", "dynamic-update-slice", "gather", "broadcast", "concatenate", "pad",
}  # fmt: skip
"""Opcodes whose kernels are alike if attributes and shapes agree: neither the producers of their operands nor another
computation matters.
"""
_ORIGIN_TEXT = re.compile(rf', metadata=\{{[^{{}}"]*+(?:{STRING}[^{{}}"]*+)*\}}')
_LOCAL_NAME = re.compile(r"(?<![=\w])%([^\s,(){}=]+)")


def alike(instruction: Instruction) -> Hashable | None:
    """Return a key that kernels with the same figures share; None if the text alone does not show it."""
    opcode, computation = instruction.opcode, instruction.computation
    text, (start, end) = computation.source.text, instruction.inside
    if opcode in ARITHMETIC or opcode in TRANSCENDENTAL:
        compared_text = ""
    elif opcode in _BY_ATTRIBUTES:
        compared_text = _ORIGIN_TEXT.sub("", text[end : instruction.span[1]].rstrip())
    elif opcode == "fusion":
        compared_text = _text_of_fusion(instruction)
        if not compared_text:
            return None
    else:
        return None
    operands = computation.named(text[start:end])
    if operands is None:
        return None
    # A module keeps one object for all shapes that are written alike, so the id identifies the shape.
    shapes = tuple([id(operand.shape) for operand in operands])
    is_repeated = len(operands) > 1 and len(set(operands)) < len(operands)
    twice = tuple(map(operands.index, operands)) if is_repeated else ()
    return opcode, compared_text, id(instruction.shape), shapes, twice


def _text_of_fusion(fusion: Instruction) -> str:
    """Return the text of the fused computation and the fusion's settings in a form that does not depend on names."""
    called = fusion.callees()
    if len(called) != 1 or called[0].is_synthetic:
        return ""
    _, start, end = called[0].span
    # Longer ones are rare.
    if end - start > 4096:
        return ""
    text = called[0].source.text[start:end]
    # A convolution's metadata distinguishes it from a product, and its surroundings identify attention.
    if "convolution(" in text or "%" not in text:
        return ""
    numbers: dict[str, str] = {}
    attributes = fusion.attributes
    written = _LOCAL_NAME.sub(lambda name: numbers.setdefault(name[1], f"%{len(numbers)}"), _ORIGIN_TEXT.sub("", text))
    return f"{attributes.get('kind', '')} {attributes.get('backend_config', '')} {written}"


def kernels_run_again(module: Module) -> list[Kernel]:
    """Return the kernels that compute a second time what the forward pass computed.

    JAX marks the second computation in `op_name`. If the first one is no longer in the program (the value of the loss
    is not used), or XLA has merged the two again, nothing is computed twice, and nothing is reported.
    """
    if not any(module.source.text.find(mark, *module.span) >= 0 for mark in (".remat", "rematted_computation")):
        return []
    first = {
        (origin.path.primitive, origin.source)
        for kernel in kernels(module)
        for origin in kernel.origins
        if not origin.path.recomputed and origin.path.direction != "backward"
    }

    def is_second(kernel: Kernel) -> bool:
        return kernel.path.recomputed and (kernel.path.primitive, kernel.origins[0].source) in first

    return [kernel for kernel in kernels(module) if ".remat" in kernel.name or is_second(kernel)]
