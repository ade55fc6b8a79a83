"""Why a function was compiled again: its signature compared with the nearest earlier one, as codes and values.

It compares the recorder's own signatures. JAX's explanation (`jax_explain_cache_misses`) is not used: its cost is
quadratic in the number of signatures of a function, and newer versions often have none.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import DIFFERENCES, NOWHERE, ClosureChange, CompileReason, SourceLocation
from jaxprof.recorder.compiles.arguments import Leaf
from jaxprof.recorder.compiles.signature import Signature

_RANKS = {kind: rank for rank, kind in enumerate(DIFFERENCES)}
_DIFFERENCES_LISTED = 4
"""Number of differences in an event: a hundred say no more than the first few."""
_NAMES_LISTED = 3
_KEY = re.compile(r"^[^.\[]+|\.[^.\[]+|\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]")
"""Matches one key of a leaf's path: `params`, `['head']`, `.weight`, `[0]`."""
_WHOLE_AT_MOST = 48
"""Length up to which a static value is sent whole; beyond it, only the part that differs."""
_Difference = dict[str, Any]
"""Fields of a `CompileReason`: only the first few of many differences become objects."""
SIGNATURES_A_FUNCTION, LEAVES_A_FUNCTION, FUNCTIONS = 256, 50_000, 2_000
"""Signatures kept for each function, leaves of them in all, and functions: the oldest beyond these go."""


@frozen
class FunctionKey:
    """Functions with the same key are compared with each other: the same definition, wrapped in the same way."""

    name: str
    file: str = ""
    line: int = 0
    wrapped_at: tuple[str, int] = ("", 0)
    under: str = ""


@dataclass(slots=True)
class _Record:
    signatures: dict[Signature, tuple[SourceLocation, int]] = field(default_factory=dict)
    """Call location and number of earlier cache clears by signature, oldest first."""
    leaves: int = 0


class History:
    """The signatures with which each function was compiled."""

    def __init__(self) -> None:
        self._records: OrderedDict[FunctionKey, _Record] = OrderedDict()

    def earlier(self, key: FunctionKey, now: Signature) -> Iterator[Signature]:
        """Return the signatures of a function: an equal one first, then the most recent first."""
        record = self._records.get(key)
        if record is not None:
            if now in record.signatures:
                yield now
            yield from reversed(record.signatures)

    def is_known(self, key: FunctionKey) -> bool:
        return key in self._records

    def last_call(self, key: FunctionKey, signature: Signature) -> tuple[SourceLocation, int]:
        """Return the location from which the last compilation with this signature was called, and how often JAX's
        caches had been cleared before."""
        record = self._records.get(key)
        return record.signatures.get(signature, (NOWHERE, 0)) if record is not None else (NOWHERE, 0)

    def add(self, key: FunctionKey, signature: Signature, called_from: SourceLocation, clears: int = 0) -> None:
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= FUNCTIONS:
                self._records.popitem(last=False)
            record = self._records[key] = _Record()
        self._records.move_to_end(key)
        if record.signatures.pop(signature, None) is None:
            record.leaves += len(signature.leaves)
        record.signatures[signature] = called_from, clears
        while len(record.signatures) > 1 and (
            len(record.signatures) > SIGNATURES_A_FUNCTION or record.leaves > LEAVES_A_FUNCTION
        ):
            gone = next(iter(record.signatures))
            del record.signatures[gone]
            record.leaves -= len(gone.leaves)


def nearest(now: Signature, earlier: Iterable[Signature]) -> Signature | None:
    """Return the first signature with the fewest differences, so pass the most recent first."""
    best: Signature | None = None
    best_distance = -1
    compared = 0
    for candidate in earlier:
        # All earlier signatures together may cost no more, however large they are.
        if best is not None and compared > 20_000:
            break
        distance = _distance(now, candidate)
        compared += len(candidate.leaves) + 1
        if best is None or distance < best_distance:
            best, best_distance = candidate, distance
            # One difference is the least that explains a compilation.
            if distance <= 1:
                break
    return best


def _distance(now: Signature, before: Signature) -> int:
    distance = (not now.same_function(before)) + (now.options != before.options)
    if now.config != before.config:
        distance += len(set(now.config) - set(before.config)) or 1
    # Without the same leaves there are no pairs to compare: about half of them are taken to differ.
    if now.names != before.names:
        return distance + 1 + abs(len(now.names) - len(before.names)) + len(now.names) // 2
    distance += (now.structure != before.structure) + (now.keywords != before.keywords)
    different = sum(map(operator.is_not, now.leaves, before.leaves))
    # The exact number decides nothing among so many.
    if different > 64:
        return distance + different
    for leaf, other in zip(now.leaves, before.leaves, strict=True):
        if leaf is not other:
            distance += (leaf.shape != other.shape) + (leaf.dtype != other.dtype) + (leaf.weak_type != other.weak_type)
            distance += (leaf.sharding, leaf.placed) != (other.sharding, other.placed)
            distance += (leaf.static, leaf.static_hash) != (other.static, other.static_hash)
    return distance


def explain(
    now: Signature,
    before: Signature | None,
    *,
    same_line: bool = False,
    traced: bool = True,
    cleared_at: SourceLocation | None = None,
) -> dict[str, Any]:
    """Return why `now` was compiled, if the nearest earlier compilation of the same function was `before`: the fields
    of `events.Compiled` that say so.

    `same_line`: whether one line called both. `traced` is False if an earlier trace was reused. `cleared_at`: the call
    that cleared JAX's caches since `before`; None if none did.
    """
    if before is None:
        if now.under:
            return _reason("first", kind="first_under", now=now.under)
        return {"reason_code": "first"} if traced or now.function is None else _reason("first", kind="traced_before")
    if not now.known or not before.known:
        return _reason("unknown", kind="arguments_unknown")
    function: list[_Difference] = []
    if not now.same_function(before):
        kind = "new_function" if same_line else "another_function"
        function = [{"kind": "closure" if now.made is not None else kind}]
    differences = sorted(
        [*function, *_structure(now, before), *_leaves(now, before), *_settings(now, before)],
        key=lambda difference: _RANKS[difference["kind"]],
    )
    if len(differences) > 1:  # what the containers are says nothing beside a difference in what they hold
        differences = [difference for difference in differences if difference["kind"] != "containers"]
    if not differences and cleared_at is not None:
        return {**_reason("caches_cleared", kind="caches_cleared"), "cleared_at": cleared_at}
    if not differences:
        return _reason("unknown", kind="evicted")
    code = DIFFERENCES[differences[0]["kind"]]
    reasons = [CompileReason(**difference) for difference in differences[:_DIFFERENCES_LISTED]]
    if len(differences) > _DIFFERENCES_LISTED:
        reasons.append(CompileReason(kind="more", more=len(differences) - _DIFFERENCES_LISTED))
    explained = {"reason_code": code, "reasons": reasons}
    if code == "closure" and now.made is not None:
        # The factory's variables whose values, as text, have changed.
        old = {name: (text, digest) for name, text, digest in before.made.closure} if before.made is not None else {}
        changes = []
        for name, text, digest in now.made.closure:
            if name in old and old[name] != (text, digest):
                earlier, later = _differing_parts(old[name][0], text)
                changes.append(ClosureChange(name=name, before=earlier, now=later))
        return {**explained, "made_at": now.made.location, "factory": now.made.factory, "closure": changes}
    return explained


def _reason(code: str, **reason: Any) -> dict[str, Any]:
    return {"reason_code": code, "reasons": [CompileReason(**reason)]}


def _structure(now: Signature, before: Signature) -> Iterator[_Difference]:
    """Yield differences in which arguments there are, and in how they are nested and passed."""
    if now.names == before.names:
        if now.structure != before.structure:
            # What the nodes of the arguments hold besides children: static fields of modules and of dataclasses.
            old = dict(before.statics)
            changed = [(path, part) for path, part in now.statics if path in old and old[path] != part]
            for path, (text, _) in changed:
                yield {"kind": "static_part", **_change(path, old[path][0], text)}
            if not changed:
                yield {"kind": "containers"}
        if now.keywords != before.keywords:
            moved = sorted(set(now.keywords) ^ set(before.keywords))
            for name in moved[:_NAMES_LISTED]:
                earlier, later = ("keyword", "positional") if name in before.keywords else ("positional", "keyword")
                yield {"kind": "passed_by", "name": name, "before": earlier, "now": later}
            if not moved:
                yield {"kind": "keyword_order"}
        return
    added = [name for name in now.names if name not in set(before.names)]
    removed = [name for name in before.names if name not in set(now.names)]
    for kind, names, others in (("added", added, before.names), ("removed", removed, now.names)):
        if names:
            # Leaves under each path at which the trees begin to differ: 12 under `params['head']`; a leaf that is alone
            # there has its own path.
            shared = {prefix for leaf in others for prefix in itertools.accumulate(_KEY.findall(leaf))}
            groups: dict[str, list[str]] = {}
            for leaf in names:
                prefixes = list(itertools.accumulate(_KEY.findall(leaf))) or [leaf]
                groups.setdefault(next((prefix for prefix in prefixes if prefix not in shared), leaf), []).append(leaf)
            leaves = {under[0] if len(under) == 1 else key: len(under) for key, under in groups.items()}
            listed = dict(itertools.islice(leaves.items(), _NAMES_LISTED))
            yield {"kind": kind, "leaves": listed, "more": len(leaves) - len(listed)}
    if not added and not removed:
        yield {"kind": "argument_order"}


def _leaves(now: Signature, before: Signature) -> Iterator[_Difference]:
    """Yield what differs in the leaves: of shape, dtype and weak type only the first, with both whole types."""
    if now.names == before.names:
        pairs: Iterable[tuple[str, Leaf, Leaf]] = zip(now.names, now.leaves, before.leaves, strict=True)
    else:
        earlier = dict(zip(before.names, before.leaves, strict=True))
        pairs = (
            (name, leaf, earlier[name]) for name, leaf in zip(now.names, now.leaves, strict=True) if name in earlier
        )
    for name, leaf, other in pairs:
        # Equal leaves are one object, as the ledger keeps each different one once; static values have to be compared.
        if leaf is other or ((leaf.is_static or other.is_static) and leaf == other):
            continue
        if not (leaf.is_static or other.is_static):
            differing = (
                each for each in ("shape", "dtype", "weak_type") if getattr(leaf, each) != getattr(other, each)
            )
            if kind := next(differing, ""):
                yield {"kind": kind, "name": name, "before": _type_text(other), "now": _type_text(leaf)}
            if (leaf.sharding, leaf.placed) != (other.sharding, other.placed):
                yield {"kind": "sharding", "name": name, "before": other.sharding, "now": leaf.sharding}
        elif leaf.static == other.static:
            kind = "unequal_object" if leaf.compares and other.compares else "static_argument"
            kind = "inner_function" if "Jaxpr" in leaf.static else kind
            yield {"kind": kind, "name": name, "before": other.type, "now": leaf.type}
        else:
            yield {"kind": "static_argument", **_change(name, other.type, leaf.type)}


_ATTRIBUTE = re.compile(r"\w+\((?:[^()=]+=[^()=]*, )*(\w+)=")
"""Matches the text of an object up to the value of an attribute, after others that are no objects themselves."""


def _change(name: str, before: str, now: str) -> _Difference:
    """Return what changed in a static value: `cfg.width` with 8 and 16 where it is one attribute of an object, else the
    whole value, or the differing part of a long one. The beginning of equal texts is enough."""
    if before == now:
        shown = before if len(before) <= _WHOLE_AT_MOST else before.partition("(")[0]
        return {"name": name, "before": shown, "now": shown}
    begin, end = _common_ends(before, now)
    attribute = _ATTRIBUTE.fullmatch(before[:begin])
    values = before[begin : len(before) - end], now[begin : len(now) - end]
    if attribute is not None and not any("=" in value for value in values):
        return {"name": f"{name}.{attribute[1]}", "before": values[0], "now": values[1]}
    before, now = _differing_parts(before, now)
    return {"name": name, "before": before, "now": now}


def _differing_parts(before: str, now: str) -> tuple[str, str]:
    """Shorten two long values by their common parts, in whole words: `… custom_jvp …`, `… PjitFunction …`."""
    if max(len(before), len(now)) <= _WHOLE_AT_MOST:
        return before, now
    begin, end = _common_ends(before, now)
    return _middle(before, begin, end), _middle(now, begin, end)


def _common_ends(before: str, now: str) -> tuple[int, int]:
    """Return the lengths of the beginning and of the end that two texts share, in whole words."""
    shared = _common_length(before, now)
    begin = max(before.rfind(mark, 0, shared) + 1 for mark in "([{, =")
    tail = before[len(before) - _common_length(before[:begin:-1], now[:begin:-1]) :]
    return begin, len(tail) - next((at for at, mark in enumerate(tail) if mark in ",)]}"), len(tail))


def _common_length(one: str, other: str) -> int:
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
                min(len(one), len(other)))  # fmt: skip


def _middle(text: str, begin: int, end: int) -> str:
    return f"{'…' if begin else ''}{text[begin : len(text) - end]}{'…' if end else ''}"


def _type_text(leaf: Leaf) -> str:
    return f"weak {leaf.type}" if leaf.weak_type else leaf.type


def _settings(now: Signature, before: Signature) -> Iterator[_Difference]:
    for kind, after, earlier in (("config", now.config, before.config), ("jit_option", now.options, before.options)):
        if after == earlier:
            continue
        old, new = dict(earlier), dict(after)
        differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        for name in differing:
            # JAX derives the positions from the names and the names from the positions: one of them is enough
            if not (name.endswith("argnums") and name.replace("argnums", "argnames") in differing):
                yield {"kind": kind, "name": name, "before": old.get(name, ""), "now": new.get(name, "")}
