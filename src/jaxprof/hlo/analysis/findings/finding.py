"""A finding as a value, the advice for each code, and what the findings examine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.flow import flow_of
from jaxprof.hlo.analysis.kernels import analysis_of
from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.analysis.opcodes import FREE
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Instruction, Module


@dataclass(frozen=True, slots=True)
class HloFinding:
    """One finding about a module."""

    code: str
    message: str
    advice: str
    where: tuple[str, ...]
    """Names of kernels or instructions, those with the most weight first."""
    bytes: int | None = None
    """Traffic of one run that the finding accounts for; None if traffic is not its measure."""


ADVICE: Final[dict[str, str]] = {
    "layout-copy": "Let producer and consumer agree on the order of dimensions: transpose once, outside the hot "
    "path, or write the contraction so that it takes the array in its present order (einsum).",
    "dtype-convert": "Keep the array in one dtype along the path, or cast where it is smallest; parameters that are "
    "cast at each step can be kept in the narrow dtype as well.",
    "float64-on-accelerator": "Use float32 unless the result needs more: TPUs emulate float64, and most GPUs have "
    "1/32 or 1/64 of their rate for it. Look for a NumPy constant or jax_enable_x64.",
    "broadcast-materialised": "Pass the small array and let XLA broadcast it inside the kernel that uses it; library "
    "calls and sorts need whole arrays.",
    "tiny-kernels": "Stack the small arrays and process them together (vmap, one concatenated array), or let one "
    "scan iteration do several steps (unroll).",
    "padding": "Choose sizes that need no padding, or pad once, outside the hot path.",
    "odd-sizes": "Make the sizes multiples of the matrix unit's tile: a vocabulary of 50304 costs less than one of "
    "50257.",
    "rematerialisation": "Recomputation trades time for memory. If memory allows, checkpoint less (a policy such as "
    "dots_saveable) or not at all.",
    "large-constant": "Pass the array as an argument: as a constant it is compiled into the program, copied by every "
    "compilation, and can take minutes to fold.",
    "unused-output": "Compute only what is used: a sort without its keys, a decomposition without its vectors.",
    "attention-scores": "Let one kernel compute all of it: jax.nn.dot_product_attention(implementation='cudnn') on "
    "GPUs, a flash-attention kernel (Pallas) on TPUs; or process a block of queries at a time, "
    "so that the scores stay small.",
    "needless-results": "Return only what was computed: the caller already has the argument, the constant or the "
    "other result; donate (donate_argnums) an argument that is returned as a result.",
    "lost-donation": "Donate the arguments that are replaced: jax.jit(step, donate_argnums=...) lets a result reuse "
    "the memory of the argument that it updates. Only if the caller does not use the old array again.",
    "upcast-product": "Give the product the 16-bit arrays themselves: jnp.matmul(a, b, "
    "preferred_element_type=jnp.float32) still accumulates in float32, at twice the rate or more.",
    "precise-product": "Use the default precision if the result stays accurate enough: jax_default_matmul_precision, "
    "or precision=None on the product. On a TPU `highest` takes six passes; on a GPU it rules out TF32.",
    "narrow-sum": "Accumulate in float32 and round once: jnp.sum does this by default; use float32 for the state of a "
    "loop (such as accumulated gradients) and for lax.reduce (x.astype(jnp.float32)).",
    "host-transfer": "Keep the loop on the device: call back less often, or after the step; io_callback and "
    "pure_callback block the device until the host returns. Arrays in host memory (pinned_host) are copied in each "
    "run: keep those that fit on the device.",
    "resharding": "Let the operations on both sides split the array along the same dimension: give parameters, "
    "inputs and jax.lax.with_sharding_constraint the same axes, or split a dimension that the operation does not work "
    "over. If resharding is needed, do it where the array is smallest or has the narrowest dtype.",
    "small-loop-body": "Do more in each iteration: unroll the scan, batch over another axis, or write the recurrence "
    "as an associative scan.",
}
"""What to do about each finding, by its code."""


LARGE_BYTES: Final = 1 << 20
"""Bytes below which traffic hardly matters: a megabyte takes some 0.3 µs of an accelerator's bandwidth, less than a
launch.
"""


class Scene:
    """The module, with what several findings need."""

    def __init__(self, module: Module, platform: str) -> None:
        self.table = analysis_of(module)
        self.flow = flow_of(module)
        self.platform = platform
        self._working: dict[int, frozenset[str]] = {}

    @property
    def pairs(self) -> Iterator[tuple[Kernel, Instruction]]:
        """The kernels with their instructions, in order."""
        return self.table.pairs

    def opcodes(self, kernel: Kernel, instruction: Instruction) -> frozenset[str]:
        """Return the operations in a kernel, without those that cost nothing."""
        opcodes = self._working.get(kernel.likeness)
        if opcodes is None:
            held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
            opcodes = self._working[kernel.likeness] = frozenset(inner.opcode for inner in held) - FREE
        return opcodes

    @property
    def on_accelerator(self) -> bool:
        return self.platform in ("gpu", "tpu")


def total(kernel: Kernel) -> int:
    return kernel.bytes * (kernel.count or 1)


def gather(code: str, kernels: Sequence[Kernel], one: str, many: str, rest: str) -> Iterator[HloFinding]:
    """Yield one finding over all the kernels that show it; `one` or `many` follows their number, and `rest` has a
    placeholder for their bytes."""
    if not kernels:
        return
    ordered = sorted(kernels, key=lambda kernel: -total(kernel))
    moved = sum(total(kernel) for kernel in ordered)
    message = f"{counted(len(ordered), one, many)} {rest.format(bytes=bytes_(moved))}"
    yield HloFinding(code, message, ADVICE[code], tuple(kernel.name for kernel in ordered), moved)
