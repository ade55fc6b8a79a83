"""What a check of HLO is, what it examines, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from jaxprof.base.units import bytes_, counted
from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation
from jaxprof.events.finding import CatalogueEntry, Finding
from jaxprof.hlo.kernels import FREE
from jaxprof.hlo.kernels.cost import Cost
from jaxprof.hlo.kernels.cost.model import TrafficModel
from jaxprof.hlo.kernels.dataflow import Value
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.kernels.kinds import instructions_in
from jaxprof.hlo.text.model import Instruction, Module

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.flow import Flow


def module_finding(message: str, kernels: tuple[str, ...], moved: int | None = None) -> Finding:
    """Return a finding about a module. `kernels`: names of kernels or instructions, those with the most weight first;
    `moved`: traffic of one call that it accounts for, None if traffic is not its measure."""
    return Finding(message, scope="module", bytes=moved, kernels=kernels)


LARGE_BYTES = 1 << 20
"""Bytes below which traffic hardly matters: a megabyte takes some 0.3 µs of an accelerator's bandwidth, less than a
launch.
"""


WORTH = 0.2
"""Share of the module's work from which the slow form of an operation is reported."""
_LAUNCH_BYTES = {"cpu": 1 << 10, "gpu": 2 << 20, "tpu": 256 << 10}
"""Bytes that move in the time of a launch: 2 µs or more on a GPU, some 0.3 µs on a TPU and 0.1 µs on a CPU."""
_FLOPS_PER_BYTE = {"cpu": (10.0, 5.0, 0.05), "gpu": (150.0, 20.0, 0.1), "tpu": (240.0, 8.0, 0.1)}
"""FLOPs that a device does while its memory moves a byte: on matrix units, in loops, and in sorts, which CPUs compare
one by one and GPUs in several passes. Two cores with AVX2, an H100 and a TPU v5e; good to a factor of two or three, as
shares of a module's work need it.
"""
_FLOPS_OF_TRANSCENDENTAL = 8


def operations(cost: Cost | Kernel) -> float:
    """Return FLOPs, with those that transcendentals take; unknown ones count as none."""
    return (cost.flops or 0.0) + _FLOPS_OF_TRANSCENDENTAL * (cost.transcendentals or 0.0)


class Scene:
    """The module, with what several findings need."""

    def __init__(self, module: Module, platform: str) -> None:
        self.module = module
        self.platform = platform
        self.explained: set[str] = set()
        """Names of kernels whose copies an earlier check has explained."""
        self._everywhere = TrafficModel()
        self._working: dict[Hashable, frozenset[str]] = {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The module's kernels, in execution order."""
        return kernels(self.module)

    @property
    def flow(self) -> Flow:
        """The arrays that go from kernel to kernel, followed on first use."""
        from jaxprof.hlo.kernels.flow import Flow

        return self.module.once(Flow)

    @cached_property
    def escaping(self) -> frozenset[Kernel]:
        """Kernels whose results the program returns, or that a loop or a branch carries: not all that reads them is
        seen."""
        carried = (passage.producer for passage in self.flow if passage.crossed)
        returned = (array[0] if isinstance(array, tuple) else array for array in self.flow.outputs)
        return frozenset([*carried, *returned])

    def opcodes(self, kernel: Kernel) -> frozenset[str]:
        """Return the operations in a kernel, without those that cost nothing."""
        opcodes = self._working.get(kernel.likeness)
        if opcodes is None:
            held = frozenset(inner.opcode for inner in instructions_in(kernel.instruction))
            opcodes = self._working[kernel.likeness] = held - FREE
        return opcodes

    @cached_property
    def kernel_of(self) -> dict[int, Kernel]:
        """Kernels by the identity of their instructions."""
        return {id(kernel.instruction): kernel for kernel in self.kernels}

    @cached_property
    def kernel_named(self) -> dict[str, Kernel]:
        return {kernel.name: kernel for kernel in reversed(self.kernels)}

    @cached_property
    def callers(self) -> dict[str, Instruction]:
        """The loop, branch or call that runs each computation."""
        edges = self.module.once(Execution).edges.values()
        return {edge.callee: edge.caller for calls in edges for edge in calls}

    def loops(self) -> Iterator[tuple[Instruction, int | None]]:
        """Yield the loops that run, each with the number of its iterations."""
        for edges in self.module.once(Execution).edges.values():
            for edge in edges:
                is_body = edge.caller.opcode == "while" and edge.callee in edge.caller.called[:1]
                if is_body and edge.caller.callees():
                    yield edge.caller, edge.times

    def kernels_in(self, loop: Instruction) -> list[Kernel]:
        """Return the kernels that a loop runs, those of loops, branches and calls within it included."""
        inside = set(self.module.once(Execution).callees_of(loop))
        return [kernel for kernel in self.kernels if kernel.computation in inside]

    def operand_traffic(self, kernel: Kernel) -> list[int]:
        """Return the bytes that one execution of a kernel reads of each operand, and those that it writes, in every
        memory: the traffic of TPUs is of their main memory alone."""
        if self.platform != "tpu":
            return [*(size for _, size in kernel.operand_bytes), kernel.bytes_written]
        _, written, sizes = self._everywhere.kernel(kernel.instruction)
        return [*sizes, written]

    def work(self, kernel: Kernel) -> float:
        """Return the work of a kernel in one call: the bytes that memory moves in the kernel's least time."""
        least = max(sum(self.operand_traffic(kernel)), _LAUNCH_BYTES.get(self.platform, 0))
        return max(least, self.flops_as_bytes(kernel, operations(kernel))) * (kernel.count or 1)

    def share_of(self, works: Mapping[Kernel, float]) -> float:
        """Return the share of the module's work in `works`, the given work of some kernels. If one of them runs an
        unknown number of times, only kernels with an unknown number are compared."""
        unknown = any(kernel.count is None for kernel in works)
        whole = sum(self.work(kernel) for kernel in self.kernels if kernel.count is None or not unknown)
        part = sum(work for kernel, work in works.items() if kernel.count is None or not unknown)
        return part / whole if whole else 0.0

    def flops_as_bytes(self, kernel: Kernel, flops: float) -> float:
        """Return the bytes that memory moves while a kernel computes so much."""
        rates = _FLOPS_PER_BYTE.get(self.platform, _FLOPS_PER_BYTE["cpu"])
        return flops / rates[2 if kernel.kind == "sort" else not kernel.uses_matrix_units]

    def share(self, kernels: Iterable[Kernel], work: float | None = None) -> float:
        """Return the share of the module's work that these kernels do; `work`: theirs, if it is known to be more."""
        names = {kernel.name for kernel in kernels}
        own = sum(self.work(kernel) for kernel in self.kernels if kernel.name in names)
        rest = sum(self.work(kernel) for kernel in self.kernels if kernel.name not in names)
        counted = max(own, work or 0.0)
        return counted / (counted + rest) if counted else 0.0

    @property
    def on_accelerator(self) -> bool:
        return self.platform in ("gpu", "tpu")


def lines_of(values: Iterable[Value]) -> tuple[SourceLocation, ...]:
    """Return the user's lines that values come from, in order."""
    origins = (value.instruction.origin for value in values)
    return tuple(dict.fromkeys(SourceLocation(file, line) for _, file, line in origins if file))


def lines_beside(convolution: Instruction) -> tuple[SourceLocation, ...]:
    """Return the user's lines of what is beside a convolution. XLA for CPUs rewrites it, and its own line is lost then:
    that of another part of the same call stands for it, or else the only line there is."""
    near = (convolution, *convolution.operand_instructions(), *convolution.users)
    parts = [Value(inner) for each in near for inner in (each, *instructions_in(each))]
    same = lines_of(part for part in parts if "conv" in part.instruction.metadata.op_name)
    others = lines_of(parts)
    return same or (others if len(others) == 1 else ())


def flops_of(kernels: Iterable[Kernel]) -> float:
    return sum((kernel.flops or 0.0) * (kernel.count or 1) for kernel in kernels)


def total(kernel: Kernel) -> int:
    """Return the bytes that all executions move; those of one if their number is unknown."""
    return kernel.bytes * (kernel.count or 1)


def join(kernels: Sequence[Kernel], one: str, many: str, rest: str) -> Iterator[Finding]:
    """Yield one finding over all the kernels that show it, as `join_sizes` does with their traffic."""
    yield from join_sizes([(total(kernel), kernel.name) for kernel in kernels], one, many, rest)


def join_sizes(sizes: Sequence[tuple[int, str]], one: str, many: str, rest: str) -> Iterator[Finding]:
    """Yield one finding over everything that shows it, each with its bytes and its name; `one` or `many` follows their
    number, and `rest` has a placeholder for the sum of their bytes."""
    if not sizes:
        return
    ordered = sorted(sizes, key=lambda named: -named[0])
    whole = sum(size for size, _ in ordered)
    message = f"{counted(len(ordered), one, many)} {rest.format(bytes=bytes_(whole))}"
    yield module_finding(message, tuple(dict.fromkeys(name for _, name in ordered)), whole)


Saves: TypeAlias = Literal["", "all", "part"]


@frozen
class HloCheck(CatalogueEntry):
    """A finding about HLO: its entry, how it is found, and what its kernels' time says about its cost."""

    find: Callable[[Scene], Iterator[Finding]]
    """Yields the findings of a module, without what all cases share."""
    saves: Saves
    """What the fix saves of its kernels' time: all of it, as they do nothing else; a part, as they also do necessary
    work; empty if their time says nothing."""
    holds: bool
    """Whether the bytes are memory that is held, not traffic."""
    unfused: bool
    """Whether it applies to a module in which nothing is fused yet."""


def check(
    title: str, means: str, fix: str, *, saves: Saves = "", holds: bool = False, unfused: bool = False
) -> Callable[[Callable[[Scene], Iterator[Finding]]], HloCheck]:
    """Make a check of the function that finds; its code is the function's name."""
    return lambda find: HloCheck(
        find.__name__, title, means, fix, "hlo", "hlo.md#findings", find, saves, holds, unfused
    )
