"""Why a function was compiled again: its signature against the nearest one before, in words and as a code.

It compares what our own record holds. JAX's explanation (`jax_explain_cache_misses`) is not asked: it is quadratic in
the number of signatures of a function, and newer versions often have none.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.program.compiles.signature import Leaf, Signature
from jaxprof.program.places import short

TELLING: Final = (
    "new_function",
    "static_argument",
    "structure",
    "shape",
    "dtype",
    "weak_type",
    "sharding",
    "config",
)
"""Codes, the most telling first: it names a compilation with several differences."""

_DIFFERENCES_NAMED = 4
"""Of a tree of parameters that was cast as a whole, a hundred lines would say no more."""
_WHOLE_AT_MOST = 48
"""Columns of a static value that is shown whole; of longer ones only the part that differs."""
_LEAVES_WEIGHED = 64
_LEAVES_COMPARED = 20_000
"""Over all the earlier signatures that one is compared with, so that a large one costs no more than a small one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was not as before."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a code of `events.REASONS`, and words."""

    code: str
    words: str = ""


def nearest(now: Signature, earlier: Iterable[Signature]) -> Signature | None:
    """The one with the fewest differences; of several the first, so give the most recent first."""
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
    distance = (now.function != before.function) + (now.options != before.options)
    if now.config != before.config:
        distance += len(set(now.config) - set(before.config)) or 1
    if now.names != before.names:
        return distance + 1 + abs(len(now.names) - len(before.names)) + len(now.names) // 2
    distance += (now.structure != before.structure) + (now.keywords != before.keywords)
    different = sum(map(operator.is_not, now.leaves, before.leaves))
    if different > _LEAVES_WEIGHED:
        return distance + different
    return distance + sum(
        _aspects(leaf, other) for leaf, other in zip(now.leaves, before.leaves, strict=True) if leaf is not other
    )


def _aspects(now: Leaf, before: Leaf) -> int:
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
    called_from: dict[str, Any],
    defined_at: dict[str, Any],
    before_called_from: dict[str, Any],
    *,
    traced: bool = True,
) -> Reason:
    """Why `now` was compiled, when the nearest compilation of the same function was `before`.

    `traced` is False where the trace was still there from another time.
    """
    if before is None:
        return Reason("first", _first(now, traced))
    if not now.known or not before.known:
        return Reason("unknown", "the arguments of this call could not be seen")
    differences = sorted(
        [*_function(now, before, called_from, defined_at, called_from == before_called_from),
         *_structure(now, before), *_leaves(now, before), *_settings(now, before)],
        key=lambda difference: TELLING.index(difference.code),
    )  # fmt: skip
    if not differences:
        return Reason(
            "unknown",
            "the same function and signature again: the caches were cleared (jax.clear_caches) or evicted, or it was "
            "called in another context of JAX's (under grad, say)",
        )
    named = [difference.words for difference in differences[:_DIFFERENCES_NAMED]]
    more = len(differences) - _DIFFERENCES_NAMED
    if more > 0:
        named.append(f"and {more} more difference{'' if more == 1 else 's'}")
    return Reason(differences[0].code, "; ".join(named))


def _first(now: Signature, traced: bool) -> str:
    if now.under:
        return f"the first time under {now.under}"
    return (
        "" if traced or now.function is None else "the first as a program of its own: it was traced in another before"
    )


def _function(
    now: Signature, before: Signature, called_from: dict[str, Any], defined_at: dict[str, Any], same_line: bool
) -> Iterator[Difference]:
    if now.function == before.function:
        return
    kind = "new function object each time: jit" if same_line else "another function object: jit"
    yield Difference("new_function", f"{kind} at {short(called_from)} (defined at {short(defined_at)})")


def _structure(now: Signature, before: Signature) -> Iterator[Difference]:
    if now.names == before.names:
        if now.structure != before.structure:
            yield Difference("structure", "other containers in the arguments, or other static parts of them")
        if now.keywords != before.keywords:
            moved = sorted(set(now.keywords) ^ set(before.keywords))
            for name in moved[:3]:
                ways = "by name → by position" if name in before.keywords else "by position → by name"
                yield Difference("structure", f"argument {name}: {ways}")
            if not moved:
                yield Difference("structure", "the arguments by name in another order")
        return
    added = [name for name in now.names if name not in set(before.names)]
    removed = [name for name in before.names if name not in set(now.names)]
    for sign, names in (("new", added), ("gone", removed)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield Difference("structure", f"argument {', '.join(names[:3])}{more}: {sign}")
    if not added and not removed:
        yield Difference("structure", "the arguments in another order")


def _leaves(now: Signature, before: Signature) -> Iterator[Difference]:
    if now.names == before.names:
        pairs: Iterable[tuple[str, Leaf, Leaf]] = zip(now.names, now.leaves, before.leaves, strict=True)
    else:
        known = dict(zip(before.names, before.leaves, strict=True))
        pairs = ((name, leaf, known[name]) for name, leaf in zip(now.names, now.leaves, strict=True) if name in known)
    for name, leaf, other in pairs:
        if leaf is not other:
            yield from _leaf(name, leaf, other)


def _leaf(name: str, now: Leaf, before: Leaf) -> Iterator[Difference]:
    if now.is_static or before.is_static:
        if now != before:
            same = "another " if now.static == before.static else ""
            if same and "Jaxpr" in now.static:
                yield Difference("new_function", f"new function object each time: {name} of a call outside any jit")
                return
            old, new = (before.type, now.type) if same else _apart(before.type, now.type)
            yield Difference("static_argument", f"static argument {name}: {old} → {same}{new}")
        return
    changed = f"argument {name}: {_typed(before)} → {_typed(now)}"
    if now.shape != before.shape:
        yield Difference("shape", changed)
    elif now.dtype != before.dtype:
        yield Difference("dtype", changed)
    elif now.weak != before.weak:
        yield Difference("weak_type", changed)
    if (now.sharding, now.placed) != (before.sharding, before.placed):
        same = "another arrangement of " if now.sharding == before.sharding else ""
        where = f"{_placed(before)} → {same}{_placed(now)}"
        yield Difference("sharding", f"argument {name}: other sharding: {where}")


def _apart(before: str, now: str) -> tuple[str, str]:
    """Two long values without what they have in common, in whole parts: `… custom_jvp …`, `… PjitFunction …`."""
    if max(len(before), len(now)) <= _WHOLE_AT_MOST:
        return before, now
    shared = _in_common(before, now)
    begin = max(before.rfind(mark, 0, shared) + 1 for mark in "([{, =")
    tail = before[len(before) - _in_common(before[:begin:-1], now[:begin:-1]) :]
    end = len(tail) - next((at for at, mark in enumerate(tail) if mark in ",)]}"), len(tail))
    return _middle(before, begin, end), _middle(now, begin, end)


def _in_common(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
                min(len(one), len(other)))  # fmt: skip


def _middle(text: str, begin: int, end: int) -> str:
    return f"{'…' if begin else ''}{text[begin : len(text) - end]}{'…' if end else ''}"


def _typed(leaf: Leaf) -> str:
    return f"weak type {leaf.type}" if leaf.weak else leaf.type


def _placed(leaf: Leaf) -> str:
    if not leaf.sharding:
        return "not committed"
    return leaf.sharding if " over " in leaf.sharding else f"one device {leaf.sharding}"


def _settings(now: Signature, before: Signature) -> Iterator[Difference]:
    for kind, after, earlier in (("config", now.config, before.config), ("jit option", now.options, before.options)):
        if after == earlier:
            continue
        old, new = dict(earlier), dict(after)
        differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        for name in differing:
            # JAX works the positions out from the names, and the names from the positions: one of them is enough
            if not (name.endswith("argnums") and name.replace("argnums", "argnames") in differing):
                words = f"{kind} {name}: {old.get(name, 'not set')} → {new.get(name, 'not set')}"
                yield Difference("config", words)
