"""How large a program is, and which large constants it holds: from the module that JAX hands to XLA.

The module is found among the values of JAX's frames when the compilation begins, by what it can do. Its operations are
walked and not printed: about 1 µs each, where its text costs five.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from jaxprof.program.places import JAX, frame_kind

CONSTANT_BYTES_AT_LEAST: Final = 64 * 1024
CONSTANTS_KEPT: Final = 16

_FRAMES_LOOKED_AT = 12
_WALK_SECONDS_AT_MOST = 0.25
_CLOCK_READ_EVERY = 4096
_FRAMEWORK: Final = frozenset({"builtin.module", "func.func", "func.return", "stablehlo.return"})
_BITS: Final = {"i1": 8, "bf16": 16, "complex<f32>": 64, "complex<f64>": 128}


@dataclass(slots=True)
class ModuleSize:
    """Operations, None where the module was not found or is too large to walk; constants, largest first."""

    operations: int | None = None
    constants: list[dict[str, Any]] = field(default_factory=list)


def read_module_size(frame: FrameType | None) -> ModuleSize:
    """The size of the module whose compilation begins at `frame`."""
    looked_at = 0
    while frame is not None and looked_at < _FRAMES_LOOKED_AT and frame_kind(frame) == JAX:
        for value in frame.f_locals.values():
            if type(value).__module__.startswith("jaxlib.mlir") and hasattr(value, "operation"):
                return _walk(value.operation)
        frame = frame.f_back
        looked_at += 1
    return ModuleSize()


def _walk(operation: Any) -> ModuleSize:
    result = sys.modules["jaxlib.mlir.ir"].WalkResult
    proceed = result.ADVANCE
    size = ModuleSize()
    seen = counted = 0
    complete = True
    deadline = time.monotonic() + _WALK_SECONDS_AT_MOST

    def visit(found: Any) -> Any:
        nonlocal seen, counted, complete
        seen += 1
        if seen % _CLOCK_READ_EVERY == 0 and time.monotonic() > deadline:
            complete = False
            return result.INTERRUPT
        name = found.name
        if name in _FRAMEWORK:
            return proceed
        counted += 1
        if name == "stablehlo.constant":
            constant = _constant(found)
            if constant is not None:
                size.constants.append(constant)
        return proceed

    operation.walk(visit)
    size.operations = counted if complete else None
    size.constants.sort(key=lambda constant: -constant["bytes"])
    del size.constants[CONSTANTS_KEPT:]
    return size


def _constant(operation: Any) -> dict[str, Any] | None:
    """A constant that is large and not one value repeated."""
    kind = operation.results[0].type
    count = 1
    for dimension in kind.shape:
        count *= dimension
    if count < CONSTANT_BYTES_AT_LEAST // 16:
        return None
    element = str(kind.element_type)
    size = count * _element_bits(element) // 8
    if size < CONSTANT_BYTES_AT_LEAST or getattr(operation.attributes["value"], "is_splat", False):
        return None
    short = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}.get(element, element.replace("ui", "u"))
    return {"type": f"{short}[{','.join(map(str, kind.shape))}]", "bytes": size}


def _element_bits(element: str) -> int:
    digits = "".join(character for character in element.partition("E")[0] if character.isdigit())
    return _BITS.get(element, int(digits) if digits else 8)
