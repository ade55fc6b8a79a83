"""Why a function was compiled again: its signature compared with the nearest earlier one, in words and as a code.

It compares the recorder's own signatures. JAX's explanation (`jax_explain_cache_misses`) is not used: its cost is
quadratic in the number of signatures of a function, and newer versions often have none.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Iterator

from jaxprof.base.values import field, frozen
from jaxprof.events import NOWHERE, ClosureChange, SourceLocation
from jaxprof.recorder.compiles.call_source import Made
from jaxprof.recorder.compiles.signature import Leaf, Signature
from jaxprof.recorder.frame_owner import short

RANKED_CODES = (
    "closure",
    "new_function",
    "static_argument",
    "structure",
    "shape",
    "dtype",
    "weak_type",
    "sharding",
    "config",
)
"""Codes, most informative first: a compilation with several differences gets the first of them."""

_OTHER_STRUCTURE = "the containers of the arguments, or static parts in them, changed"
"""Text for a changed structure if there is nothing more specific to report."""
_AGAIN = "the same function and signature again: "
_DIFFERENCES_NAMED = 4
"""Number of differences in a text: if a whole tree of parameters was cast, a hundred say no more than the first few."""
_SPEC = re.compile(r"P\((.*)\)( over .*)$")
_KEY = re.compile(r"^[^.\[]+|\.[^.\[]+|\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]")
"""Matches one key of a leaf's path: `params`, `['head']`, `.weight`, `[0]`."""
_WHOLE_AT_MOST = 48
"""Length up to which a static value is shown whole; of a longer one only the part that differs."""
_Difference = tuple[str, str]
"""A difference from the earlier signature: its code, and its text."""
_LEAVES_WEIGHED = 64
_LEAVES_COMPARED = 20_000
"""Limit for the leaves compared over all earlier signatures, so that a large signature costs no more than a small
one."""


@frozen
class Reason:
    """The reason for a compilation: a code of `events.REASONS`, its text, and other fields as in `events.Compiled`."""

    code: str
    words: str = ""
    made_at: SourceLocation = NOWHERE
    factory: str = ""
    closure: list[ClosureChange] = field(default_factory=list)
    cleared_at: SourceLocation = NOWHERE


def nearest(now: Signature, earlier: Iterable[Signature]) -> Signature | None:
    """Return the signature with the fewest differences; of several the first, so pass the most recent first."""
    best: Signature | None = None
    best_distance = -1
    compared = 0
    for candidate in earlier:
        if best is not None and compared > _LEAVES_COMPARED:
            break
        distance = _distance(now, candidate)
        compared += len(candidate.leaves) + 1
        if best is None or distance < best_distance:
            best, best_distance = candidate, distance
            if distance <= 1:
                break
    return best


def _distance(now: Signature, before: Signature) -> int:
    """Return how much differs between two signatures: 0 if nothing does."""
    distance = (not now.same_function(before)) + (now.options != before.options)
    if now.config != before.config:
        distance += len(set(now.config) - set(before.config)) or 1
    if now.names != before.names:
        return distance + 1 + abs(len(now.names) - len(before.names)) + len(now.names) // 2
    distance += (now.structure != before.structure) + (now.keywords != before.keywords)
    different = sum(map(operator.is_not, now.leaves, before.leaves))
    if different > _LEAVES_WEIGHED:
        return distance + different
    return distance + sum(
        _differing_aspects(leaf, other)
        for leaf, other in zip(now.leaves, before.leaves, strict=True)
        if leaf is not other
    )


def _differing_aspects(now: Leaf, before: Leaf) -> int:
    return (
        (now.shape != before.shape)
        + (now.dtype != before.dtype)
        + (now.weak != before.weak)
        + ((now.sharding, now.placed) != (before.sharding, before.placed))
        + ((now.static, now.static_hash) != (before.static, before.static_hash))
    )


def explain(
    now: Signature,
    before: Signature | None,
    called_from: SourceLocation,
    defined_at: SourceLocation,
    before_called_from: SourceLocation,
    *,
    traced: bool = True,
    cleared_at: SourceLocation | None = None,
) -> Reason:
    """Return why `now` was compiled, if the nearest earlier compilation of the same function was `before`.

    `traced` is False if an earlier trace was reused. `cleared_at`: the call that cleared JAX's caches since `before`;
    None if none did.
    """
    if before is None:
        return Reason("first", _first(now, traced))
    if not now.known or not before.known:
        return Reason("unknown", "the arguments of this call are unknown")
    differences = sorted(
        [*_function(now, before, called_from, defined_at, called_from == before_called_from),
         *_structure(now, before), *_leaves(now, before), *_settings(now, before)],
        key=lambda difference: RANKED_CODES.index(difference[0]),
    )  # fmt: skip
    if len(differences) > 1:
        differences = [(code, words) for code, words in differences if words != _OTHER_STRUCTURE]
    if not differences and cleared_at is not None:
        words = f"{_AGAIN}jax.clear_caches() at {short(cleared_at)} emptied JAX's caches"
        return Reason("caches_cleared", words, cleared_at=cleared_at)
    if not differences:
        return Reason(
            "unknown",
            f"{_AGAIN}JAX's cache evicted it, its clear_cache() was called, or it was called in another context "
            "(such as under grad)",
        )
    code, _ = differences[0]
    named = [words for _, words in differences[:_DIFFERENCES_NAMED]]
    more = len(differences) - _DIFFERENCES_NAMED
    if more > 0:
        named.append(f"and {more} more difference{'' if more == 1 else 's'}")
    words = "; ".join(named)
    if code == "closure" and now.made is not None:
        changed = list(_closure_changes(now.made, before.made))
        return Reason("closure", words, made_at=now.made.place, factory=now.made.factory, closure=changed)
    return Reason(code, words)


def _first(now: Signature, traced: bool) -> str:
    if now.under:
        return f"the first time under {now.under}"
    if traced or now.function is None:
        return ""
    return "first compilation of its own: before, it was traced inside another function"


def _function(
    now: Signature, before: Signature, called_from: SourceLocation, defined_at: SourceLocation, same_line: bool
) -> Iterator[_Difference]:
    if now.same_function(before):
        return
    if now.made is not None:
        yield "closure", _closure_words(now.made, before.made, defined_at)
        return
    kind = "new function object each time: jit" if same_line else "another function object: jit"
    yield "new_function", f"{kind} at {short(called_from)} (defined at {short(defined_at)})"


def _closure_words(now: Made, before: Made | None, defined_at: SourceLocation) -> str:
    """Return `new closure of make_step: rate: 0.1 → 0.2 (made at train.py:30, defined at train.py:12)`."""
    places = [f"made at {short(now.place)}"] if now.place else []
    places.append(f"defined at {short(defined_at)}")
    changed = [f"{change.name}: {change.before} → {change.now}" for change in _closure_changes(now, before)]
    more = f" and {len(changed) - _DIFFERENCES_NAMED} more" if len(changed) > _DIFFERENCES_NAMED else ""
    values = f": {', '.join(changed[:_DIFFERENCES_NAMED])}{more}" if changed else ""
    return f"new closure of {now.factory}{values} ({', '.join(places)})"


def _closure_changes(now: Made, before: Made | None) -> Iterator[ClosureChange]:
    """Yield the factory's variables whose values, as text, have changed."""
    old = {name: (text, digest) for name, text, digest in before.closure} if before is not None else {}
    for name, text, digest in now.closure:
        if name in old and old[name] != (text, digest):
            earlier, later = _differing_parts(old[name][0], text)
            yield ClosureChange(name=name, before=earlier, now=later)


def _structure(now: Signature, before: Signature) -> Iterator[_Difference]:
    """Yield differences in which arguments there are, and in how they are nested and passed."""
    if now.names == before.names:
        if now.structure != before.structure:
            parts = list(_static_parts(now, before))
            yield from parts or [("structure", _OTHER_STRUCTURE)]
        if now.keywords != before.keywords:
            moved = sorted(set(now.keywords) ^ set(before.keywords))
            for name in moved[:3]:
                ways = "keyword → positional" if name in before.keywords else "positional → keyword"
                yield "structure", f"structure: {name} {ways}"
            if not moved:
                yield "structure", "the keyword arguments in another order"
        return
    added = [name for name in now.names if name not in set(before.names)]
    removed = [name for name in before.names if name not in set(now.names)]
    for sign, names, others in (("new", added, before.names), ("removed", removed, now.names)):
        if names:
            keys = _subtrees(names, others)
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            yield "structure", f"structure: {', '.join(keys[:3])}{more} {sign}"
    if not added and not removed:
        yield "structure", "the arguments in another order"


def _subtrees(names: list[str], others: Iterable[str]) -> list[str]:
    """Return the leaves `names`, grouped by the keys at which their tree begins to differ from the one with the leaves
    `others`: `params['head'] (12 leaves)`."""
    shared = {prefix for name in others for prefix in itertools.accumulate(_KEY.findall(name))}
    groups: dict[str, list[str]] = {}
    for name in names:
        prefixes = list(itertools.accumulate(_KEY.findall(name))) or [name]
        groups.setdefault(next((prefix for prefix in prefixes if prefix not in shared), name), []).append(name)
    return [under[0] if len(under) == 1 else f"{key} ({len(under)} leaves)" for key, under in groups.items()]


def _static_parts(now: Signature, before: Signature) -> Iterator[_Difference]:
    """Return differences in what the nodes of the arguments hold besides children: static fields of modules and of
    dataclasses."""
    old = dict(before.statics)
    for path, words in now.statics:
        if path in old and old[path] != words:
            earlier, later = _differing_parts(old[path], words)
            yield "structure", f"static part of argument {path}: {earlier} → {later}"


def _leaves(now: Signature, before: Signature) -> Iterator[_Difference]:
    if now.names == before.names:
        pairs: Iterable[tuple[str, Leaf, Leaf]] = zip(now.names, now.leaves, before.leaves, strict=True)
    else:
        earlier = dict(zip(before.names, before.leaves, strict=True))
        pairs = (
            (name, leaf, earlier[name]) for name, leaf in zip(now.names, now.leaves, strict=True) if name in earlier
        )
    for name, leaf, other in pairs:
        if leaf is not other:
            yield from _leaf(name, leaf, other)


def _leaf(name: str, now: Leaf, before: Leaf) -> Iterator[_Difference]:
    """Yield what differs in one leaf: of shape, dtype and weak type only the first, with both whole types."""
    if now.is_static or before.is_static:
        if now != before:
            same = "another " if now.static == before.static else ""
            if same and "Jaxpr" in now.static:
                yield "new_function", f"new function object each time: {name} of a call outside any jit"
                return
            old, new = (before.type, now.type) if same else _differing_parts(before.type, now.type)
            yield "static_argument", f"static argument {name}: {old} → {same}{new}"
        return
    named = f"argument {name}" if name[:1].isdigit() else name
    types = f"of {named}: {_typed(before)} → {_typed(now)}"
    if now.shape != before.shape:
        yield "shape", f"shape {types}"
    elif now.dtype != before.dtype:
        yield "dtype", f"dtype {types}"
    elif now.weak != before.weak:
        yield "weak_type", f"weak type {types}"
    if (now.sharding, now.placed) != (before.sharding, before.placed):
        same = "another arrangement of " if now.sharding == before.sharding else ""
        where = f"{_placed(before)} → {same}{_placed(now)}{_axes_changes(before.sharding, now.sharding)}"
        yield "sharding", f"sharding of {named}: {where}"


def _differing_parts(before: str, now: str) -> tuple[str, str]:
    """Shorten two long values by their common parts, in whole words: `… custom_jvp …`, `… PjitFunction …`."""
    if max(len(before), len(now)) <= _WHOLE_AT_MOST:
        return before, now
    shared = _common_length(before, now)
    begin = max(before.rfind(mark, 0, shared) + 1 for mark in "([{, =")
    tail = before[len(before) - _common_length(before[:begin:-1], now[:begin:-1]) :]
    end = len(tail) - next((at for at, mark in enumerate(tail) if mark in ",)]}"), len(tail))
    return _middle(before, begin, end), _middle(now, begin, end)


def _common_length(one: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
                min(len(one), len(other)))  # fmt: skip


def _middle(text: str, begin: int, end: int) -> str:
    return f"{'…' if begin else ''}{text[begin : len(text) - end]}{'…' if end else ''}"


def _typed(leaf: Leaf) -> str:
    return f"weak {leaf.type}" if leaf.weak else leaf.type


def _placed(leaf: Leaf) -> str:
    if not leaf.sharding:
        return "not committed"
    return leaf.sharding if " over " in leaf.sharding else f"one device {leaf.sharding}"


def _axes_changes(before: str, now: str) -> str:
    """Return ` (axis 0: 'data' → not split)` for the axes of an array that are split differently; empty if the devices
    differ as well."""
    old, new = _SPEC.match(before), _SPEC.match(now)
    if old is None or new is None or old[2] != new[2]:
        return ""
    parts = itertools.zip_longest(_axes(old[1]), _axes(new[1]), fillvalue="None")
    changed = [(axis, earlier, later) for axis, (earlier, later) in enumerate(parts) if earlier != later]
    changes = [f"axis {axis}: {_split(earlier)} → {_split(later)}" for axis, earlier, later in changed]
    return f" ({', '.join(changes)})" if changes else ""


def _axes(spec: str) -> list[str]:
    """Return the parts of a spec such as `'data', ('x', 'y'), None`."""
    return re.findall(r"\([^)]*\)|'[^']*'|[^,\s]+", spec)


def _split(part: str) -> str:
    return "not split" if part == "None" else part


_CHOSEN = {"donate": "donated arguments", "static": "static arguments"}
"""Words for the options of `jax.jit` that choose arguments, by position (`_argnums`) or by name (`_argnames`)."""


def _settings(now: Signature, before: Signature) -> Iterator[_Difference]:
    for kind, after, earlier in (("config", now.config, before.config), ("jit option", now.options, before.options)):
        if after == earlier:
            continue
        old, new = dict(earlier), dict(after)
        differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        for name in differing:
            # JAX derives the positions from the names and the names from the positions: one of them is enough
            if not (name.endswith("argnums") and name.replace("argnums", "argnames") in differing):
                yield "config", _setting_words(kind, name, old.get(name), new.get(name))


def _setting_words(kind: str, name: str, before: str | None, now: str | None) -> str:
    """Return `config jax_enable_x64: False → True`, or `donated arguments: none → x`."""
    chosen = _CHOSEN.get(name.partition("_arg")[0])
    if chosen is None:
        return f"{kind} {name}: {before or 'not set'} → {now or 'not set'}"
    earlier, later = (", ".join(re.findall(r"[\w…]+", text or "none")) for text in (before, now))
    return f"{chosen}: {earlier} → {later}"
