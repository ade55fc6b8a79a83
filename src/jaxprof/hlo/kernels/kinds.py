"""The kind of a kernel, in words, by which a table of kernels is grouped.

A fusion is named after the heaviest operation in it (a dot makes it a GEMM, whichever library computes it), otherwise
after the way in which XLA emits it. `target` names the library or the code generator if it is not XLA's own loop
emitter. What a module was compiled for shows in the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import ARITHMETIC, COLLECTIVES, CONTROL, FREE, TRANSCENDENTAL, base_opcode
from jaxprof.hlo.kernels.cost import is_matmul, is_product, library
from jaxprof.hlo.kernels.dataflow import Value
from jaxprof.hlo.shape import HOST_MEMORY
from jaxprof.hlo.text.model import Instruction, Module, once_per_module


@frozen
class KernelKind:
    """A kernel's kind, and the library or generator that makes it."""

    words: str
    target: str = ""


_OF_OPCODE: dict[str, str] = {
    "dot": "GEMM", "ragged-dot": "GEMM", "scaled-dot": "GEMM", "sort": "sort", "topk": "top-k", "fft": "FFT",
    "scatter": "scatter", "gather": "gather", "reduce": "reduction", "reduce-window": "window reduction",
    "select-and-scatter": "window reduction", "copy": "copy", "copy-start": "copy", "transpose": "transpose",
    "reshape": "copy", "infeed": "infeed", "outfeed": "outfeed",
    "cholesky": "Cholesky", "triangular-solve": "triangular solve", "rng": "random numbers",
    "rng-bit-generator": "random numbers", "rng-get-and-update-state": "random numbers", "slice": "slice",
    "dynamic-slice": "slice", "dynamic-update-slice": "update in place", "concatenate": "concatenation", "pad": "pad",
    "broadcast": "broadcast", "iota": "broadcast", "reverse": "copy", "bitcast-convert": "copy", "map": "elementwise",
    "while": "loop", "conditional": "branch",
}  # fmt: skip
_OF_FUSION = {
    "kLoop": "loop fusion",
    "kInput": "input fusion",
    "kOutput": "output fusion",
    "kCustom": "custom fusion",
}
HOST_KINDS = frozenset({"host callback", "transfer", "infeed", "outfeed"})
"""Kinds that exchange data with the host."""
_HEAVY = ("scatter", "sort", "fft", "select-and-scatter")
_COPYING = frozenset({"dynamic_memcpy", "address_computation"})


def kind_of(instruction: Instruction, inside: Sequence[Instruction] | None = None) -> KernelKind:
    """Return the kind of a kernel; for an asynchronous start, the kind of what it wraps. `inside` is the result of
    `instructions_in`, if already known."""
    opcode = instruction.opcode
    if opcode == "async-start":
        wrapped = (each for called in instruction.callees() for each in called.instructions)
        for each in wrapped:
            if each.opcode not in FREE and each.opcode != "async-start":
                return kind_of(each)
        return KernelKind(_OF_OPCODE.get(instruction.wrapped_opcode, instruction.wrapped_opcode or "async"))
    if opcode == "fusion":
        return _of_fusion(instruction, instructions_in(instruction) if inside is None else inside)
    if opcode == "call":
        working = [each for called in instruction.callees() for each in called if each.opcode not in FREE]
        return kind_of(working[0]) if len(working) == 1 and working[0].opcode != "call" else KernelKind("call")
    if opcode == "custom-call":
        target = instruction.string("custom_call_target")
        return KernelKind(library.kind_of(target), target)
    if opcode == "convolution":
        return KernelKind("GEMM" if is_matmul(instruction) else "convolution")
    if opcode in ("copy", "copy-start"):
        operand = instruction.operand(0)
        shapes = [*instruction.shape.leaves(), *(operand.shape.leaves() if operand is not None else ())]
        spaces = {shape.layout.memory_space for shape in shapes if shape.layout and shape.rank}
        return KernelKind("transfer" if HOST_MEMORY in spaces and len(spaces) > 1 else "copy")
    if opcode in ("send", "recv"):
        # Without the attribute, the transfer is between devices: stages of a pipeline.
        return KernelKind("transfer" if instruction.attributes.get("is_host_transfer") == "true" else opcode)
    base = base_opcode(opcode)
    if base in COLLECTIVES:
        return KernelKind(base)
    if opcode in ARITHMETIC or opcode in TRANSCENDENTAL:
        return KernelKind("elementwise")
    return KernelKind(_OF_OPCODE.get(opcode, opcode))


def generator_of(fusion: Instruction) -> str:
    """Return the generator of a fusion's code, from its settings: `__triton_gemm`, `__ynn_fusion`; empty for XLA
    itself."""
    config = fusion.backend_config
    for key in ("fusion_backend_config", "fusion_config"):
        inner = config.get(key)
        if isinstance(inner, dict) and isinstance(inner.get("kind"), str):
            if inner["kind"] == "__custom_fusion":
                custom = inner.get("custom_fusion_config")
                return str(custom.get("name", "")) if isinstance(custom, dict) else "__custom_fusion"
            return str(inner["kind"])
    old = config.get("kind")
    return old if isinstance(old, str) else ""


def instructions_in(kernel: Instruction) -> list[Instruction]:
    """Return the instructions in a kernel: those in a fusion and in the fusions in it, without parameters, or the
    kernel itself; for a loop, branch or call those of all computations that it runs."""
    if kernel.opcode in CONTROL:
        inside: list[Instruction] = []
        computations = [*kernel.callees()]
        for computation in computations:  # which grows on the way
            for inner in computation.instructions:
                if inner.opcode in CONTROL:
                    computations += [each for each in inner.callees() if each not in computations]
                elif inner.opcode not in FREE:
                    inside += instructions_in(inner)
        return inside
    return [value.instruction for value in values_of(kernel) if value.opcode != "parameter"]


def _of_fusion(fusion: Instruction, inside: Sequence[Instruction]) -> KernelKind:
    target = generator_of(fusion)
    working = [instruction for instruction in inside if instruction.opcode not in FREE]
    opcodes = {instruction.opcode for instruction in working}
    dots = sum(is_product(instruction) for instruction in working)
    if dots >= 2 and {"reduce", "exponential"} <= opcodes:
        from jaxprof.hlo.kernels.attention import scores_before

        for value in values_in((fusion,)):
            scores = scores_before(value) if is_product(value.instruction) else None
            if scores is not None and scores.fusions[:1] == (fusion,):
                return KernelKind("attention", target)
    if dots or "convolution" in opcodes:
        return KernelKind("GEMM" if dots else "convolution", target)
    for opcode in _HEAVY:
        if opcode in opcodes:
            return KernelKind(_OF_OPCODE[opcode], target)
    for instruction in working:
        if instruction.opcode == "custom-call":
            name = instruction.string("custom_call_target")
            return KernelKind(library.kind_of(name), target or name)
        if base_opcode(instruction.opcode) in COLLECTIVES:
            return KernelKind(base_opcode(instruction.opcode), target)
    if len(working) == 1 and working[0].opcode in ("copy", "transpose", "reduce-window"):
        return KernelKind(_OF_OPCODE[working[0].opcode], target)
    if target.startswith("__triton"):
        return KernelKind("Triton fusion", target)
    kind = fusion.string("kind")
    if "reduce" in opcodes and kind != "kLoop":
        return KernelKind("reduction fusion", target)
    if kind == "kInput" and opcodes & {"transpose", "copy"}:
        return KernelKind("transpose fusion", target)
    if target in _COPYING or (target and opcodes <= {"dynamic-slice", "dynamic-update-slice", "slice", "copy"}):
        return KernelKind("copy", target)
    return KernelKind(_OF_FUSION.get(kind, "fusion"), target)


_DEEPEST = 8
"""Most fusions within a fusion."""


def values_in(fusions: tuple[Instruction, ...]) -> Iterator[Value]:
    """Yield the operations in the innermost of nested fusions, and in those inside it."""
    for computation in fusions[-1].callees()[:1]:
        for instruction in computation.instructions:
            if instruction.opcode != "fusion":
                yield Value(instruction, (), fusions)
            elif len(fusions) <= _DEEPEST:
                yield from values_in((*fusions, instruction))


def values_of(kernel: Instruction) -> Iterator[Value]:
    """Yield the operations in a kernel: those in a fusion, or the kernel itself."""
    return values_in((kernel,)) if kernel.opcode == "fusion" else iter([Value(kernel)])


def reorders(instruction: Instruction) -> bool:
    """Return whether a copy or transpose in the instruction changes the order in memory. A plain copy (of a buffer that
    is still needed) does not, nor does one that moves only dimensions of size 1."""
    for inner in instructions_in(instruction):
        if inner.opcode == "transpose":
            operand = inner.operand(0)
            order = _long(inner.integers("dimensions"), operand.shape.dimensions if operand is not None else ())
            if order != sorted(order) and (operand is None or not _is_view(inner, operand)):
                return True
        if inner.opcode == "copy":
            operand = inner.operand(0)
            before = operand.shape.layout if operand is not None else None
            after = inner.shape.layout
            sizes = inner.shape.dimensions
            if before and after and _long(before.minor_to_major, sizes) != _long(after.minor_to_major, sizes):
                return True
    return False


def _long(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the dimensions of `order` that have more than one element."""
    return [number for number in order if number >= len(sizes) or sizes[number] != 1]


def _is_view(transpose: Instruction, operand: Instruction) -> bool:
    """Return whether the transpose only renames dimensions: every element keeps its position, because the layout is
    transposed as well."""
    before, after = operand.shape.layout, transpose.shape.layout
    order = transpose.integers("dimensions")
    if not before or not after or sorted(order) != sorted(after.minor_to_major):
        return False
    return tuple(order[number] for number in after.minor_to_major) == before.minor_to_major


_MARKS = (
    ("tpu", re.compile(r"\{[\d,]*:T\(\d+(,\d+)?\)|window_config|tpu_custom_call")),
    (
        "gpu",
        re.compile(
            r"__cu(blas|dnn|b)\$|__triton|operation_queue_id|triton_kernel_call|cu(solver|fft|blas)_|__hip|hipsolver_"
            r"|scheduling_name=|%(loop|input)_\w*fusion"
        ),
    ),
    (
        "cpu",
        re.compile(
            r"__ynn_fusion|outer_dimension_partitions|__onednn|lapack_|xla_cpu_|_cpu_callback|%[a-z_-]+_fusion[.\d]* = "
        ),
    ),
)


@once_per_module
def platform_of(module: Module) -> str:
    """Return the platform that a module was compiled for: `cpu`, `gpu`, `tpu`, or empty if that is not known.

    No field of HLO text says it. Backends leave marks: tiled layouts and `S(5)` with VMEM settings on TPUs, library
    targets and code generators on GPUs, thread partitions and YNNPACK or oneDNN fusions, and fusions that
    are named after their operations alone, on CPUs. A small module may bear none; then it is the platform of the device
    that it ran on.
    """
    start, end = module.span
    text = module.source.text
    limit = min(end, start + (4 << 20))  # marks are everywhere; a gigabyte without one is not searched
    return next((name for name, mark in _MARKS if mark.search(text, start, limit)), module.platform)
