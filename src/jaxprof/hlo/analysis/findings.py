"""What is worth looking at in a module, as data: a code, a sentence with the figures, advice, and where.

A finding says what is there, not that it is wrong: a layout copy may be the price of a faster GEMM. Thresholds are
constants with their reasons; what lies below them is not told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.analysis.opcodes import FREE
from jaxprof.hlo.analysis.platform import is_optimised, platform_of
from jaxprof.units import bytes_, integer, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import Kernel, KernelTable
    from jaxprof.hlo.model import Instruction

LARGE_BYTES: Final = 1 << 20
"""A megabyte takes some 0.3 µs of an accelerator's bandwidth, less than a launch: below it traffic hardly matters."""
TINY_BYTES: Final = 32 << 10
TINY_FLOPS: Final = 1e5
"""A kernel below both is done sooner than it is launched (some 2 to 5 µs on a GPU)."""
FEW: Final = 10
"""So many tiny launches in one run before they are told: 10 are some 30 µs."""
LARGE_GEMM_FLOPS: Final = 1e7
"""A GEMM below this is launch-bound, and its sizes do not matter."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    code: str
    message: str
    advice: str
    where: tuple[str, ...]
    """Names of kernels or instructions, those that weigh most first."""
    bytes: int | None = None
    """Traffic of one run that it stands for, where that is its measure."""


ADVICE: Final[dict[str, str]] = {
    "layout-copy": "Let producer and consumer agree on the order of dimensions: transpose once, outside the hot path, "
    "or write the contraction so that it takes the array as it lies (einsum).",
    "dtype-convert": "Keep the array in one dtype along the path, or cast where it is smallest; parameters that are "
    "cast at each step can be kept in the narrow dtype as well.",
    "float64-on-accelerator": "Use float32 unless the result needs more: TPUs emulate float64, and most GPUs have "
    "1/32 or 1/64 of their rate for it. Look for a NumPy constant or jax_enable_x64.",
    "broadcast-materialised": "Compute with the small array and let XLA broadcast inside the kernel that uses it; a "
    "library call or a sort takes only whole arrays.",
    "tiny-kernels": "Stack the small arrays and treat them at once (vmap, one concatenated array), or let a scan take "
    "several steps in one (unroll).",
    "padding": "Choose sizes that need no padding, or pad once, outside the hot path.",
    "odd-sizes": "Make the sizes multiples of the matrix unit's tile: a vocabulary of 50304 costs less than one of "
    "50257.",
    "rematerialisation": "Memory was bought with time. Where memory allows, checkpoint less (a policy such as "
    "dots_saveable), or not at all.",
    "large-constant": "Pass the array as an argument: as a constant it is compiled into the program, copied by every "
    "compilation, and may be folded for minutes.",
    "unused-output": "Ask only for what is used: a sort without its keys, a decomposition without its vectors.",
    "host-transfer": "Keep the loop on the device: call back less often, or after the step; io_callback and "
    "pure_callback stop the device until the host has answered.",
    "small-loop-body": "Let one turn do more: unroll the scan, batch over another axis, or write the recurrence as an "
    "associative scan.",
}
"""What to do about each finding, by its code."""


def findings(table: KernelTable, flow: Flow, platform: str = "") -> tuple[Finding, ...]:
    """The findings of a module, in the order of `ADVICE`. `platform` (`cpu`, `gpu`, `tpu`) is told from the text if
    it is not given."""
    scene = _Scene(table, flow, platform or platform_of(table.module))
    looks = _LOOKS if is_optimised(table.module) else _BEFORE_OPTIMISATION
    return tuple(finding for look in looks for finding in look(scene))


class _Scene:
    """The module with what several findings ask for."""

    def __init__(self, table: KernelTable, flow: Flow, platform: str) -> None:
        self.table = table
        self.flow = flow
        self.platform = platform
        self.pairs: list[tuple[Kernel, Instruction]] = [
            (kernel, launch.instruction) for kernel, launch in zip(table.kernels, table.launches, strict=True)
        ]
        self._working: dict[tuple[str, str], frozenset[str]] = {}

    def opcodes(self, kernel: Kernel, instruction: Instruction) -> frozenset[str]:
        """The operations in a kernel, without what is free."""
        key = (kernel.computation, kernel.name)
        if key not in self._working:
            held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
            self._working[key] = frozenset(inner.opcode for inner in held) - FREE
        return self._working[key]

    @property
    def on_accelerator(self) -> bool:
        return self.platform in ("gpu", "tpu")


def _total(kernel: Kernel) -> int:
    return kernel.bytes * (kernel.count or 1)


def _gather(code: str, found: Sequence[Kernel], sentence: str) -> Iterator[Finding]:
    """One finding over all the kernels that show it; `sentence` has places for their number and their bytes."""
    if not found:
        return
    ordered = sorted(found, key=lambda kernel: -_total(kernel))
    moved = sum(_total(kernel) for kernel in ordered)
    message = sentence.format(count=len(ordered), bytes=bytes_(moved))
    yield Finding(code, message, ADVICE[code], tuple(kernel.name for kernel in ordered), moved)


_LAYOUT: Final = frozenset({"copy", "transpose"})
_AROUND: Final = frozenset({"copy", "transpose", "reshape", "slice", "broadcast", "pad"})


def _layout_copies(scene: _Scene) -> Iterator[Finding]:
    found = []
    for kernel, instruction in scene.pairs:
        opcodes = scene.opcodes(kernel, instruction)
        if _total(kernel) >= LARGE_BYTES and opcodes & _LAYOUT and opcodes <= _AROUND and _reorders(instruction):
            found.append(kernel)
    yield from _gather("layout-copy", found, "{count} kernels only rewrite arrays in another order: {bytes} a run")


def _reorders(instruction: Instruction) -> bool:
    """A copy or transpose in it changes the order in memory; a plain copy (of a buffer that is needed) does not."""
    for inner in fused(instruction) if instruction.opcode == "fusion" else [instruction]:
        if inner.opcode == "transpose" and inner.integers("dimensions") != tuple(range(inner.shape.rank)):
            operand = inner.operand(0)
            if operand is None or not _is_view(inner, operand):
                return True
        if inner.opcode == "copy":
            operand = inner.operand(0)
            before = operand.shape.layout if operand is not None else None
            after = inner.shape.layout
            if before and after and before.minor_to_major != after.minor_to_major:
                return True
    return False


def _is_view(transpose: Instruction, operand: Instruction) -> bool:
    """The transpose only renames dimensions: every element stays where it is, because the layout turns as well."""
    before, after = operand.shape.layout, transpose.shape.layout
    order = transpose.integers("dimensions")
    if not before or not after or len(order) != len(after.minor_to_major):
        return False
    return tuple(order[number] for number in after.minor_to_major) == before.minor_to_major


def _converts(scene: _Scene) -> Iterator[Finding]:
    found = [
        kernel
        for kernel, instruction in scene.pairs
        if _total(kernel) >= LARGE_BYTES
        and "convert" in (opcodes := scene.opcodes(kernel, instruction))
        and opcodes <= _AROUND | {"convert"}
    ]
    yield from _gather("dtype-convert", found, "{count} kernels only change the dtype of arrays: {bytes} a run")


def _float64(scene: _Scene) -> Iterator[Finding]:
    if not scene.on_accelerator:
        return
    found = [kernel for kernel, _ in scene.pairs if kernel.dtype in ("f64", "c128") and kernel.flops]
    yield from _gather("float64-on-accelerator", found, "{count} kernels compute in float64: {bytes} a run")


def _broadcasts(scene: _Scene) -> Iterator[Finding]:
    found = []
    for kernel, instruction in scene.pairs:
        opcodes = scene.opcodes(kernel, instruction)
        if (
            kernel.bytes_written >= LARGE_BYTES
            and kernel.bytes_read * 16 <= kernel.bytes_written
            and "broadcast" in opcodes
            and opcodes <= {"broadcast", "reshape", "convert", "copy", "transpose"}
            and _is_read_whole(scene.flow, kernel)
        ):
            found.append(kernel)
    yield from _gather("broadcast-materialised", found, "{count} kernels write out a broadcast array: {bytes} a run")


def _is_read_whole(flow: Flow, kernel: Kernel) -> bool:
    """Another kernel reads it: it is not the empty buffer that a loop or a scatter fills."""
    return any(
        passage.bytes_read * 2 >= kernel.bytes_written and passage.consumer.kind != "scatter"
        for passage in flow.passages
        if passage.producer is kernel and not passage.value.crossed
    )


def _tiny(scene: _Scene) -> Iterator[Finding]:
    tiny = [
        kernel
        for kernel, _ in scene.pairs
        if kernel.flops is not None and kernel.flops < TINY_FLOPS and kernel.bytes < TINY_BYTES
    ]
    launches = sum(kernel.count or 1 for kernel in tiny)
    everything = sum(kernel.count or 1 for kernel, _ in scene.pairs)
    if launches < FEW or launches * 2 < everything:
        return
    ordered = sorted(tiny, key=lambda kernel: -(kernel.count or 1))
    yield Finding(
        "tiny-kernels",
        f"{integer(launches)} of {integer(everything)} launches move less than {bytes_(TINY_BYTES)} and compute less "
        f"than {scaled(TINY_FLOPS, 'FLOP')}: launching them takes longer than they do",
        ADVICE["tiny-kernels"],
        tuple(kernel.name for kernel in ordered),
    )  # fmt: skip


def _padding(scene: _Scene) -> Iterator[Finding]:
    found = [
        kernel
        for kernel, instruction in scene.pairs
        if _total(kernel) >= LARGE_BYTES
        and "pad" in (opcodes := scene.opcodes(kernel, instruction))
        and opcodes <= {"pad", "copy", "transpose", "reshape", "slice"}
    ]
    yield from _gather("padding", found, "{count} kernels only pad arrays: {bytes} a run")


def _odd_sizes(scene: _Scene) -> Iterator[Finding]:
    """Sizes of GEMMs that leave a part of each matrix tile empty; only where there are matrix units."""
    if not scene.on_accelerator:
        return
    found: list[Kernel] = []
    sizes: list[str] = []
    for kernel, instruction in scene.pairs:
        if kernel.kind != "GEMM" or (kernel.flops or 0) < LARGE_GEMM_FLOPS:
            continue
        multiple = 128 if scene.platform == "tpu" else _GPU_MULTIPLE.get(kernel.dtype, 8)
        odd = [size for size in _gemm_sizes(instruction) if size % multiple and size > multiple]
        if odd:
            found.append(kernel)
            sizes += [str(size) for size in odd]
    if found:
        named = ", ".join(list(dict.fromkeys(sizes))[:6])
        yield from _gather("odd-sizes", found, f"{{count}} GEMMs have sizes that fill no whole tile ({named})")


_GPU_MULTIPLE: Final = {"f32": 4, "f64": 2, "s8": 16, "u8": 16, "f8e4m3fn": 16, "f8e5m2": 16}
"""Elements in 16 bytes: the alignment that tensor cores want (NVIDIA, Matrix Multiplication Background, section 4)."""


def _gemm_sizes(instruction: Instruction) -> set[int]:
    """The last two sizes of the operands and the result of the product, without those that are 1."""
    held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
    product = next((inner for inner in held if inner.opcode in ("dot", "convolution")), instruction)
    shapes = [leaf for operand in product.operand_instructions()[:2] for leaf in operand.shape.leaves()]
    shapes += product.shape.leaves()[:1]
    return {size for shape in shapes for size in shape.dimensions[-2:] if size > 1}


def _rematerialised(scene: _Scene) -> Iterator[Finding]:
    found = [
        kernel
        for kernel, _ in scene.pairs
        if ".remat" in kernel.name or any(origin.path.recomputed for origin in kernel.origins)
    ]
    flops = sum((kernel.flops or 0) * (kernel.count or 1) for kernel in found)
    sentence = f"{{count}} kernels compute again what was not kept: {scaled(flops, 'FLOP')}, {{bytes}} a run"
    yield from _gather("rematerialisation", found, sentence)


def _constants(scene: _Scene) -> Iterator[Finding]:
    found: list[tuple[int, str]] = []
    for computation in scene.table.module.computations.values():
        found += [
            (instruction.shape.bytes, instruction.name)
            for instruction in computation.instructions
            if instruction.opcode == "constant" and instruction.shape.bytes >= LARGE_BYTES
        ]
    if found:
        found.sort(reverse=True)
        size = sum(size for size, _ in found)
        message = f"{len(found)} constants of {bytes_(size)} are baked into the program"
        yield Finding("large-constant", message, ADVICE["large-constant"], tuple(name for _, name in found), size)


def _unused(scene: _Scene) -> Iterator[Finding]:
    found: list[tuple[int, str]] = []
    for kernel, instruction in scene.pairs:
        members = instruction.shape.tuple_shapes
        if len(members) < 2 or kernel.asynchronous or instruction.is_root:
            continue
        users = instruction.users
        if any(user.opcode != "get-tuple-element" for user in users):
            continue
        used = {index for user in users if user.users or user.is_root for index in user.integers("index")}
        scratch = len(members) - 1 if members[-1].dtype in ("s8", "u8") and members[-1].rank == 1 else len(members)
        size = sum(shape.bytes for number, shape in enumerate(members[:scratch]) if number not in used)
        if size * (kernel.count or 1) >= LARGE_BYTES:
            found.append((size * (kernel.count or 1), kernel.name))
    if found:
        found.sort(reverse=True)
        size = sum(size for size, _ in found)
        message = f"{len(found)} kernels write results that nothing reads: {bytes_(size)} a run"
        yield Finding("unused-output", message, ADVICE["unused-output"], tuple(name for _, name in found), size)


_HOST_KINDS: Final = frozenset({"host callback", "transfer", "infeed", "outfeed"})


def _host(scene: _Scene) -> Iterator[Finding]:
    found = [kernel for kernel, _ in scene.pairs if kernel.kind in _HOST_KINDS]
    yield from _gather("host-transfer", found, "{count} kernels exchange data with the host: {bytes} a run")


def _loops(scene: _Scene) -> Iterator[Finding]:
    """Loops whose every turn launches kernels that are all tiny."""
    bodies: dict[str, list[Kernel]] = {}
    for kernel, _ in scene.pairs:
        bodies.setdefault(kernel.computation, []).append(kernel)
    for edges in scene.table.execution.edges.values():
        for edge in edges:
            if edge.caller.opcode != "while" or edge.callee != edge.caller.called[0]:
                continue
            inside = bodies.get(edge.callee, [])
            if not inside or (edge.times is not None and edge.times < FEW) or scene.table.execution.edges[edge.callee]:
                continue
            moved = sum(kernel.bytes for kernel in inside)
            if any(kernel.flops is None or kernel.flops >= TINY_FLOPS for kernel in inside):
                continue
            if moved >= TINY_BYTES * len(inside):
                continue
            turns = "an unknown number of" if edge.times is None else integer(edge.times)
            yield Finding(
                "small-loop-body",
                f"{edge.caller.name} makes {turns} turns of {len(inside)} kernels that move {bytes_(moved)}: the "
                "loop's overhead is larger than its work",
                ADVICE["small-loop-body"],
                (edge.caller.name,),
            )  # fmt: skip


_LOOKS: Final[tuple[Callable[[_Scene], Iterator[Finding]], ...]] = (
    _layout_copies, _converts, _float64, _broadcasts, _tiny, _padding, _odd_sizes, _rematerialised, _constants,
    _unused, _host, _loops,
)  # fmt: skip
_BEFORE_OPTIMISATION: Final = (_rematerialised, _constants, _host)
"""What can be told of a module in which nothing is fused yet."""
