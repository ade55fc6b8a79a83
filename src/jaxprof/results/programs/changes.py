"""What a row's reason says has changed, read from its words: which arguments, from what to what.

The signature of a row is cut after some leaves, so that the argument that changed need not stand in it; the reason
names it always. Words that are not of the ledger's forms are taken for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from jaxprof.results.programs.signatures import Variation, array_type

_TYPES: Final = re.compile(r"argument (.+?): (?:weak type )?(\S+) → (?:weak type )?(\S+)")
_NAMES: Final = {
    "sharding": re.compile(r"argument (.+?): other sharding: "),
    "weak_type": re.compile(r"argument (.+?): weak type \S+ → |argument (.+?): \S+ → weak type "),
    "config": re.compile(r"((?:config|jit option) \S+): "),
}


def changed_arguments(code: str, said: Iterable[str]) -> tuple[Variation, ...]:
    """The arrays whose shape (`code` "shape") or dtype ("dtype") is told to have changed, each with its types."""
    types: dict[str, dict[str, None]] = {}
    for part in _parts(said):
        match = _TYPES.fullmatch(part)
        if match is not None and _kind(match[2], match[3]) == code:
            types.setdefault(match[1], {}).update({match[2]: None, match[3]: None})
    return tuple(Variation(name, tuple(seen), static=False) for name, seen in types.items())


def changed_names(code: str, said: Iterable[str]) -> tuple[str, ...]:
    """The arguments, or settings, that are told to have changed in the way that `code` means."""
    form = _NAMES.get(code)
    if form is None:
        return ()
    matches = (form.match(part) for part in _parts(said))
    return tuple(dict.fromkeys(match[1] or match[2] if form.groups > 1 else match[1] for match in matches if match))


def _parts(said: Iterable[str]) -> Iterator[str]:
    for words in said:
        yield from words.split("; ")


def _kind(before: str, after: str) -> str:
    old, new = array_type(before), array_type(after)
    if old is None or new is None:
        return ""
    return "shape" if old.shape != new.shape else "dtype" if old.dtype != new.dtype else ""
