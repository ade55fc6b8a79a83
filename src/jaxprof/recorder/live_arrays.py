"""The arrays that are alive, by the line of the user's that made them, from JAX's own profile of device memory.

JAX keeps the Python stack of every array, so nothing is watched beforehand. Reading the profile takes a millisecond for
some thousand arrays; it is done once, when memory has run out.
"""

from __future__ import annotations

import gzip
from collections import Counter

import jax

from jaxprof.events import NOWHERE, LineArrays, SourceLocation
from jaxprof.hlo.text.wire import Message
from jaxprof.recorder.frame_owner import USER, file_kind

_MOST_LINES = 20
_SAMPLE, _LOCATION, _FUNCTION, _TEXTS = 2, 4, 5, 6
"""Fields of a pprof `Profile` (github.com/google/pprof, proto/profile.proto)."""


def arrays_by_line() -> list[LineArrays]:
    """Return the lines whose arrays take most bytes, the largest first."""
    profile = Message(gzip.decompress(jax.profiler.device_memory_profile()))
    texts = profile.texts(_TEXTS)
    functions = {each.number(1): each for each in profile.messages(_FUNCTION)}
    lines: dict[int, SourceLocation] = {}
    for frame in profile.messages(_LOCATION):
        for line in frame.messages(4):
            function = functions[line.number(1)]
            file, name = texts[function.number(4)], texts[function.number(2)]
            if file_kind(file) == USER:
                lines[frame.number(1)] = SourceLocation(file, line.number(2), name)
    counts: Counter[SourceLocation] = Counter()
    sizes: Counter[SourceLocation] = Counter()
    for sample in profile.messages(_SAMPLE):
        labels = {texts[label.number(1)]: texts[label.number(2)] for label in sample.messages(3)}
        if labels.get("kind") == "buffer":
            # from the innermost frame outwards
            location = next((lines[number] for number in sample.numbers(1) if number in lines), NOWHERE)
            count, size = sample.numbers(2)
            counts[location] += count
            sizes[location] += size
    most = sizes.most_common(_MOST_LINES)
    return [LineArrays(location=location, count=counts[location], bytes=size) for location, size in most]
