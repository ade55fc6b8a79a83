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
    places: dict[int, SourceLocation] = {}
    for location in profile.messages(_LOCATION):
        for line in location.messages(4):
            function = functions[line.number(1)]
            file, name = texts[function.number(4)], texts[function.number(2)]
            if file_kind(file) == USER:
                places[location.number(1)] = SourceLocation(file, line.number(2), name)
    counts: Counter[SourceLocation] = Counter()
    sizes: Counter[SourceLocation] = Counter()
    for sample in profile.messages(_SAMPLE):
        labels = {texts[label.number(1)]: texts[label.number(2)] for label in sample.messages(3)}
        if labels.get("kind") == "buffer":
            # from the innermost frame outwards
            place = next((places[number] for number in sample.numbers(1) if number in places), NOWHERE)
            count, size = sample.numbers(2)
            counts[place] += count
            sizes[place] += size
    return [LineArrays(place=place, count=counts[place], bytes=size) for place, size in sizes.most_common(_MOST_LINES)]
