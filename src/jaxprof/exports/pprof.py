"""Export where the time of a run went as a profile for pprof: one protocol buffer, compressed with gzip.

The message is `perftools.profiles.Profile` (https://github.com/google/pprof/blob/main/proto/profile.proto). Its few
fields are written here by hand, in the wire format of protocol buffers: varints and length-delimited fields.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator

from jaxprof.analysis.flame import StackFrame, WeightedStack, run_stacks
from jaxprof.session import Run, Session

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS = 1, 2, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14


def runs(session: Session) -> list[Run]:
    """Return the runs with kernels, or with lines of a recorded program."""
    return [run for run in session.runs.values() if run_stacks(session, run)]


def pieces(session: Session, run: Run) -> Iterator[bytes]:
    """Yield the profile of a run."""
    stacks = run_stacks(session, run)
    if run.is_program:
        count, what = "lines", "lines of the source on the main thread, estimated from samples"
    elif all(stack.measured for stack in stacks):
        count, what = "executions", "kernels: self time of all executions in the capture"
    else:
        count, what = "executions", "kernels: the least time that one call could take, a lower bound"
    began = round(session.header.wall_seconds * 1e9)
    yield gzip.compress(profile_bytes(stacks, count, f"{run.label}: {what}", began), mtime=0)


def profile_bytes(stacks: Iterable[WeightedStack], count: str, comment: str, time_ns: int) -> bytes:
    """Return the message, uncompressed. `count`: what the first value of a sample counts; the second one is
    nanoseconds. `time_ns`: when the session began, in nanoseconds since 1970."""
    strings: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[StackFrame, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text.encode("utf-8", "replace").decode(), len(strings))

    def location(frame: StackFrame) -> int:
        functions.setdefault((frame.name, frame.file), len(functions) + 1)
        return locations.setdefault(frame, len(locations) + 1)

    def value_type(kind: str, unit: str) -> bytes:
        return _number(1, string(kind)) + _number(2, string(unit))

    total = 0
    message = bytearray()
    message += _bytes(_SAMPLE_TYPE, value_type(count, "count"))
    message += _bytes(_SAMPLE_TYPE, value_type("time", "nanoseconds"))
    for stack in stacks:
        took = round(stack.seconds * 1e9)
        total += took
        innermost_first = [location(frame) for frame in reversed(stack.frames)]
        message += _bytes(_SAMPLE, _packed(1, innermost_first) + _packed(2, [stack.count, took]))
    for frame, number in locations.items():
        line = _number(1, functions[frame.name, frame.file]) + _number(2, frame.line or 0)
        message += _bytes(_LOCATION, _number(1, number) + _bytes(4, line))
    for (name, file), number in functions.items():
        names = _number(2, string(name)) + _number(3, string(name)) + _number(4, string(file))
        message += _bytes(_FUNCTION, _number(1, number) + names)
    message += _number(_TIME_NANOS, time_ns) + _number(_DURATION_NANOS, total)
    message += _bytes(_PERIOD_TYPE, value_type("time", "nanoseconds")) + _number(_PERIOD, 1)
    message += _packed(_COMMENT, [string(comment)]) + _number(_DEFAULT_TYPE, string("time"))
    for text in strings:
        message += _bytes(_STRINGS, text.encode())
    return bytes(message)


def _varint(value: int) -> bytes:
    """Encode a number of at most 64 bits, seven bits at a time, the lowest first; a negative one in two's
    complement."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))
