"""The compile ledger grouped by function: how often each function was compiled, what that cost, and why.

Only recorded signatures count as arguments. Merged rows keep the signature of one of them, so there may have been more
shapes than are counted here. Reasons are the recorder's; several of one kind become one phrase.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import median

from jaxprof.analysis.programs.sentences import argument_name, compile_reason, setting_name
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import safe
from jaxprof.base.values import frozen
from jaxprof.events import STAGES, Compiled, SourceLocation

_TYPE = re.compile(r"([A-Za-z][\w<>:]*)\[([\d,]*)\]")
_MOST_LISTED = 4
"""Most types or values listed; beyond it, their range, or the first ones and their number."""

RECOMPILED_SHARE = 0.03
"""Share of the program's own time from which compiling a function again for one reason is reported, however often that
was. In a longer run the last short batch and an evaluation stay below it."""
WORTH_EXACT = 0.01
"""Share of the program's own time (without imports) that any fix must save; sufficient if JAX reported the seconds."""


@frozen
class ArrayType:
    """Type of an array, such as `f32[4,128]`."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the array; elements of less than a byte count as one."""
        bits = re.search(r"\d+", self.dtype)
        return math.prod(self.shape) * (max(8, int(bits.group())) // 8 if bits else 1)


@frozen
class Variation:
    """An argument that differed between compilations."""

    name: str
    types: tuple[str, ...]
    """The different types, such as `f32[4]`, in order of appearance; for a static argument, its values."""
    static: bool

    @property
    def summary(self) -> str:
        """The variation as text, such as `f32[1..412,128]`, `f32[4], bf16[4]` or `3, 4, 5, … (12 values)`."""
        if self.static or len(self.types) <= 2:
            return _list_texts(self.types, "values" if self.static else "types")
        arrays = _arrays(self.types)
        if len(arrays) < len(self.types):
            return _list_texts(self.types, "types")
        ranks = {len(array.shape) for array in arrays}
        dtypes = "|".join(dict.fromkeys(array.dtype for array in arrays))
        if len(ranks) > 1:
            return f"{dtypes} of {min(ranks)} to {max(ranks)} dimensions"
        extents = ((min(sizes), max(sizes)) for sizes in zip(*(array.shape for array in arrays), strict=True))
        axes = (str(least) if least == most else f"{least}..{most}" for least, most in extents)
        return f"{dtypes}[{','.join(axes)}]"


@frozen
class Padding:
    """Number of compilations that would remain if the varying sizes were padded."""

    shapes: int
    """Number of different shapes seen."""
    buckets: int
    """Number of shapes that remain if each varying size is padded to the next power of two."""
    smallest: int
    largest: int
    """Largest of the varying sizes in all arguments; `smallest` is the smallest."""


@lru_cache(maxsize=8192)
def array_type(text: str) -> ArrayType | None:
    """Return the dtype and shape in `text`; None if it is not the type of an array, such as a static value."""
    match = _TYPE.match(text)
    if match is None:
        return None
    try:
        shape = tuple(int(size) for size in match.group(2).split(",") if size)
    except ValueError:  # more digits than Python converts, so not the size of an array
        return None
    return ArrayType(match.group(1), shape)


class Signatures:
    """The different signatures of one function."""

    def __init__(self, rows: Iterable[Compiled]) -> None:
        self._seen: dict[tuple[tuple[str, bool], ...], dict[tuple[str, ...], None]] = {}
        """Tuples of argument types, by the arguments' names and whether each is static."""
        for row in rows:
            names = ((leaf, leaf.name or str(at)) for at, leaf in enumerate(row.signature))
            heads = tuple((name if leaf.static else argument_name(name), leaf.static) for leaf, name in names)
            self._seen.setdefault(heads, {})[tuple(leaf.type for leaf in row.signature)] = None

    def variations(self) -> tuple[Variation, ...]:
        """Return the arguments whose type or static value varied, in the order of the arguments."""
        types: dict[tuple[str, bool], dict[str, None]] = {}
        for heads, column in self._columns():
            types.setdefault(heads, {}).update(dict.fromkeys(column))
        return tuple(Variation(name, tuple(seen), static) for (name, static), seen in types.items() if len(seen) > 1)

    def padding(self) -> Padding | None:
        """Return the effect of padding to powers of two; None unless only sizes vary, in arrays of one rank."""
        if len(self._seen) != 1:
            return None
        axes: list[tuple[int, ...]] = []
        for (_, static), column in self._columns():
            arrays, types = _arrays(column), set(column)
            alike = len({(array.dtype, len(array.shape)) for array in arrays}) == 1
            if not static and alike and len(types) > 1 and len(arrays) == len(column):
                every = zip(*(array.shape for array in arrays), strict=True)
                axes += [each for each in every if len(set(each)) > 1]
        if not axes:
            return None
        exact = set(zip(*axes, strict=True))
        rounded = {tuple(1 << (size - 1).bit_length() if size > 1 else size for size in sizes) for sizes in exact}
        return Padding(len(exact), len(rounded), min(map(min, axes)), max(map(max, axes)))

    def _columns(self) -> Iterator[tuple[tuple[str, bool], tuple[str, ...]]]:
        """Yield each argument with its type in each signature."""
        for heads, signatures in self._seen.items():
            yield from zip(heads, zip(*signatures, strict=True), strict=True)


def _arrays(types: Sequence[str]) -> list[ArrayType]:
    return [array for text in types if (array := array_type(text)) is not None]


def _list_texts(texts: Sequence[str], kind: str) -> str:
    if len(texts) <= _MOST_LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[: _MOST_LISTED - 1])}, … ({len(texts)} {kind})"


def argument_changes(code: str, rows: Iterable[Compiled]) -> tuple[Variation, ...]:
    """Return the arguments that changed by the recorder's reasons of the kind `code`, with before and now."""
    seen: dict[str, dict[str, None]] = {}
    for reason in (reason for row in rows for reason in row.reasons if reason.kind == code):
        types = (text.removeprefix("weak ") for text in (reason.before, reason.now))
        seen.setdefault(argument_name(reason.name), {}).update(dict.fromkeys(types))
    static = code in ("static_argument", "static_part")
    return tuple(Variation(name, tuple(types), static) for name, types in seen.items())


@frozen
class ReasonCount:
    """Compilations of one function for one kind of reason."""

    code: str
    """One of `events.REASONS`."""
    count: int
    seconds: float
    text: str
    """Reason as text for all compilations: `shape of x varies: f32[1..412]`; for a single one, its own."""
    called_from: SourceLocation | None
    """Line that called most of the compilations."""
    varying: tuple[Variation, ...] = ()
    """Arrays whose shape or dtype was the reason."""
    rows: tuple[Compiled, ...] = ()


@frozen
class StageSpread:
    """Spread of one stage over several compilations, in seconds. Rows that stand for many compilations are left out."""

    count: int
    minimum: float
    median: float
    maximum: float


@frozen
class FunctionCompiles:
    function: str
    defined_at: SourceLocation | None
    called_from: SourceLocation | None
    """Line that called most of the compilations."""
    count: int
    seconds: float
    """Seconds of all stages together."""
    rows: tuple[Compiled, ...]
    reasons: tuple[ReasonCount, ...]
    """Reasons, most frequent first."""
    varying: tuple[Variation, ...]
    """Arguments that differed between compilations."""
    padding: Padding | None
    """Effect of padding, if only sizes vary."""
    op_by_op: bool
    library: bool

    def reason(self, code: str) -> ReasonCount | None:
        return next((reason for reason in self.reasons if reason.code == code), None)

    def repetitions(self) -> list[Compiled]:
        """Return the rows of a program that an earlier row has, but for its constants. Unknown programs are alike."""
        seen: set[tuple[object, ...]] = set()
        rows = []
        for row in self.rows:
            types = tuple((leaf.name, leaf.type) for leaf in row.signature)
            program = (row.operations, row.checksum, row.signature_more, types)
            if program in seen or row.count > 1:
                rows.append(row)
            seen.add(program)
        return rows

    def spreads(self) -> dict[str, StageSpread]:
        """Return the spread of each stage that is known for more than one compilation."""
        seconds_of = {name: [getattr(row, f"{name}_seconds") for row in self.rows if row.count == 1] for name in STAGES}
        known_of = {name: [seconds for seconds in values if seconds is not None] for name, values in seconds_of.items()}
        return {
            name: StageSpread(len(values), min(values), median(values), max(values))
            for name, values in known_of.items()
            if len(values) > 1
        }


def row_seconds(row: Compiled) -> float:
    """Return the seconds of a row, summed over its stages."""
    return (row.trace_seconds or 0.0) + (row.lower_seconds or 0.0) + (row.compile_seconds or 0.0)


def most_frequent(locations: Iterable[SourceLocation | None]) -> SourceLocation | None:
    """Return the known location that occurs most often; the earlier one if two tie."""
    counted = Counter(location for location in locations if location)
    return counted.most_common(1)[0][0] if counted else None


Definition = tuple[str, SourceLocation | None]
"""Name of a function, and where it is defined. Function objects that one line creates repeatedly are one function here:
that line is what the reader has to change."""


def by_function(rows: Sequence[Compiled], known: dict[Definition, FunctionCompiles]) -> tuple[FunctionCompiles, ...]:
    """Return the rows of a ledger by function, most expensive first. `known` keeps what an earlier call derived: only
    functions with new rows are derived again."""
    for key, own in grouped(((row.function, row.defined_at or None), row) for row in rows).items():
        if key in known and len(known[key].rows) >= len(own):
            continue
        first, signatures = own[0], Signatures(own)
        varying = signatures.variations()
        by_reason = grouped((row.reason_code, row) for row in own)
        reasons = []
        for code, of_reason in by_reason.items():
            varied = _varying_for(code, of_reason, varying)
            text, seconds = _reason_text(code, of_reason, varied), sum(map(row_seconds, of_reason))
            count, caller = sum(row.count for row in of_reason), _top_caller(of_reason)
            named = varied if code in _VARYING else ()
            reasons.append(ReasonCount(code, count, seconds, text, caller, named, tuple(of_reason)))
        known[key] = FunctionCompiles(
            function=first.function,
            defined_at=first.defined_at or None,
            called_from=_top_caller(own),
            count=sum(reason.count for reason in reasons),
            seconds=sum(reason.seconds for reason in reasons),
            rows=tuple(own),
            reasons=tuple(sorted(reasons, key=lambda reason: -reason.count)),
            varying=varying,
            padding=signatures.padding() if "shape" in by_reason else None,
            op_by_op=first.op_by_op,
            library=first.library,
        )
    return tuple(sorted(known.values(), key=lambda function: -function.seconds))


def _top_caller(rows: Iterable[Compiled]) -> SourceLocation | None:
    callers = totals((row.called_from or None, row.count) for row in rows)
    return max(callers, key=lambda caller: callers[caller])


_PLAIN = {
    "first": "first time",
    "weak_type": "weak type comes and goes",
    "structure": "structure of the arguments varies",
    "new_function": "new function object each time",
    "sharding": "sharding varies",
    "config": "JAX's settings changed",
    "closure": "new closure each time: another function makes it anew",
    "caches_cleared": "jax.clear_caches() emptied JAX's caches",
}
_VARYING = ("shape", "dtype")
_MOST_NAMED = 3
"""Largest number of arguments named in one reason; the rest are counted."""


def _varying_for(code: str, rows: Iterable[Compiled], varying: Sequence[Variation]) -> tuple[Variation, ...]:
    """Return the arguments that varied for that reason: for a shape, those whose shape changed."""
    if code == "static_argument":
        return tuple(argument for argument in varying if argument.static)
    if code not in _VARYING:
        return ()
    return argument_changes(code, rows) or tuple(
        argument
        for argument in varying
        if not argument.static and len({getattr(array, code) for array in _arrays(argument.types)}) > 1
    )


def _reason_text(code: str, rows: Sequence[Compiled], varying: Sequence[Variation]) -> str:
    if code == "first":
        return _PLAIN[code]
    texts = totals((text, row.count) for row in rows if (text := compile_reason(row)))
    if len(texts) == 1 and (sum(row.count for row in rows) == 1 or not varying):
        return safe(next(iter(texts)))
    named = list(_changes_named(code, rows, varying))
    if named:
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        if any(reason.kind == "more" for row in rows for reason in row.reasons):
            more = " and more"  # a row leaves out some changes, so that their number is unknown
        return safe("; ".join(named[:_MOST_NAMED]) + more)
    if code in _VARYING or code == "static_argument":
        return f"{code.replace('_', ' ')} varies"
    return _PLAIN.get(code) or (safe(max(texts, key=lambda text: texts[text])) if texts else "reason unknown")


def _changes_named(code: str, rows: Sequence[Compiled], varying: Sequence[Variation]) -> Iterator[str]:
    """Yield what changed according to several reasons, such as `shape of x varies: f32[1..412]`."""
    if code == "static_argument":
        yield from (f"static argument {argument.name}: {argument.summary}" for argument in varying)
    elif code in _VARYING:
        yield from (f"{code} of {argument.name} varies: {argument.summary}" for argument in varying)
    elif code == "structure":
        for part in argument_changes("static_part", rows):
            yield f"static part {part.name}: {'' if len(part.types) > 1 else 'another '}{part.summary}"
        keys = (path for row in rows for reason in row.reasons for path in reason.leaves)
        yield from dict.fromkeys(f"{path} comes and goes" for path in keys)
    elif code == "config":
        settings = (reason for row in rows for reason in row.reasons if reason.kind in ("config", "jit_option"))
        yield from dict.fromkeys(f"{setting_name(setting)} changed" for setting in settings)
    elif code in ("sharding", "weak_type"):
        verb = "varies" if code == "sharding" else "comes and goes"
        changed = argument_changes(code, rows)
        yield from (f"{code.replace('_', ' ')} of {argument.name} {verb}" for argument in changed)
