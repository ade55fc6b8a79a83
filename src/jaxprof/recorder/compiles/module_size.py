"""Measures how large a program is and which large constants it holds, from the module that JAX hands to XLA.

When the compilation begins, the module is found among the values of JAX's frames by its attributes. Its operations are
walked, not printed: a walk takes about 1.5 µs for each, the text three times as long.
"""

from __future__ import annotations

import itertools
import math
import re
import time
import zlib
from collections import Counter
from operator import itemgetter
from types import FrameType
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.events import LineOperations, ProgramArray
from jaxprof.recorder.compiles.arguments import array_bytes, array_type
from jaxprof.recorder.frame_owner import JAX, LIBRARY, USER, file_kind, frame_kind, outwards

CONSTANT_BYTES_AT_LEAST = 64 * 1024

_FRAMES_LOOKED_AT = 12
_WALK_SECONDS_AT_MOST = 0.25
_CLOCK_READ_EVERY = 4096
LARGE_OPERATIONS = 1_000
"""Number of operations above which the lines that made them are read; XLA needs 1 or 2 ms for each operation."""
_OPERATIONS_SAMPLED = 256
_GOLDEN = 0.6180339887498949
_SAMPLE_SECONDS_AT_MOST = 0.02
"""Reading the location of an operation takes 10 to 300 µs, because it is only printed with the whole stack."""
_LINES_KEPT = 16
_plain: set[str] = set()
"""Operations without regions, by name: all of a name have as many, and asking takes a third of the walk."""
_DTYPES = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
"""Short names of those types whose name in MLIR is another one."""


@dataclass(slots=True)
class ModuleSize:
    """Number of operations (None if the module was not found or is too large to walk) and constants, largest first."""

    operations: int | None = None
    checksum: int | None = None
    """Checksum of the operations' names, in order: equal for programs that differ only in constants and sizes."""
    callbacks: bool = False
    made_by: list[LineOperations] = field(default_factory=list)
    """Lines that made most operations of a large program, or of one with large constants, most first."""
    constants: list[ProgramArray] = field(default_factory=list)
    arguments: int | None = None
    """Number of arguments that the program takes; None if unknown."""
    taken: dict[str, bool] = field(default_factory=dict)
    """Whether an output may reuse the buffer of an argument, by JAX's name of the argument."""


def read_module_size(frame: FrameType | None, *, arguments: bool) -> ModuleSize:
    """Return the size of the module whose compilation begins at `frame`; with `arguments`, also how many it takes, and
    JAX's notes on those that are donated."""
    for caller in itertools.takewhile(lambda caller: frame_kind(caller) == JAX, outwards(frame, _FRAMES_LOOKED_AT)):
        for value in caller.f_locals.values():
            if type(value).__module__.startswith("jaxlib.mlir") and hasattr(value, "operation"):
                size = _walk(value.operation)
                if arguments:
                    _read_arguments(value.operation, size)
                return size
    return ModuleSize()


def _walk(module: Any) -> ModuleSize:
    """Count the operations in a loop in Python, not by `walk`: an exception from a signal handler of the program would
    be lost in a function that C++ calls."""
    size = ModuleSize()
    seen = counted = checksum = 0
    deadline = time.monotonic() + _WALK_SECONDS_AT_MOST
    waiting = [module]
    # A sample of the operations, as even as every nth of them, but not in step with an unrolled loop: those with the
    # smallest fractional parts of their number times the golden ratio.
    sampled: list[tuple[float, Any]] = []
    below = 1.0
    while waiting:
        if seen and seen % _CLOCK_READ_EVERY == 0 and time.monotonic() > deadline:
            break
        operation = waiting.pop()
        seen += 1
        name = operation.name
        if name not in _plain:
            named = str(operation.attributes["sym_name"].value) if name == "func.func" else ""
            # JAX's functions for random bits are not counted: for accelerators each has 220 operations, which JAX
            # unrolled and not the program.
            regions = [] if named.startswith("threefry2x32") else list(operation.regions)
            for block in itertools.chain.from_iterable(regions):
                waiting.extend(inner.operation for inner in block)
            if not len(operation.regions):
                _plain.add(name)
        if name in {"builtin.module", "func.func", "func.return", "stablehlo.return"}:
            continue
        counted += 1
        part = counted * _GOLDEN % 1.0
        if part < below and name != "stablehlo.constant":
            sampled.append((part, operation))
            if len(sampled) == _OPERATIONS_SAMPLED:
                below /= 2
                sampled = [each for each in sampled if each[0] < below]
        checksum = zlib.crc32(name.encode(), checksum)
        if name == "stablehlo.custom_call" and "callback" in str(operation.attributes["call_target_name"]):
            size.callbacks = True
        if name == "stablehlo.constant":
            constant = _constant(operation)
            if constant is not None:
                size.constants.append(constant)
    if not waiting:
        size.operations, size.checksum = counted, checksum
    size.constants.sort(key=lambda constant: -(constant.bytes or 0))
    del size.constants[16:]
    if counted > LARGE_OPERATIONS or size.constants:
        # Whenever the time is over, what was read is spread over the whole program.
        size.made_by = _lines([operation for _, operation in sorted(sampled, key=itemgetter(0))])
    return size


_FRAME = re.compile(r'"\("((?:[^"\\]|\\.)*)":(\d+):')
"""Matches a file and line in a location: `loc("jit(f)/sin"(callsite("f"("/home/me/f.py":5:12 to :33) at ...`."""
_OPERATION = re.compile(r'loc\("(?:[^"\\]|\\.)*?([^"/\\]*)"[()]')


def _lines(operations: list[Any]) -> list[LineOperations]:
    """Return the lines that made these operations: of the frames in its location, innermost first, that is the first of
    the user's own, else the first of a library."""
    made: Counter[tuple[str, int, str]] = Counter()
    deadline, read = time.monotonic() + _SAMPLE_SECONDS_AT_MOST, 0
    for operation in operations:
        if read % 16 == 15 and time.monotonic() > deadline:
            break
        read += 1
        location = str(operation.location)
        frames = [(file_kind(file), file, int(line)) for file, line in _FRAME.findall(location)]
        _, file, line = next((frame for kind in (USER, LIBRARY) for frame in frames if frame[0] == kind), ("", "", 0))
        named = _OPERATION.match(location)
        if file:
            made[file, line, named[1] if named is not None else ""] += 1
    return [
        LineOperations(file=file, line=line, name=name, share=count / read)
        for (file, line, name), count in made.most_common(_LINES_KEPT)
    ]


_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]')


def _read_arguments(module: Any, size: ModuleSize) -> None:
    """Note the arguments of the entry function; nothing if it cannot be read."""
    for operation in module.regions[0].blocks[0].operations:
        attributes = operation.attributes
        if operation.operation.name != "func.func" or attributes["sym_name"].value != "main":
            continue
        arguments = operation.operation.regions[0].blocks[0].arguments
        notes = attributes["arg_attrs"] if "arg_attrs" in attributes else []  # noqa: SIM401 it has no get
        size.arguments = len(arguments)
        for argument, noted in zip(arguments, notes, strict=False):
            # Its name is read from the location's text: asking for a name that is not there ends the process on
            # jaxlib 0.7.
            named = _NAMED.match(str(argument.location))
            name = named[1].replace('\\"', '"').replace("\\\\", "\\") if named is not None else ""
            if name:
                size.taken[name] = any(note in noted for note in ("tf.aliasing_output", "jax.buffer_donor"))
        return


def _constant(operation: Any) -> ProgramArray | None:
    """Return a constant if it is large and not one repeated value, else None."""
    kind = operation.results[0].type
    shape, element = tuple(kind.shape), str(kind.element_type)
    # No element has more than 16 bytes, so that the shape alone rules most constants out.
    if math.prod(shape) < CONSTANT_BYTES_AT_LEAST // 16:
        return None
    dtype = _DTYPES.get(element, element.replace("ui", "u"))
    size = array_bytes(shape, dtype) or 0
    if size < CONSTANT_BYTES_AT_LEAST or getattr(operation.attributes["value"], "is_splat", False):
        return None
    return ProgramArray(type=array_type(shape, dtype), bytes=size)
