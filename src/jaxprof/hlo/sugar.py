"""The short form of asynchronous operations, and the long form that the model has.

XLA prints `custom-call-start(%x), custom_call_target="f"` for an `async-start` that calls a computation which holds
one `custom-call`, and leaves that computation out. Its reader puts it back as `async_wrapped`, and so does this one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.hlo.record import Record

_OWN_OPCODE: Final = frozenset(
    {
        "all-gather-start", "all-gather-done", "all-reduce-start", "all-reduce-done", "collective-permute-start",
        "collective-permute-done", "copy-start", "copy-done", "send-done", "recv-done",
        "async-start", "async-update", "async-done",
    }
)  # fmt: skip
_OF_THE_START: Final = frozenset(
    {"async_execution_thread", "metadata", "control-predecessors", "frontend_attributes", "sharding"}
)


@lru_cache(maxsize=1024)
def unsugared(opcode: str) -> tuple[str, str]:
    """The opcode that a written opcode stands for, and what it wraps: `('async-start', 'fusion')`, `('dot', '')`."""
    wrapped, _, stage = opcode.rpartition("-")
    if wrapped and stage in ("start", "update", "done") and opcode not in _OWN_OPCODE:
        return f"async-{stage}", wrapped
    return opcode, ""


def wrapped_computation(name: str, start: Record, in_place: Mapping[int, str]) -> tuple[str, tuple[int, int, int]]:
    """The text of the computation that the short form `start` leaves out, and its `Computation.span`.

    Its parameters have the shapes that the start's own shape lists first, its root the one that it lists second.
    `in_place` names the computations that are written in place, by the offset of their brace.
    """
    _, wrapped = unsugared(start.opcode)
    members = start.shape.tuple_shapes
    operands = members[0].tuple_shapes if members else ()
    result = members[1] if len(members) > 1 else start.shape
    names = [f"async_param.{number}" if number else "async_param" for number in range(len(operands))]
    attributes = "".join(
        f", {item.name}={'%' + in_place[item.start] if item.start in in_place else start.text[item.start : item.end]}"
        for item in start.attribute_list().found
        if item.name not in _OF_THE_START
    )
    signature = ", ".join(f"{name}: {shape.without_layout()}" for name, shape in zip(names, operands, strict=True))
    header = f"%{name} ({signature}) -> {result.without_layout()} "
    lines = [
        *(f"%{name} = {shape} parameter({n})" for n, (name, shape) in enumerate(zip(names, operands, strict=True))),
        f"ROOT %{wrapped} = {result} {wrapped}({', '.join('%' + name for name in names)}){attributes}",
    ]
    body = "".join(f"\n  {line}" for line in lines) + "\n"
    return f"{header}{{{body}}}", (0, len(header) + 1, len(header) + 1 + len(body))
