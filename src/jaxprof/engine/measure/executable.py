"""What a compiled program reports of itself: XLA's FLOPs, its memory buffer by buffer, and its text without weights.

`memory_analysis()` carries the buffer assignment as a proto, and `runtime_executable()` the module to which the proto
refers. If a version or a backend has neither, nothing is reported here, and the client derives an estimate from the
schedule.

Literals of more than a few elements are removed from texts: weights that a function closes over must not end up in a
file that is kept and shared. That is one linear pass over jaxprs, StableHLO and HLO, which leaves quoted strings alone.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from jaxprof.events import BuffersReported, MemoryReported, finite
from jaxprof.trace.buffers import LARGEST_MODULE_BYTES
from jaxprof.trace.buffers import buffers_of as read_buffers

LARGEST_LITERAL = 16
"""Literals of up to so many elements are shown."""
_OPENING = re.compile(
    r"""dense<(?=["\[])                                          # StableHLO
      | constant\((?=\{)                                         # HLO
      | (?<=[\s=(,])\[(?=[-+]?(?:[\d.\[]|nan|inf|[Tt]rue|[Ff]alse))  # a NumPy array in a jaxpr
      | "(?:[^"\\]|\\.)*"
    """,
    re.VERBOSE,
)
_HEXADECIMAL = re.compile(r'"0x[0-9A-Fa-f]*"')
_BRACKETS = {"[": re.compile(r"[\[\]]"), "{": re.compile(r"[{}]")}
_ELEMENT = re.compile(r"[^\s,\[\]{}()]+")
_SHORT = {"[": "[...]", "{": "{...}", '"': "..."}


def buffers_of(compiled: Any, hlo: str) -> BuffersReported | None:
    """The buffers of `compiled`, whose text is `hlo`; None if the executable does not report them."""
    assignment = _assignment(compiled)
    proto = _module_proto(compiled) if assignment and len(hlo) <= LARGEST_MODULE_BYTES else b""
    return read_buffers(assignment, proto, hlo)


def _assignment(compiled: Any) -> bytes:
    try:
        data = getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", b"")
    except (NotImplementedError, RuntimeError):
        return b""
    return data if isinstance(data, bytes) else b""


def _module_proto(compiled: Any) -> bytes:
    """The first module of the executable; empty if it cannot be reached."""
    try:
        modules = compiled.runtime_executable().hlo_modules()
        data = modules[0].as_serialized_hlo_module_proto() if len(modules) == 1 else b""
    except (AttributeError, NotImplementedError, RuntimeError):
        return b""
    return data if isinstance(data, bytes) and len(data) <= LARGEST_MODULE_BYTES else b""


def flops_of(stage: Any) -> float | None:
    """FLOPs of a lowered or a compiled program by XLA's cost analysis, which takes the body of a loop once; None if it
    does not know them, which it writes as a negative number."""
    try:
        analysis = stage.cost_analysis()
    except (NotImplementedError, RuntimeError):  # a backend that has no cost analysis
        return None
    if isinstance(analysis, list):  # one for each partition
        analysis = analysis[0] if analysis else {}
    value = (analysis or {}).get("flops")
    number = finite(float(value)) if value is not None else None
    return number if number is not None and number >= 0 else None


def memory_of(compiled: Any) -> MemoryReported | None:
    """Bytes of arguments, outputs and temporaries; None if the executable does not report them."""
    try:
        analysis = compiled.memory_analysis()
    except (NotImplementedError, RuntimeError):
        return None
    if analysis is None:
        return None

    def size(name: str) -> int | None:
        value = getattr(analysis, name, None)
        return None if value is None else int(value)

    return MemoryReported(
        argument_bytes=size("argument_size_in_bytes"),
        output_bytes=size("output_size_in_bytes"),
        temporary_bytes=size("temp_size_in_bytes"),
        alias_bytes=size("alias_size_in_bytes"),
        generated_code_bytes=size("generated_code_size_in_bytes"),
        peak_bytes=size("peak_memory_in_bytes"),
    )


def redact_literals(text: str, largest: int = LARGEST_LITERAL) -> str:
    """`text` with every array literal of more than `largest` elements shown as `[...]`, `{...}` or `dense<...>`."""
    parts: list[str] = []
    kept = position = 0
    while match := _OPENING.search(text, position):
        position = match.end()
        if match.group().startswith('"'):
            continue
        begin = match.start() if match.group() == "[" else match.end()
        end = _end_of_literal(text, begin)
        if end is None:  # truncated: anything after the bracket may be the literal's elements
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = len(text)
            break
        if text[begin] == '"' or _larger(text, begin, end, largest):
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = end
        position = end
    parts.append(text[kept:])
    return "".join(parts)


def _end_of_literal(text: str, begin: int) -> int | None:
    """The position after the bracket that closes the one at `begin`, or after a hexadecimal string; None if there is
    none."""
    opener = text[begin]
    if opener == '"':
        match = _HEXADECIMAL.match(text, begin)
        return match.end() if match else None
    depth = 0
    for bracket in _BRACKETS[opener].finditer(text, begin):
        depth += 1 if bracket.group() == opener else -1
        if depth == 0:
            return bracket.end()
    return None


def _larger(text: str, begin: int, end: int, largest: int) -> bool:
    """Whether the literal between the positions holds more than `largest` elements."""
    return len(list(islice(_ELEMENT.finditer(text, begin, end), largest + 1))) > largest
