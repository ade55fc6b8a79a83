"""What trying a fix showed, in a sentence and as JSON."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from jaxprof.facts import Fact
from jaxprof.facts.units import BYTES, NUMBER, NUMBERS, OBJECT, RATIO, TEXT, TRUTH
from jaxprof.report.utilisation import rounded, rounded_interval, to_four_digits
from jaxprof.units import bytes_, integer, ratio_interval, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import FixTrial, NumbersCompared


def trial_sentence(trial: FixTrial) -> str:
    """`measured: 1.34× (1.30-1.38) as fast (2.31 s a call instead of 3.10 s), the results are equal`; `no faster`,
    `inconclusive`, `not tried`, `failed` with the reason."""
    times, outcome = trial.times, trial.outcome
    if times is None:
        return f"{outcome}: {trial.reason}"
    numbers = _numbers(trial)
    if trial.saved_bytes is not None:
        return _memory(trial)
    if times.ratio is None or outcome == "inconclusive":
        words = "inconclusive: " + times.reason()
        more = times.launches_to_decide()
        words += f" (about {integer(more)} more launches would decide it)" if more else ""
        beside = f", {ratio_interval(times.ratio, times.low, times.high)} as fast" if times.ratio is not None else ""
        return f"{words}{beside}; {numbers}"
    measured = f"{ratio_interval(times.ratio, times.low, times.high)} as fast{_seconds(trial)}"
    if outcome == "faster" and trial.differs:
        return f"no gain: {numbers}; {measured}"
    if outcome == "faster":
        return f"measured: {measured}, {numbers}"
    return f"no faster: {measured}, {numbers}"


def _memory(trial: FixTrial) -> str:
    """Of a fix that is one of memory."""
    before, after = trial.bytes or (None, None)
    times = trial.times
    assert times is not None
    if trial.outcome == "inconclusive" or times.ratio is None:
        fast = f"whether it is faster is not known: {times.reason()}"
    elif trial.outcome == "same":
        fast = "it is as fast"
    else:
        fast = f"it is {trial.outcome}: {ratio_interval(times.ratio, times.low, times.high)} as fast{_seconds(trial)}"
    word = "measured" if trial.gains else "no gain"
    return f"{word}: a call holds {bytes_(after)} instead of {bytes_(before)}; {fast}; {_numbers(trial)}"


def _seconds(trial: FixTrial) -> str:
    before, after = trial.seconds
    if not before or not after:
        return ""
    return f" ({seconds(median(after))} a call instead of {seconds(median(before))})"


def _numbers(trial: FixTrial) -> str:
    numbers = trial.numbers
    if numbers is None:
        return "the results were not compared"
    words = _agreement(numbers)
    return f"{words}: {trial.other_numbers}" if trial.other_numbers and numbers.relative else words


def _agreement(numbers: NumbersCompared) -> str:
    if numbers.agree is None:
        return f"the results were not compared: {numbers.note}"
    if numbers.agree and numbers.relative == 0:
        return "the results are equal"
    if numbers.agree:
        return f"the results agree to {numbers.relative:.1e}"
    if numbers.relative is None:
        return f"the results differ: {numbers.note or 'one of them is not finite'}"
    at = f" ({numbers.note})" if numbers.note else ""
    return f"the results differ by {numbers.relative:.1e}{at}"


TRIAL: Final[tuple[Fact[FixTrial], ...]] = (
    Fact("fix", TEXT, "What the changed side had"),
    Fact("outcome", TEXT, "faster, slower, same, inconclusive, failed (with it), not_tried",
         lambda trial: trial.outcome.replace(" ", "_")),
    Fact("gains", TRUTH, "Whether it is faster and the numbers do not speak against it"),
    Fact("sentence", TEXT, "The outcome in words", trial_sentence),
    Fact("ratio", RATIO, "How many times as fast it is", rounded("times.ratio")),
    Fact("ci95", NUMBERS, "Its 95 % interval, [low, high]",
         lambda trial: trial.times and rounded_interval(trial.times)),
    Fact("before_seconds", NUMBERS, "Times without the fix, in the order of the launches",
         lambda trial: list(map(to_four_digits, trial.seconds[0]))),
    Fact("after_seconds", NUMBERS, "Times with the fix", lambda trial: list(map(to_four_digits, trial.seconds[1]))),
    Fact("before_bytes", BYTES, "What a call holds at once without it; null unless the fix is one of memory",
         lambda trial: trial.bytes and trial.bytes[0]),
    Fact("after_bytes", BYTES, "What a call holds at once with it", lambda trial: trial.bytes and trial.bytes[1]),
    Fact("numbers", OBJECT, "How far the numbers of the two agree", inside=(
        Fact("agree", TRUTH, "Whether they agree within the tolerance"),
        Fact("relative", NUMBER, "The largest relative difference; null where not finite"),
        Fact("note", TEXT, "What else is to be known"),
    )),
    Fact("session", TEXT, "Where the comparison is kept"),
)  # fmt: skip
"""What trying a fix showed."""
