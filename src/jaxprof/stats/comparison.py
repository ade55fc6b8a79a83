"""Compare two sides: a ratio with its interval, and one of four verdicts; one of them is that nothing is known.

Calls of one process are alike, and two processes of one program differ: the unit is the launch or, with one launch, the
pair of neighbouring blocks. The ratio is computed on the log scale, where faster and slower are symmetric. Over
launches its interval is Student's; `bench/verdict_simulated.py` shows what it withstands, and what not. This module
does not know why a comparison may be invalid (a failed check, another device): callers pass the reason to `refuse`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from jaxprof.base.units import UNKNOWN, counted, ratio_interval
from jaxprof.base.values import frozen
from jaxprof.stats.blocks import (
    Block,
    LaunchBlocks,
    Location,
    Spread,
    exp_in_range,
    launch_mean,
    location,
    middle,
    not_times,
)

MARGIN = 0.02
"""Two sides that differ by less than this share are the same."""
FEWEST_TO_STOP = {"launch": 5, "pair of blocks": 20}
"""Least number of units before the interval's width ends the measuring: with fewer it may be small by chance."""
_STOPPING = 5 / 3
"""Factor by which an interval's error probability must shrink if its own width ended the measuring. Looking after each
launch stops when the spread comes out too small: 95 % intervals miss in up to 8 % of such sessions, 97 % ones in up to
5 % (`bench/verdict_simulated.py`)."""
ONE_LAUNCH = 0.10
"""One launch reports no difference up to this share: two processes of one program differed by 3 to 10 % beside a
neighbour that works in bursts, and by about 1 % on a quiet machine, and one launch cannot know which it is on."""
ROUGH = 4.0
"""An interval whose ends are further apart than this factor does not show how large a difference is."""
MOST_LAUNCHES = 1000
"""Largest number of launches that is proposed."""

Verdict = Literal["faster", "slower", "same", "inconclusive"]
LimitState = Literal["within", "exceeded", "undecided"]
Unit = Literal["launch", "pair of blocks"]
Measured = Literal["in turns", "launches in turns", "apart"]
"""How the sides were measured: blocks in turns; short launches in turns; neither, as in sessions of two times."""


@frozen
class TimeComparison:
    """Ratio of the times of the baseline and of `other`, with its interval and its verdict."""

    ratio: float | None
    """The baseline's time over the other's: above 1, the other is faster. None if a side has no usable sample."""
    spreads: tuple[Spread, ...]
    """Sources of the error of the logarithm of `ratio`; the widest makes the interval. Empty: the error is unknown."""
    units: int
    """Number of units from which the interval is computed."""
    unit: Unit
    launches: int
    """Number of launches with both sides; 1 if measured apart."""
    between_share: float | None
    """Share (0..1) of the variance of one launch's log ratio that its blocks do not explain: the differences between
    processes. Near 0, longer launches help; near 1, only more of them. None with one launch."""
    measured: Measured
    family: int = 1
    """Number of comparisons among which this one is read. The intervals of all of them hold together with 95 %."""
    of_fast_calls: bool = False
    """Whether a launch's effect is the ratio of both sides' fast calls, because other processes worked beside them."""
    by_width: bool = False
    """Whether the number of launches was not fixed beforehand, but depended on the interval's width."""
    refusal: str = ""
    """Why no verdict may be given, whatever the times are; empty if one may."""
    margin: float = MARGIN
    """Two sides that differ by less than this share are the same."""

    @property
    def together(self) -> bool:
        """Whether the sides were measured in turns, so that the ratio reflects the programs and not the hour."""
        return self.measured != "apart"

    @property
    def how(self) -> str:
        """How the sides were measured, in words: `in turns`."""
        return f"{self.measured}, by their fast calls beside other processes" if self.of_fast_calls else self.measured

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Return the bounds of `ratio` with `confidence` (0..1); None if its error is not known."""
        half = self._half_width(confidence)
        if half is None or self.ratio is None:
            return None
        middle = math.log(self.ratio)
        return exp_in_range(middle - half), exp_in_range(middle + half)

    @property
    def low(self) -> float | None:
        """Lower end of the 95 % interval of `ratio`; None if it is not known."""
        interval = self.interval()
        return interval[0] if interval else None

    @property
    def high(self) -> float | None:
        """Upper end of the 95 % interval of `ratio`; None if it is not known."""
        interval = self.interval()
        return interval[1] if interval else None

    @property
    def half_width(self) -> float | None:
        """Half the 95 % interval, as a share of the ratio: the `± 0.9 %` on screen; None if it is not known."""
        half = self._half_width(0.95)
        return None if half is None else exp_in_range(half) - 1

    @property
    def verdict(self) -> Verdict:
        """Verdict on `other`.

        `same`: the 90 % interval lies wholly within ± `margin` (two one-sided tests: D. J. Schuirmann, 1987), even if
        it excludes 1: so small a difference does not matter. Otherwise `faster` or `slower`: the 95 % interval excludes
        1, and the ratio itself lies beyond `margin`; with one launch the interval has to lie beyond `ONE_LAUNCH`,
        because two processes of one program differ, too. Otherwise, and whenever `reason` gives one, `inconclusive`.
        """
        return self._judge()[0]

    @property
    def reason(self) -> str:
        """Why the verdict is `inconclusive`, in a few words; empty if it is not."""
        return self._judge()[1]

    @property
    def ratio_text(self) -> str:
        """The ratio with its interval, as `6.9× (6.8-7.0)`; a dash if it is unknown."""
        return UNKNOWN if self.ratio is None else ratio_interval(self.ratio, self.low, self.high)

    @property
    def basis(self) -> str:
        """What the interval rests on, as `3 launches` or `1 launch: holds for these processes`."""
        if not self.together:
            return "not measured together"
        if self.launches == 1:
            return "1 launch: holds for these processes"
        launches = counted(self.launches, "launch")
        if self.of_fast_calls:
            return f"the fast calls of {launches}, beside other processes"
        return launches if self.measured == "in turns" else f"{launches}, one process after the other"

    def why_not_of_medians(self, of_medians: float) -> str:
        """Return why `ratio` is not that of the two medians beside it, if that shows: their ratio `of_medians` names
        another side as the faster one, or lies outside the interval (without one, beyond the margin); otherwise an
        empty text."""
        if self.ratio is None:
            return ""
        low, high = self.low or self.ratio / (1 + self.margin), self.high or self.ratio * (1 + self.margin)
        opposed = (round(of_medians, 2) - 1) * (round(self.ratio, 2) - 1) < 0
        if low <= of_medians <= high and not opposed:
            return ""
        if self.of_fast_calls:
            return "these medians are of all calls, the ratio is of the fast calls"
        if self.measured == "in turns":
            return "these medians are of all calls, the ratio is of pairs of neighbouring blocks"
        each = "each side alone, launch by launch" if self.together else "all calls, whatever their launch"
        return f"these medians are of launches, the ratio is of {each}"

    @property
    def is_rough(self) -> bool:
        """Whether the interval, whatever it excludes, leaves the size of the difference open: its ends lie far apart
        (`ROUGH`), or one lies within `MARGIN` of 1, or a bound is missing."""
        low, high = self.low, self.high
        if low is None or high is None or not low > 0:
            return True
        return high / low > ROUGH or min(abs(math.log(low)), abs(math.log(high))) <= math.log1p(MARGIN)

    def words(self, baseline: str) -> str:
        """Return the verdict as text: `faster than numpy`, or `inconclusive: ...` with what would decide it."""
        if self.verdict == "inconclusive":
            decide = more_launches(self.launches_to_decide, is_near=self.is_near)
            return ", ".join(filter(None, (f"inconclusive: {self.reason}", decide)))
        if self.verdict == "same":
            return f"the same as {baseline}"
        rough = ", but by how much is uncertain" if self.is_rough else ""
        return f"{self.verdict} than {baseline}{rough}"

    @property
    def growth(self) -> float | None:
        """Share by which the time of `other` exceeds the baseline's: 0.1 is 10 % more. None: unknown."""
        return None if self.ratio is None else 1 / self.ratio - 1

    @property
    def growth_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `growth`; None if its error is not known."""
        interval = self.interval()
        return None if interval is None else (1 / interval[1] - 1, 1 / interval[0] - 1)

    def within(self, most: float) -> tuple[LimitState, str]:
        """Judge whether the time of `other` has grown by more than the share `most`, and why nothing is decided.

        The rules are those of a verdict: the whole interval lies on one side of the limit and, with one launch, beyond
        `ONE_LAUNCH` from it.
        """
        interval = self.interval()
        if self._why_unjudged or self.ratio is None or interval is None:
            return "undecided", self._why_unjudged
        # `ratio` is the baseline's time over the other's, so that a growth is its inverse and the ends change places.
        limit = math.log1p(most)
        low, high, grown = -math.log(interval[1]), -math.log(interval[0]), -math.log(self.ratio)
        if low <= limit <= high:
            return "undecided", "the interval contains the limit"
        if self.unit != "launch" and low - math.log1p(ONE_LAUNCH) <= limit <= high + math.log1p(ONE_LAUNCH):
            return "undecided", f"one launch cannot show a difference under {100 * ONE_LAUNCH:.0f} %"
        return ("exceeded" if grown > limit else "within"), ""

    @property
    def launches_to_decide(self) -> int | None:
        """Number of further launches that would give a verdict, if ratio and spread stay as they are.

        None if that is not known (one launch, a refusal) or more than `MOST_LAUNCHES` would be needed; 0 if there is a
        verdict.
        """
        if self.verdict != "inconclusive":
            return 0
        return self.launches_until(lambda times: times.verdict != "inconclusive")

    def launches_until(self, decided: Callable[[TimeComparison], bool]) -> int | None:
        """Return how many more launches would make it `decided`, if ratio and spread stay as they are. None if that is
        not known, or more than `MOST_LAUNCHES` would be needed."""
        if self.unit != "launch" or not self.spreads or self.refusal or not self.together:
            return None
        enough, too_few = MOST_LAUNCHES, self.units
        if not decided(self._with_launches(enough)):
            return None
        # More launches only narrow the interval, so that what they decide stays decided: bisect.
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if decided(self._with_launches(middle)):
                enough = middle
            else:
                too_few = middle
        return enough - self.units

    @property
    def is_near(self) -> bool:
        """Whether the ratio lies within the margin around 1: more launches can then show nothing but `same`."""
        return self.ratio is not None and 1 / (1 + self.margin) <= self.ratio <= 1 + self.margin

    def _half_width(self, confidence: float) -> float | None:
        if not self.spreads or self.ratio is None:
            return None
        stopped = self.by_width and self.units >= FEWEST_TO_STOP[self.unit]
        shared = 1 - (1 - confidence) / self.family / (_STOPPING if stopped else 1)
        # Launches that agree by chance make the interval no narrower than the blocks within them allow.
        return max(spread.half_width(shared) for spread in self.spreads)

    @property
    def _why_unjudged(self) -> str:
        """Why the times cannot be compared, whatever the interval is; empty if they can."""
        if self.refusal:
            return self.refusal
        if self.ratio is None:
            return "a side has no samples"
        if not self.together:
            return "not measured together"
        return "" if self.spreads else "too few independent blocks"

    def _judge(self) -> tuple[Verdict, str]:
        wide, narrow = self.interval(0.95), self.interval(0.90)
        if self._why_unjudged or self.ratio is None or wide is None or narrow is None:
            return "inconclusive", self._why_unjudged
        # Two processes of one program differ, too: the pairs of a single launch do not show that.
        edge = 1.0 if self.unit == "launch" else 1 + max(self.margin, ONE_LAUNCH)
        if max(-math.log(narrow[0]), math.log(narrow[1])) < math.log1p(self.margin):  # how far from 1 it reaches
            return "same", ""
        if wide[0] > edge or wide[1] < 1 / edge:
            if self.is_near:
                return "inconclusive", f"the difference is about the margin of {100 * self.margin:g} %"
            return ("faster" if self.ratio > 1 else "slower"), ""
        if wide[0] <= 1 <= wide[1]:
            return "inconclusive", "the interval contains 1"
        return "inconclusive", f"one launch cannot show a difference under {100 * max(self.margin, ONE_LAUNCH):.0f} %"

    def _with_launches(self, launches: int) -> TimeComparison:
        """Return this comparison as it would be after `launches` launches with the same spread."""
        shrunk = math.sqrt(self.units / launches)
        spreads = tuple(
            Spread(spread.standard_error * shrunk, (spread.degrees + 1) * launches / self.units - 1)
            for spread in self.spreads
        )
        return replace(self, spreads=spreads, units=launches)


def compare(
    launches: Sequence[LaunchBlocks],
    baseline: int = 0,
    other: int = 1,
    *,
    by_width: bool = False,
    beside_others: bool = False,
) -> TimeComparison:
    """Compare the side `other` with the side `baseline`, both measured in turns.

    Launches that lack one of them are left out. The effect of a launch is the trimmed mean of the log ratios of its
    pairs of neighbouring blocks (not in turns: the log ratio of the medians of its blocks). Over two or more launches
    the interval is Student's over their effects, and never narrower than the blocks within them allow. With one launch
    it is that of its pairs, batched: it holds for these processes only. `by_width`: whether the number of launches
    depended on the width of the interval.

    `beside_others`: other processes worked meanwhile. They interrupt one block of a pair, again and again: the pairs of
    a launch scatter by 20 to 60 %. Over launches the effect of each is then the ratio of both sides' fast calls (a
    tenth of the calls are faster), which differed by a tenth of that.

    No sample is ever left out on its own: if one is not a time (zero, negative, infinite, not a number), the comparison
    is refused.
    """
    effects = [effect for launch in launches if (effect := _effect(launch, baseline, other))]
    in_turns = all(launch.in_turns for launch in launches)
    of_fast_calls = beside_others and in_turns and len(effects) > 1
    measured: Measured = "in turns" if in_turns else "launches in turns"
    if not_times(launches, baseline, other):
        return _unknown(len(effects), measured, "a sample is not a time")
    if not effects:
        return _unknown(0, measured)
    if of_fast_calls:
        effects = [effect for launch in launches if (effect := _effect_of_fast_calls(launch, baseline, other))]
    mean = launch_mean(effects)
    ratio, spreads, count = exp_in_range(mean.value), mean.spreads, len(effects)
    if count > 1:
        share = mean.between_share
        return TimeComparison(
            ratio, spreads, count, "launch", count, share, measured, of_fast_calls=of_fast_calls, by_width=by_width
        )
    pairs = sum(len(launch.pairs(baseline, other)) for launch in launches)
    refusal = "" if in_turns else "one launch, not in turns"
    return TimeComparison(
        ratio, spreads, pairs, "pair of blocks", 1, None, measured, by_width=by_width, refusal=refusal
    )


def compare_apart(baseline: float | None, other: float | None) -> TimeComparison:
    """Compare two times (seconds) that were measured at different times; None is unknown.

    The verdict is always `inconclusive`, and there is no interval, because the ratio includes all differences between
    the two times.
    """
    if baseline is None or other is None:
        return _unknown(0, "apart")
    if not Block(0, (baseline, other)).is_time:
        return _unknown(1, "apart", "a sample is not a time")
    return TimeComparison(exp_in_range(math.log(baseline) - math.log(other)), (), 0, "launch", 1, None, "apart")


def more_launches(count: int | None, *, is_near: bool = False) -> str:
    """Return what `count` more launches would show: `about 3 more launches would decide it`; empty if unknown or 0.

    `is_near`: the ratio lies within the margin, so that more launches cannot show which side is faster.
    """
    if not count:
        return ""
    show = "only show that both are equally fast" if is_near else "decide it"
    return f"about {counted(count, 'more launch')} would {show}"


def refuse(comparison: TimeComparison, reason: str) -> TimeComparison:
    """Return the comparison without a verdict, because a side failed its check, has another device, dtype, size or
    precision, or was throttled. `reason` replaces any reason that lies in the measurement."""
    return replace(comparison, refusal=reason)


def correct_for_family(comparisons: Sequence[TimeComparison]) -> list[TimeComparison]:
    """Return the comparisons of one table, so that all their intervals hold together with 95 %, and no verdict is wrong
    in more than one table of twenty.

    Bonferroni's simultaneous intervals. Holm's steps would find a little more, but have no intervals: a row could show
    `inconclusive` beside an interval that excludes 1. Comparisons without an interval are not counted.
    """
    family = max(1, sum(bool(one.spreads) and one.together and not one.refusal for one in comparisons))
    return [replace(one, family=family) for one in comparisons]


def narrow_enough(comparison: TimeComparison, wanted: float) -> bool:
    """Return whether measuring may stop: half the 95 % interval is at most `wanted` (a share of the ratio), with at
    least `FEWEST_TO_STOP` units.

    The rule sees the width and never the ratio: measuring until a verdict appears finds one for the same program,
    sooner or later. Samples measured under this rule are compared with `by_width=True`.
    """
    half = replace(comparison, by_width=True).half_width
    return half is not None and half <= wanted and comparison.units >= FEWEST_TO_STOP[comparison.unit]


def _effect(launch: LaunchBlocks, baseline: int, other: int) -> Location | None:
    """Return the log ratio within one launch, positive if `other` is faster; None if it has no pair, or no times."""
    if not_times([launch], baseline, other):
        return None
    if launch.in_turns:
        pairs = launch.pairs(baseline, other)
        return location([math.log(one.median) - math.log(two.median) for one, two in pairs]) if pairs else None
    sides = [[math.log(block.median) for block in launch.of_side(side)] for side in (baseline, other)]
    if not all(sides):
        return None
    return Location(middle(sides[0]) - middle(sides[1]), None)


def _effect_of_fast_calls(launch: LaunchBlocks, baseline: int, other: int) -> Location | None:
    """Return the log ratio of both sides' fast calls in one launch; only several launches show its error."""
    if not_times([launch], baseline, other) or not launch.pairs(baseline, other):
        return None
    calls = launch.fast_call(baseline), launch.fast_call(other)
    return Location(math.log(calls[0]) - math.log(calls[1]), None) if calls[0] and calls[1] else None


def _unknown(launches: int, measured: Measured, refusal: str = "") -> TimeComparison:
    return TimeComparison(None, (), 0, "launch", launches, None, measured, refusal=refusal)
