"""What is said of a measured comparison beside its verdict. The whole of it, in each form, is in `tests/net`."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.runs.ab import ab_result
from jaxprof.facts import recorder
from jaxprof.facts.comparisons import DIFFERENCE
from jaxprof.facts.session_tree import to_dict
from jaxprof.facts.sides import basis_lines, more_launches_text, verdict_line
from jaxprof.findings.compare import environments
from jaxprof.findings.compare.session_difference import session_difference
from jaxprof.report.comparison import environment_table
from jaxprof.stats.blocks import Block, LaunchBlocks, Spread
from jaxprof.stats.comparison import compare
from report.sessions import HEADER, environment, later_launches, turns

PLAN = e.ComparisonPlanned(
    run="r1",
    sides=[
        e.SideSpec(label="A", title="train.py:step at HEAD~1 (19789fa)", revision="HEAD~1", commit="19789fa"),
        e.SideSpec(label="B", title="train.py:step, FLAGS=[x]", environment={"FLAGS": "[x]"}, dirty=True),
    ],
    margin=0.02,
    inputs=["float32[3]"],
    same_inputs=True,
    notes=["A is HEAD~1, B the present tree"],
)
AGREE = e.ResultsCompared(run="r2", alike=True, agree=True, relative=1.2e-7)


def events_with(b_seconds, plan=PLAN, *more):
    """A takes a millisecond, B so many seconds."""
    spec = e.RunSpec(workload="train.py:step", variant="jit", how="jit", device="cpu:0", launches=3)
    events = [
        e.RunPlanned(run="r1", spec=replace(spec, side="A")),
        plan,
        e.RunPlanned(run="r2", spec=replace(spec, side="B", baseline="r1")),
    ]
    for number, (run, seconds) in enumerate((("r1", 1e-3), ("r2", b_seconds))):
        events += [e.WorkerStarted(run=run, pid=1, python="/usr/bin/python3"), environment(run)]
        events += [*turns(run, seconds, number), *later_launches(run, seconds, number)]
        events.append(e.RunFinished(run=run, status="ok"))
    return [*events, *more]


def session_with(b_seconds, margin=0.02):
    return fold(HEADER, events_with(b_seconds, replace(PLAN, margin=margin)))


def test_of_sides_that_are_alike_more_launches_only_show_that():
    def of_ratios(*ratios):
        return [LaunchBlocks(tuple([Block(0, (1e-3,)), Block(1, (1e-3 / ratio,))] * 10)) for ratio in ratios]

    near, apart = compare(of_ratios(0.95, 1.06, 1.0, 1.01, 0.98)), compare(of_ratios(0.9, 1.6, 1.0, 1.5, 0.95))
    assert (near.verdict, apart.verdict) == ("inconclusive", "inconclusive")
    assert "would only show that both are equally fast, within ± 2.0 %" in more_launches_text(near)
    assert more_launches_text(apart).endswith(" more launches would decide it)")


def test_ratio_unlike_the_medians_is_explained():
    result = ab_result(session_with(0.5e-3), "r1")
    assert ("call", "A 1.00 ms ± 0.50 % · B 500 µs ± 0.99 %") in basis_lines(result)
    slow = replace(result.sides[1], summary=replace(result.sides[1].summary, median=2e-3))
    [text] = [text for label, text in basis_lines(replace(result, sides=(result.sides[0], slow))) if label == "call"]
    assert text.endswith("; these medians are of all calls, the ratio is of pairs of neighbouring blocks")


@pytest.mark.parametrize(("median", "fast", "what"), [
    (1.01e-3, False, "pairs of neighbouring blocks"),
    (1.01e-3, True, "the fast calls"),
    (1.002e-3, False, ""),
    (0.99e-3, False, ""),
])  # fmt: skip
def test_medians_that_contradict_the_ratio(median, fast, what):
    """B is 1.02 times as fast in its pairs; the medians of all calls seem to contradict that."""
    result = ab_result(session_with(1e-3 / 1.02), "r1")
    (versus,) = result.versus
    wide = (*versus.times.spreads, Spread(0.1, 4))
    versus = replace(versus, times=replace(versus.times, spreads=wide, of_fast_calls=fast))
    own = replace(result.sides[1], summary=replace(result.sides[1].summary, median=median))
    told = dict(basis_lines(replace(result, sides=(result.sides[0], own), versus=(versus,))))["call"]
    assert told.partition("; ")[2] == (what and f"these medians are of all calls, the ratio is of {what}")


def test_how_sides_were_measured_is_said_in_a_sentence():
    result = ab_result(session_with(0.5e-3), "r1")
    (versus,) = result.versus
    for measured, words in (("in turns", "in turns"), ("launches in turns", "one process after the other")):
        apart = replace(versus, times=replace(versus.times, measured=measured))
        said = dict(basis_lines(replace(result, versus=(apart,))))["B"]
        assert f" launches, measured {words}" in said
    times = replace(versus.times, measured="apart", launches=1, spreads=())
    said = dict(basis_lines(replace(result, versus=(replace(versus, times=times),))))["B"]
    assert said.startswith("2.0× without an interval; 1 launch, not in turns"), said


def test_the_kept_margin_is_the_one_that_counts():
    wide, narrow = session_with(1e-3 / 1.04, 0.08), session_with(1e-3 / 1.04, 0.01)
    assert [ab_result(each, "r1").versus[0].times.verdict for each in (wide, narrow)] == ["same", "faster"]
    assert verdict_line(ab_result(wide, "r1").versus[0]).startswith("B is as fast as A, within ± 8.0 %")
    assert to_dict(wide)["runs"][1]["versus"]["verdict"] == "same"
    other = session_difference(narrow, narrow, run_before="r2", run_after="r1")
    assert recorder(DIFFERENCE)(other)["runs"][0]["side"] is None, "the other way round nothing was measured"


def test_settings_of_one_side_differ_if_both_have_jax():
    def told(before, after):
        table = environment_table(SimpleNamespace(environment=environments(before, after)))
        return [row.code for row in table.rows], list(table.notes)

    both = {"jax": "0.10.2", "numpy": "2.4.6"}
    assert told(both, both | {"XLA_FLAGS": "--a"}) == (["XLA_FLAGS"], ["2 other entries are the same"])
    without = {"numpy": "2.4.6"}
    left_out = "one side reports no JAX, whose settings are left out"
    assert told(without, both | {"jax_enable_x64": "False"}) == (
        [],
        [left_out, "the environments are the same (1 entry)"],
    )
    assert told(without, both | {"numpy": "2.5.0"}) == (["numpy"], [left_out])
    assert told({}, {}) == ([], ["no run reports its environment"])
    assert told({}, both) == ([], ["one side reports no environment"])
