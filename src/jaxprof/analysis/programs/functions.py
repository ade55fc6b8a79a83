"""The compile ledger grouped by function: how often each was compiled, what that cost, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from jaxprof.analysis.programs.reasons import Change, brief, changed_arguments, changed_names, listed
from jaxprof.analysis.programs.signatures import Padding, Signatures, Variation
from jaxprof.events import STAGES, Compiled, SourceLocation
from jaxprof.light_dataclass import dataclass, field
from jaxprof.text import safe


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
        counted = [
            _reason_count(code, reason, _of_reason(code, reason, varying)) for code, reason in self.reasons.items()
        ]
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


def _reason_count(code: str, reason: _Reason, varying: tuple[Variation, ...]) -> ReasonCount:
    return ReasonCount(
        code,
        reason.count,
        reason.seconds,
        _in_words(code, reason, varying),
        _most(reason.callers),
        varying if code in _VARY else (),
    )


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
