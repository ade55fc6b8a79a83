"""XSpaces made by hand: the few messages of xplane.proto, written as protobuf writes them."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = int | float | str | bytes


@dataclass
class Event:
    """Times in picoseconds from the line's timestamp. Without `reference`, texts are written out in each event."""

    name: str
    offset: int
    duration: int
    stats: Mapping[str, Value] = field(default_factory=dict)
    reference: bool = True


@dataclass
class Line:
    name: str
    events: Sequence[Event] = ()
    timestamp_ns: int = 0
    id: int = 1


@dataclass
class Plane:
    name: str
    lines: Sequence[Line] = ()
    stats: Mapping[str, Value] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Statistics of event names."""
    display: Mapping[str, str] = field(default_factory=dict)


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def number(field_number, value):
    return varint(field_number << 3) + varint(value)


def nested(field_number, content):
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return varint(field_number << 3 | 2) + varint(len(raw)) + raw


class _Names:
    def __init__(self):
        self.ids: dict[str, int] = {}

    def id(self, name):
        return self.ids.setdefault(name, len(self.ids) + 1)


def _stat(names, name, value, *, reference):
    content = number(1, names.id(name))
    if isinstance(value, bool | int):
        content += number(4, value)
    elif isinstance(value, float):
        content += varint(2 << 3 | 1) + struct.pack("<d", value)
    elif isinstance(value, bytes):
        content += nested(6, value)
    elif reference:
        content += number(7, names.id(value))
    else:
        content += nested(5, value)
    return content


def plane_bytes(plane):
    stats, events = _Names(), _Names()
    out = nested(2, plane.name)
    for line in plane.lines:
        content = bytearray(number(1, line.id) + nested(2, line.name) + number(3, line.timestamp_ns))
        for event in line.events:
            inner = number(1, events.id(event.name)) + number(2, event.offset) + number(3, event.duration)
            for name, value in event.stats.items():
                inner += nested(4, _stat(stats, name, value, reference=event.reference))
            content += nested(4, inner)
        out += nested(3, bytes(content))
    for name in plane.metadata:
        events.id(name)
    for name, key in events.ids.items():
        inner = number(1, key) + nested(2, name)
        if name in plane.display:
            inner += nested(4, plane.display[name])
        for stat, value in plane.metadata.get(name, {}).items():
            inner += nested(5, _stat(stats, stat, value, reference=False))
        out += nested(4, number(1, key) + nested(2, inner))
    for name, value in plane.stats.items():
        out += nested(6, _stat(stats, name, value, reference=False))
    for name, key in stats.ids.items():
        out += nested(5, number(1, key) + nested(2, number(1, key) + nested(2, name)))
    return out


def space_bytes(planes, *, hosts=(), warnings=(), errors=()):
    return (
        b"".join(nested(1, plane_bytes(plane)) for plane in planes)
        + b"".join(nested(2, text) for text in errors)
        + b"".join(nested(3, text) for text in warnings)
        + b"".join(nested(4, host) for host in hosts)
    )
