"""Findings about backward passes that cost many times their forward pass.

Each function yields one finding at most, about the form that does the most work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jaxprof.base.units import bytes_, counted, integer, percent, ratio
from jaxprof.events import SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import LARGE_BYTES, WORTH, Scene, check, module_finding, total
from jaxprof.hlo.kernels import SAME_PLACE
from jaxprof.hlo.kernels.dataflow import origin_through, sources
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import values_of
from jaxprof.hlo.source import own_frame
from jaxprof.hlo.text.model import Instruction

_BACKWARD = "transpose(jvp("
"""What JAX writes into the name of an operation that transposition made."""
_TIMES = 8.0
"""Work of a backward pass, in forward passes, from which it is reported. Two or three are usual, four with
checkpointing."""
_MOST = 0.5
"""Share of the module's work that such a backward pass has."""
_SEEN = 0.02
"""Least share of a forward pass: XLA has removed a part of a smaller one."""
_PADS = 4
"""Gradients of slices in one loop from which XLA:CPU does not vectorise it: those of two differences."""
_FILLED = 0.4
"""Share of the traffic that fills and reads the gradient of a table from which it is reported: with the two moments of
Adam it is a quarter, and the table's own update reads all of it anyway."""
_FEW_ROWS = 8
"""A lookup leaves at least this many times as many rows of the table alone as it takes."""


GRADIENT_OF_DIFFERENCES = (
    "Write the gradient of the whole expression by hand (jax.custom_vjp), with its factors outside the differences: "
    "that of jnp.sum(jnp.diff(x) ** 2) is -2 * jnp.diff(jnp.diff(x), prepend=0, append=0). A rule for jnp.diff alone "
    "gains nothing."
)
"""Measured with three axes of 192: 18 ms by JAX, 19 ms with a rule for each difference, 4 ms by hand."""


@check(
    "the backward pass costs many times the forward pass",
    "A backward pass usually takes two or three times the work of its forward pass. Some gradients take more: a "
    "slice or a lookup makes an array of zeros as large as the whole, pooling a scatter, and many results a pass each.",
    "Write the gradient of this operation by hand (jax.custom_vjp), or take it out of what is differentiated.",
    saves="part",
)
def costly_backward(scene: Scene) -> Iterator[Finding]:
    if _BACKWARD not in scene.module.text:
        return
    for form in (_table_gradient, _slice_gradients, _pooling, _many_passes):
        if (finding := form(scene)) is not None:
            yield finding
            return


def _table_gradient(scene: Scene) -> Finding | None:
    """The gradient of a lookup: zeros of the size of the table, to which a few rows are added."""
    moved = sum(map(total, scene.kernels))
    for kernel in scene.kernels:
        for value in values_of(kernel.instruction) if kernel.kind == "scatter" else ():
            updates = value.instruction.operand(-1)
            if value.opcode != "scatter" or updates is None or _BACKWARD not in _name(value.instruction):
                continue
            zeros = origin_through(next(iter(sources(value)), None), SAME_PLACE)
            size = value.shape.bytes
            if zeros is None or zeros.opcode != "broadcast" or updates.shape.bytes * _FEW_ROWS > size:
                continue
            filled = 2 * size * (kernel.count or 1)
            if size < LARGE_BYTES or filled < _FILLED * moved:
                continue
            message = (
                f"the gradient of a lookup is an array of the whole table: {bytes_(size)} of zeros are written and "
                f"read for {bytes_(updates.shape.bytes)} of rows, {percent(filled / moved)} of the program's traffic"
            )
            return replace(
                module_finding(message, (kernel.name, zeros.outermost.name), filled),
                own_fix="Differentiate with respect to the rows that are used, and update these alone: grads = "
                "jax.grad(loss)(table[ids]), then table.at[ids].add(-rate * grads).",
            )
    return None


def _slice_gradients(scene: Scene) -> Finding | None:
    """The gradient of slices: each is padded with zeros to the whole array, and all are added in one loop."""
    if scene.platform != "cpu":
        return None
    loops: list[tuple[Kernel, int]] = []
    for kernel in scene.kernels:
        if "pad" not in scene.opcodes(kernel):
            continue
        # Differences that are padded as they are become vector instructions, products with a factor do not.
        pads = [value for value in values_of(kernel.instruction) if value.opcode == "pad"]
        scaled = [pad.instruction for pad in pads if not any(made.opcode == "subtract" for made in sources(pad)[:1])]
        number = sum(_BACKWARD in _name(pad) and pad.shape.bytes >= LARGE_BYTES for pad in scaled)
        if number >= _PADS:
            loops.append((kernel, number))
    kernels = [kernel for kernel, _ in loops]
    if not loops or (share := scene.share(kernels)) < WORTH:
        return None
    message = (
        f"the gradient pads {counted(max(number for _, number in loops), 'slice')} with zeros to the whole array in "
        f"one loop, whose condition for each rules out vector instructions: {percent(share)} of the program's work by "
        "its traffic, and more of its time"
    )
    return replace(
        module_finding(message, tuple(kernel.name for kernel in kernels)),
        own_fix=GRADIENT_OF_DIFFERENCES,
    )


def _pooling(scene: Scene) -> Finding | None:
    """The gradient of a max pooling, which XLA expands to an arg-max over windows and a scatter. Its parts have no
    names."""
    scatters = [kernel for kernel in scene.kernels if kernel.kind == "scatter"]
    pooled = [kernel for kernel in scatters if kernel.path.primitive == "select_and_scatter"]
    if not pooled:
        return None
    parts = [kernel for kernel in scene.kernels if not kernel.op_name and not kernel.uses_matrix_units]
    share = scene.share([*pooled, *parts])
    if share < WORTH:
        return None
    message = (
        f"the gradient of a max pooling finds the largest element of each window again and scatters to it: "
        f"{bytes_(sum(map(total, [*pooled, *parts])))} a call, {percent(share)} of the program's work"
    )
    return replace(
        module_finding(message, tuple(kernel.name for kernel in [*pooled, *parts])),
        own_fix="Where the windows do not overlap, pool by a reduction, whose gradient is a comparison: "
        "x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4)).",
    )


def _many_passes(scene: Scene) -> Finding | None:
    forward: list[Kernel] = []
    backward: list[Kernel] = []
    for kernel in scene.kernels:
        name = _name(kernel.instruction)
        if "jvp(" in name:
            (backward if _BACKWARD in name else forward).append(kernel)
    ahead, back = sum(map(scene.work, forward)), sum(map(scene.work, backward))
    whole = sum(map(scene.work, scene.kernels))
    if not ahead or back < _TIMES * ahead or back < _MOST * whole:
        return None
    # One forward pass and many backward passes; of examples that are differentiated one by one both are under vmap.
    batched = [kernel for kernel in backward if f"vmap({_BACKWARD}" in _name(kernel.instruction)]
    reverse = len(batched) * 2 > len(backward) and not any(
        "vmap(jvp(" in _name(kernel.instruction) for kernel in forward
    )
    if not reverse and ahead < _SEEN * whole:
        return None
    worst = max(backward, key=scene.work)
    message = (
        f"the backward pass does {ratio(back / ahead)} the work of the forward pass, most of it in {worst.name} "
        f"({worst.path.primitive or worst.kind})"
    )
    finding = module_finding(message, tuple(kernel.name for kernel in sorted(backward, key=scene.work)[::-1]))
    if not reverse:
        return finding
    # The call of jacrev is the innermost frame that all passes share, the forward one too: its lines are more.
    stacks = [stack for kernel in (*backward, *forward) if (stack := kernel.instruction.stack)]
    shared = own_frame(frame for frame in stacks[0] if all(frame in stack for stack in stacks)) if stacks else None
    return replace(
        finding,
        places=(SourceLocation(shared.file, shared.line),) if shared is not None else (),
        message=f"{message}: a backward pass for each of {integer(max(worst.shape.dimensions, default=0))} results",
        own_fix="Where a function has more results than arguments, jax.jacfwd takes one pass for each argument; "
        "jax.jacrev takes one for each result. jax.hessian does the right thing for one result.",
    )


def _name(instruction: Instruction) -> str:
    return instruction.metadata.first_name
