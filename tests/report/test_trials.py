"""The sentence about a fix that was tried: a gain is claimed where there is one, and nowhere else."""

from golden import held_cases
from jaxprof.analysis.explain.model import FixTrial, NumbersCompared
from jaxprof.report.explain import trial_sentence
from jaxprof.stats import Block, LaunchBlocks, compare

EQUAL = NumbersCompared(agree=True, relative=0.0)
CLOSE = NumbersCompared(agree=True, relative=1.2e-7)
OFF = NumbersCompared(agree=False, relative=3e-3)
UNKNOWN = NumbersCompared(note="one of them was not kept")


def times(ratio, *, spread=0.001):
    """Five launches, of which B takes 1 s."""
    off = [ratio * (1 + spread * (number - 2)) for number in range(5)]
    return compare([LaunchBlocks((Block(0, (each,)), Block(1, (1.0,))), in_turns=False) for each in off])


def trial(ratio=2.0, *, spread=0.001, **fields):
    given = {"times": times(ratio, spread=spread), "numbers": EQUAL, **fields}
    return FixTrial(fix="a setting", **given)


TRIALS = {
    "equal results": trial(),
    "close results": trial(numbers=CLOSE),
    "results that were not compared": trial(numbers=UNKNOWN),
    "other results": trial(numbers=OFF),
    "other results, as they should be": trial(numbers=OFF, other_numbers="another precision"),
    "no faster": trial(1.0),
    "inconclusive": trial(1.1, spread=0.2),
    "smaller and faster": trial(bytes=(120, 80)),
    "smaller, and whether it is faster is not known": trial(1.1, spread=0.2, bytes=(120, 80)),
    "smaller and slower": trial(0.5, bytes=(120, 80)),
    "neither smaller nor faster": trial(1.0, bytes=(120, 120)),
    "failed": FixTrial(fix="a setting", failed=True, reason="exit code 1"),
}


def test_the_sentence_claims_what_was_measured():
    sentences = {case: trial_sentence(tried) for case, tried in TRIALS.items()}
    assert all(sentences[case].startswith("measured: ") is tried.gains for case, tried in TRIALS.items())
    held_cases("trials.txt", {case: f"  {sentence}\n" for case, sentence in sentences.items()})
