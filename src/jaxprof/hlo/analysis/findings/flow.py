"""Findings that follow the data through kernels: attention whose scores go through memory, and arguments that are
updated without being donated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.attention import attention_before, is_any_product
from jaxprof.hlo.analysis.dataflow import Value, resolved, same_elements, sources, upstream
from jaxprof.hlo.analysis.findings.finding import LARGE_BYTES, found, gather_sizes
from jaxprof.hlo.analysis.flow import array_key
from jaxprof.hlo.analysis.kernels import MATRIX_KINDS
from jaxprof.hlo.analysis.kinds import values_of
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from jaxprof.finding import Finding
    from jaxprof.hlo.analysis.attention import Attention
    from jaxprof.hlo.analysis.findings.finding import Scene
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Instruction


def attention_scores(scene: Scene) -> Iterator[Finding]:
    """Find attention in several kernels, with arrays of the size of the scores between them."""
    attentions = list(_attentions(scene))
    if not attentions:
        return
    kernels = {
        id(kernel): number for number, attention in reversed([*enumerate(attentions)]) for kernel in _between(attention)
    }
    written: dict[Hashable, tuple[int, Kernel]] = {}
    storing: set[int] = set()
    for passage in scene.flow.passages:
        number = kernels.get(id(passage.producer.instruction))
        if number is None or not passage.bytes_read:  # not attention, or kept in a TPU's on-chip memory
            continue
        shape = passage.value.instruction.shape.member(passage.value.member)
        if shape.elements != attentions[number].scores.elements or shape.dtype == "pred":
            continue
        key = array_key(passage.value)
        size, producer = written.get(key, (shape.bytes * (passage.producer.count or 1), passage.producer))
        written[key] = (size + passage.bytes_read * (passage.consumer.count or 1), producer)
        storing.add(number)
    shapes = [str(attentions[number].scores.shape.without_layout()) for number in sorted(storing)]
    moved = sum(size for size, _ in written.values())
    if moved < LARGE_BYTES:
        return
    several = f"{len(shapes)} times" if len(shapes) > 1 else "once"
    message = (
        f"attention stores its scores ({shapes[0]}, {several}): {counted(len(written), 'array')} of "
        f"their size, {bytes_(moved)} written and read a run"
    )
    where = sorted(written.values(), key=lambda pair: -pair[0])
    yield found("attention-scores", message, tuple(dict.fromkeys(k.name for _, k in where)), moved)


def _attentions(scene: Scene) -> Iterator[Attention]:
    # Without a reduction there is no softmax, and each search back from a product would visit up to 512 values in vain.
    if " reduce" not in scene.table.module.text:
        return
    for kernel in scene.kernels:
        if kernel.kind not in MATRIX_KINDS or kernel.kind == "attention":
            continue
        for value in values_of(kernel.instruction):
            attention = attention_before(value) if is_any_product(value.instruction) else None
            # If the scores are the smaller array, storing them is cheap.
            if attention is not None and attention.scores.elements > value.elements:
                yield attention


def _between(attention: Attention) -> list[Instruction]:
    """Return the distinct kernels from the first product to the second."""
    kernels: dict[int, Instruction] = {}
    for operand in sources(attention.second)[:2]:
        for value in upstream(operand, same_elements):
            if value.elements == attention.scores.elements:
                outer = value.fusions[0] if value.fusions else value.instruction
                kernels[id(outer)] = outer
    return list(kernels.values())


UPDATED_BYTES: Final = 16 << 20
"""Memory of replaced arguments from which their donation is worth reporting."""
_UPDATED: Final = 2
"""Number of updated arguments that identify a step, which replaces its state, rather than a function of an array."""


def lost_donation(scene: Scene) -> Iterator[Finding]:
    """Find results that update arguments element by element but do not take their memory, so that the old and the new
    state are held at once."""
    module = scene.table.module
    root = module.entry.root if module.entry is not None else None
    if root is None or root.opcode != "tuple" or "buffer_donor" in module.attributes:
        return
    own = module.aliases
    taken = set(own.values())
    updated: list[tuple[int, str]] = []
    for number, result in enumerate(root.operand_instructions()):
        value = resolved(Value(result))
        if (
            value is None
            or (number,) in module.aliases
            or value.opcode == "parameter"
            or value.shape.bytes < LARGE_BYTES
        ):
            continue
        argument = next(
            (source for source in upstream(value, same_elements) if _is_argument(source, value, taken)), None
        )
        if argument is not None:
            taken.add(argument.instruction.parameter_number or 0)
            updated.append((value.shape.bytes, argument.instruction.name))
    if len(updated) >= _UPDATED and sum(size for size, _ in updated) >= UPDATED_BYTES:
        rest = "of arguments that are not donated: {bytes} more memory"
        yield from gather_sizes("lost-donation", updated, "result is an update", "results are updates", rest)


def _is_argument(value: Value, result: Value, taken: set[int]) -> bool:
    number = value.instruction.parameter_number if value.opcode == "parameter" and not value.fusions else None
    return number is not None and number not in taken and value.shape.dtype == result.shape.dtype
