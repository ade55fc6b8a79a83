"""The compile ledger grouped by function: how often each was compiled, what that cost, and why.

Of the arguments only recorded signatures count: merged rows keep the signature of one of them, so there may have been
more shapes than are counted here. Reasons are given in fewer words than the recorder's: the kind of the change first,
and what the names of several arguments have in common once. Words of another form, of a version to come or of a damaged
file, are passed on as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, takewhile
from statistics import median
from typing import Final

from jaxprof.events import STAGES, Compiled, SourceLocation
from jaxprof.light_dataclass import dataclass, field
from jaxprof.text import safe

_TYPE = re.compile(r"([A-Za-z][\w<>:]*)\[([\d,]*)\]")
_LISTED = 4
"""Number of types or values that are listed; of more, the range, or the first ones and their number."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`f32[4,128]`."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Variation:
    """One argument that was not the same in every compilation."""

    name: str
    types: tuple[str, ...]
    """The different types, in the order in which they came: `f32[4]`; for a static argument, its values."""
    static: bool

    @property
    def summary(self) -> str:
        """`f32[1..412,128]`, `f32[4], bf16[4]`, `3, 4, 5, … (12 values)`."""
        if self.static or len(self.types) <= 2:
            return _listed(self.types, "values" if self.static else "types")
        arrays = _arrays(self.types)
        if len(arrays) < len(self.types):
            return _listed(self.types, "types")
        ranks = {len(array.shape) for array in arrays}
        dtypes = "|".join(dict.fromkeys(array.dtype for array in arrays))
        if len(ranks) > 1:
            return f"{dtypes} of {min(ranks)} to {max(ranks)} dimensions"
        return f"{dtypes}[{','.join(map(_extent, zip(*(array.shape for array in arrays), strict=True)))}]"


@dataclass(frozen=True, slots=True)
class Padding:
    """How many compilations would be left if the varying sizes were padded."""

    shapes: int
    """Number of different shapes that were seen."""
    buckets: int
    """Number that is left when each varying size is padded to the next power of two."""
    smallest: int
    largest: int
    """Smallest of the varying sizes, in all arguments."""


@lru_cache(maxsize=8192)
def array_type(text: str) -> ArrayType | None:
    """The dtype and shape in `text`; None for anything but an array's type, such as a static value."""
    match = _TYPE.match(text)
    if match is None:
        return None
    try:
        shape = tuple(int(size) for size in match.group(2).split(",") if size)
    except ValueError:  # more digits than Python converts: no array has that size
        return None
    return ArrayType(match.group(1), shape)


class Signatures:
    """The different signatures of one function. Takes each row once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, bool], ...], dict[tuple[str, ...], None]] = {}
        """By the names of the arguments (and whether each is static): tuples of their types."""

    def take(self, row: Compiled) -> None:
        """Adds the signature of a row."""
        heads = tuple((leaf.name or f"argument {at}", leaf.static) for at, leaf in enumerate(row.signature))
        self._seen.setdefault(heads, {})[tuple(leaf.type for leaf in row.signature)] = None

    def variations(self) -> tuple[Variation, ...]:
        """The arguments whose type, or static value, was not always the same; in the order of the arguments."""
        types: dict[tuple[str, bool], dict[str, None]] = {}
        for heads, column in self._columns():
            types.setdefault(heads, {}).update(dict.fromkeys(column))
        return tuple(Variation(name, tuple(seen), static) for (name, static), seen in types.items() if len(seen) > 1)

    def padding(self) -> Padding | None:
        """What bucketing by powers of two would give; None unless only sizes vary, in arrays of one rank."""
        if len(self._seen) != 1:
            return None
        axes: list[tuple[int, ...]] = []
        for (_, static), column in self._columns():
            if not static and (sizes := _varying_sizes(tuple(dict.fromkeys(column)))) is not None:
                every = zip(*(array.shape for array in _arrays(column)), strict=True)
                axes += [each for each in every if len(set(each)) > 1] if sizes else []
        if not axes:
            return None
        exact = set(zip(*axes, strict=True))
        rounded = {tuple(map(_power_of_two, sizes)) for sizes in exact}
        return Padding(len(exact), len(rounded), min(map(min, axes)), max(map(max, axes)))

    def _columns(self) -> Iterator[tuple[tuple[str, bool], tuple[str, ...]]]:
        """Each argument with its type in each signature."""
        for heads, signatures in self._seen.items():
            yield from zip(heads, zip(*signatures, strict=True), strict=True)


def _arrays(types: Sequence[str]) -> list[ArrayType]:
    return [array for text in types if (array := array_type(text)) is not None]


def _varying_sizes(types: Sequence[str]) -> bool | None:
    """Whether only sizes vary among `types`; None if they have several dtypes or ranks."""
    arrays = _arrays(types)
    if len(arrays) < len(types) or len({(array.dtype, len(array.shape)) for array in arrays}) != 1:
        return None
    return len(types) > 1


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length() if size > 1 else size


def _extent(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least}..{most}"


def _listed(texts: Sequence[str], kind: str) -> str:
    if len(texts) <= _LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[: _LISTED - 1])}, … ({len(texts)} {kind})"


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


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Compilations of one function that have one kind of reason."""

    code: str
    """One of `events.REASONS`."""
    count: int
    seconds: float
    text: str
    """In words for all of them: `shape of x varies: f32[1..412]`; for a single compilation its own words."""
    called_from: SourceLocation | None
    """The line that most of them came from."""
    varying: tuple[Variation, ...] = ()
    """The arrays whose shape or dtype was the reason."""


@dataclass(frozen=True, slots=True)
class StageSpread:
    """One stage of several compilations, in seconds. Rows that stand for many compilations are not included."""

    count: int
    minimum: float
    median: float
    maximum: float


@dataclass(frozen=True, slots=True)
class FunctionCompiles:
    """All compilations of one function."""

    function: str
    defined_at: SourceLocation | None
    called_from: SourceLocation | None
    """The line that most of its compilations came from."""
    count: int
    seconds: float
    """Of all stages together."""
    rows: tuple[Compiled, ...]
    reasons: tuple[ReasonCount, ...]
    """The most frequent first."""
    varying: tuple[Variation, ...]
    """The arguments that were not the same in all compilations."""
    padding: Padding | None
    """What padding would leave, where only sizes vary."""
    op_by_op: bool
    library: bool

    def reason(self, code: str) -> ReasonCount | None:
        """Its compilations for that reason; None if there are none."""
        return next((reason for reason in self.reasons if reason.code == code), None)

    def spreads(self) -> dict[str, StageSpread]:
        """How long each stage took, for stages that are known of more than one compilation."""
        seconds_of = {name: [getattr(row, f"{name}_seconds") for row in self.rows if row.count == 1] for name in STAGES}
        known_of = {name: [seconds for seconds in values if seconds is not None] for name, values in seconds_of.items()}
        return {
            name: StageSpread(len(values), min(values), median(values), max(values))
            for name, values in known_of.items()
            if len(values) > 1
        }


def row_seconds(row: Compiled) -> float:
    """The seconds of a row: the sum of its stages that happened."""
    return (row.trace_seconds or 0.0) + (row.lower_seconds or 0.0) + (row.compile_seconds or 0.0)


def most_frequent(places: Iterable[SourceLocation | None]) -> SourceLocation | None:
    """The known place that occurs most often; the earlier one of two that tie."""
    counted = Counter(place for place in places if place)
    return counted.most_common(1)[0][0] if counted else None


class FunctionLedger:
    """The rows of a ledger by function. Takes each row once, so that another row costs only itself.

    Functions of one name are kept apart by where they are defined. Function objects that one line makes anew are one
    function here: that line is what the reader has to change.
    """

    __slots__ = ("_changed", "_found", "_groups", "consumed")

    def __init__(self) -> None:
        self.consumed = 0
        self._groups: dict[tuple[str, SourceLocation | None], _Group] = {}
        self._changed: dict[tuple[str, SourceLocation | None], None] = {}
        self._found: dict[tuple[str, SourceLocation | None], FunctionCompiles] = {}

    def take(self, rows: Sequence[Compiled]) -> None:
        """Adds the rows that have come since."""
        for row in rows[self.consumed :]:
            key = (row.function, row.defined_at or None)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group()
            group.take(row)
            self._changed[key] = None
        self.consumed = len(rows)

    def functions(self) -> tuple[FunctionCompiles, ...]:
        """The functions, the one that cost most first."""
        for key in self._changed:
            self._found[key] = self._groups[key].result()
        self._changed.clear()
        return tuple(sorted(self._found.values(), key=lambda function: -function.seconds))


@dataclass(slots=True)
class _Reason:
    """The rows of one reason so far."""

    rows: list[Compiled] = field(default_factory=list)
    count: int = 0
    seconds: float = 0.0
    callers: Counter[SourceLocation | None] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Group:
    """The rows of one function so far."""

    rows: list[Compiled] = field(default_factory=list)
    reasons: dict[str, _Reason] = field(default_factory=dict)
    signatures: Signatures = field(default_factory=Signatures)

    def take(self, row: Compiled) -> None:
        self.rows.append(row)
        self.signatures.take(row)
        reason = self.reasons.get(row.reason_code)
        if reason is None:
            reason = self.reasons[row.reason_code] = _Reason()
        reason.rows.append(row)
        reason.count += row.count
        reason.seconds += row_seconds(row)
        reason.callers[row.called_from or None] += row.count
        if row.reason:
            reason.texts[row.reason] += row.count

    def result(self) -> FunctionCompiles:
        first, varying = self.rows[0], self.signatures.variations()
        callers: Counter[SourceLocation | None] = Counter()
        for reason in self.reasons.values():
            callers.update(reason.callers)
        counted = []
        for code, reason in self.reasons.items():
            here = _of_reason(code, reason, varying)
            words, arrays = _in_words(code, reason, here), here if code in _VARY else ()
            counted.append(ReasonCount(code, reason.count, reason.seconds, words, _most(reason.callers), arrays))
        return FunctionCompiles(
            function=first.function,
            defined_at=first.defined_at or None,
            called_from=_most(callers),
            count=sum(reason.count for reason in counted),
            seconds=sum(reason.seconds for reason in counted),
            rows=tuple(self.rows),
            reasons=tuple(sorted(counted, key=lambda reason: -reason.count)),
            varying=varying,
            padding=self.signatures.padding() if "shape" in self.reasons else None,
            op_by_op=first.op_by_op,
            library=first.library,
        )


def _most(callers: Counter[SourceLocation | None]) -> SourceLocation | None:
    return callers.most_common(1)[0][0]


_PLAIN = {
    "first": "first time",
    "weak_type": "weak type comes and goes",
    "structure": "structure of the arguments varies",
    "new_function": "new function object each time",
    "sharding": "sharding varies",
    "config": "JAX's settings changed",
    "closure": "new closure each time: another function makes it anew",
    "caches_cleared": "jax.clear_caches() had emptied JAX's caches",
}
_VERBS = {"shape": " varies", "dtype": " varies", "sharding": " varies", "weak_type": " comes and goes"}
_VARY = ("shape", "dtype")
_NAMED = 3
"""Arguments that are named in one reason; of more, their number."""


def _of_reason(code: str, reason: _Reason, varying: Sequence[Variation]) -> tuple[Variation, ...]:
    """What varied for that reason: for a shape, the arguments whose shape it was, and not all that ever changed."""
    if code == "static_argument":
        return tuple(argument for argument in varying if argument.static)
    if code not in _VARY:
        return ()
    return changed_arguments(code, reason.texts) or tuple(argument for argument in varying if not argument.static)


def _in_words(code: str, reason: _Reason, varying: Sequence[Variation]) -> str:
    """The reason of several rows in one phrase."""
    if code == "first":
        return _PLAIN[code]
    if len(reason.texts) == 1 and (reason.count == 1 or not varying):
        return safe(brief(next(iter(reason.texts))))
    kind = code.replace("_", " ")
    names = [Change(kind, name, "") for name in changed_names(code, reason.texts)]
    if changes := [Change(kind, argument.name, argument.summary) for argument in varying] or names:
        more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        more = " and more" if _is_cut(reason.texts) else more
        if code == "config":
            return safe(", ".join(change.name for change in changes[:_NAMED]) + more + " changed")
        return safe(listed(changes[:_NAMED], _VERBS.get(code, "")) + more)
    if code in _VARY or code == "static_argument":
        return f"{kind} varies"
    return _PLAIN.get(code) or (safe(brief(reason.texts.most_common(1)[0][0])) if reason.texts else "reason unknown")


def _is_cut(texts: Iterable[str]) -> bool:
    """Whether the words of a reason leave out some changes: their number is then unknown."""
    return any(words.endswith((" more difference", " more differences")) for words in texts)
