"""Why something was compiled again, in fewer words than the recorder's: the kind of the change first, and what the
names of several arguments have in common once.

Words of another form, of a version to come or of a damaged file, are passed on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Final

from jaxprof.analysis.programs.signatures import Variation, array_type

_TYPES: Final = re.compile(r"argument (.+?): (weak type )?(\S+) → (weak type )?(\S+)")
_SHARDING: Final = re.compile(r"argument (.+?): other sharding: (.+)")
_STATIC: Final = re.compile(r"static argument (.+?): (.+)")
_STRUCTURE: Final = re.compile(r"argument (.+): (new|gone|by name → by position|by position → by name)")
_CLOSURE: Final = re.compile(r"(.+?)(?: at (.+?))? makes a new function each time \(defined at (.+?)\)(?:, (.+))?")
_SETTING: Final = re.compile(r"((?:config|jit option) \S+): ")
_KEY: Final = re.compile(r"^[^.\[]+|\.[^.\[]+|\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]")
"""One key of a leaf's path: `params`, `['head']`, `.weight`, `[0]`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was not as before. Without a `kind`, its text says all."""

    kind: str
    """`shape`, `dtype`, `weak type`, `sharding`, `static argument`."""
    name: str
    """The argument."""
    text: str
    """`f32[4] → f32[8]`."""
    types: tuple[str, ...] = ()
    """The types before and now, of an array whose shape or dtype changed."""


def brief(words: str) -> str:
    """`shape in batch: ['x'] f32[4] → f32[8]; ['y'] f32[4] → f32[8]`, from the recorder's words."""
    return listed([_change(part) for part in words.split("; ")])


def briefest(words: str) -> str:
    """`shape f32[4] → f32[8] and 1 more`: the first change, without its name; empty for words of another form."""
    first, *rest = [_change(part) for part in words.split("; ")]
    return f"{first.kind} {first.text}{f' and {len(rest)} more' if rest else ''}" if first.kind and first.text else ""


def listed(changes: Iterable[Change], verb: str = "") -> str:
    """Changes in words; `verb` follows what changed: `shape of x varies: f32[1..8]`."""
    return "; ".join(
        _of_kind(kind, list(group), verb) for kind, group in groupby(changes, key=lambda change: change.kind)
    )


def _of_kind(kind: str, changes: Sequence[Change], verb: str) -> str:
    if not kind:
        return "; ".join(change.text for change in changes)
    shared = _shared([change.name for change in changes])
    of = " " if kind == "static argument" else " in " if shared else " of "
    if shared:
        named = [" ".join(filter(None, (change.name[len(shared) :], change.text))) for change in changes]
        return f"{kind}{of}{shared}{verb}: {'; '.join(named)}"
    unnamed = "argument " if of == " of " else ""
    names = [f"{unnamed}{change.name}" if change.name[:1].isdigit() else change.name for change in changes]
    first, *rest = [": ".join(filter(None, (name, change.text))) for name, change in zip(names, changes, strict=True)]
    begin = names[0]
    return "; ".join([f"{kind}{of}{begin}{verb}{first[len(begin) :]}", *rest])


def _shared(names: Sequence[str]) -> str:
    """The keys that all these paths begin with, and none of them ends with."""
    if len(names) < 2:
        return ""
    paths = [_KEY.findall(name) for name in names]
    if any("".join(path) != name for path, name in zip(paths, names, strict=True)):
        return ""
    return "".join(
        keys[0]
        for keys in takewhile(lambda keys: len(set(keys)) == 1, zip(*(path[:-1] for path in paths), strict=False))
    )


def _change(part: str) -> Change:
    if (found := _TYPES.fullmatch(part)) and (kind := _kind(found)):
        text = f"{'weak ' if found[2] else ''}{found[3]} → {'weak ' if found[4] else ''}{found[5]}"
        return Change(kind, found[1], text, (found[3], found[5]))
    if found := _SHARDING.fullmatch(part):
        return Change("sharding", found[1], found[2])
    if found := _STATIC.fullmatch(part):
        return Change("static argument", found[1], found[2])
    if found := _STRUCTURE.fullmatch(part):
        return Change("", "", f"structure: {found[1]} {found[2]}")
    if found := _CLOSURE.fullmatch(part):
        factory, made_at, defined_at, values = found.groups()
        places = f"made at {made_at}, defined at {defined_at}" if made_at else f"defined at {defined_at}"
        return Change("", "", f"new closure of {factory}{f': {values}' if values else ''} ({places})")
    return Change("", "", part)


def _kind(found: re.Match[str]) -> str:
    old, new = array_type(found[3]), array_type(found[5])
    if old is None or new is None:
        return ""
    if old.shape != new.shape:
        return "shape"
    return "dtype" if old.dtype != new.dtype else "weak type" if found[2] != found[4] else ""


def changed_arguments(code: str, texts: Iterable[str]) -> tuple[Variation, ...]:
    """The arrays whose shape (`code` "shape") or dtype ("dtype") changed according to the reason, each with its
    types."""
    types: dict[str, dict[str, None]] = {}
    for change in _changes(texts):
        if change.kind == code:
            types.setdefault(change.name, {}).update(dict.fromkeys(change.types))
    return tuple(Variation(name, tuple(seen), static=False) for name, seen in types.items())


def changed_names(code: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The arguments, or settings, that changed according to the reason, in the way that `code` means."""
    if code == "config":
        found = (_SETTING.match(change.text) for change in _changes(texts))
        return tuple(dict.fromkeys(match[1] for match in found if match))
    kind = code.replace("_", " ")
    named = (change.name for change in _changes(texts) if change.kind == kind)
    return tuple(dict.fromkeys(named)) if code in ("sharding", "weak_type") else ()


def _changes(texts: Iterable[str]) -> Iterator[Change]:
    for words in texts:
        yield from map(_change, words.split("; "))
