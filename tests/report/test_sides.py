"""A session that holds a comparison says in every form what `ab` said, against A."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ab import ab_result, ab_results, side_versus
from jaxprof.analysis.session_difference import session_difference
from jaxprof.report.comparison_report import comparison_json
from jaxprof.report.json import to_dict
from jaxprof.report.markdown import to_markdown
from jaxprof.report.sides import basis_lines, more_launches_text
from jaxprof.report.text import to_text
from jaxprof.session import Session
from jaxprof.stats import compare
from jaxprof.stats.turns import Block, LaunchBlocks
from report.sessions import HEADER, environment, later_launches, turns

SIDES = {"r1": ("A", 1e-3), "r2": ("B", 0.5e-3)}
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
AGREE = e.ResultsCompared(run="r2", alike=True, agree=True, relative=1.2e-7, ulps=2)


def events_with(b_seconds: float = 0.5e-3, plan: e.ComparisonPlanned | None = PLAN, *more: e.Event) -> list[e.Event]:
    events: list[e.Event] = []
    for run, (side, _) in SIDES.items():
        spec = e.RunSpec(workload="train.py:step", variant="jit", how="jit", device="cpu:0", side=side, launches=3)
        events.append(e.RunPlanned(run=run, spec=replace(spec, baseline="" if run == "r1" else "r1")))
        if run == "r1" and plan is not None:
            events.append(plan)
    for number, (run, (side, median)) in enumerate(SIDES.items()):
        seconds = b_seconds if side == "B" else median
        events += [e.WorkerStarted(run=run, pid=1, python="/usr/bin/python3"), environment(run)]
        events += [*turns(run, seconds, number), *later_launches(run, seconds, number)]
        events.append(e.RunFinished(run=run, status="ok"))
    return [*events, *more]


def session_with(b_seconds: float = 0.5e-3, plan: e.ComparisonPlanned | None = PLAN, *more: e.Event) -> Session:
    return fold(HEADER, events_with(b_seconds, plan, *more))


@pytest.mark.parametrize("form", [to_text, to_markdown])
def test_every_form_says_what_ab_said(form):
    said, same = (
        " ".join(form(session).replace("\\", "").split())  # without line breaks and escapes
        for session in (session_with(0.5e-3, PLAN, AGREE), session_with(1e-3))
    )
    assert "B is faster than A, and the results agree to 1.2e-07 (2 ULP)" in said
    assert "train.py:step at HEAD~1 (19789fa)" in said
    assert "A is HEAD~1, B the present tree" in said
    assert not any(word in said for word in ("vs jit", "than jit"))
    assert "B is as fast as A, within" in same
    assert "faster than" not in same
    assert "the results were not compared" in same


def test_of_sides_that_are_alike_more_launches_only_show_that():
    near, apart = (
        compare([LaunchBlocks(tuple(blocks(ratio))) for ratio in ratios])
        for ratios in ((0.95, 1.06, 1.0, 1.01, 0.98), (0.9, 1.6, 1.0, 1.5, 0.95))
    )
    assert (near.verdict(), apart.verdict()) == ("inconclusive", "inconclusive")
    assert "would only show that both are equally fast, within ± 2.0 %" in more_launches_text(near)
    assert more_launches_text(apart).endswith(" more launches would decide it)")


def test_a_ratio_that_is_not_that_of_the_medians_says_where_both_come_from():
    result = ab_result(session_with(), "r1")
    assert ("call", "A 1.00 ms ± 0.50 % · B 500 µs ± 0.99 %") in basis_lines(result)
    slow = replace(result.sides[1], summary=replace(result.sides[1].summary, median=2e-3))
    [text] = [text for label, text in basis_lines(replace(result, sides=(result.sides[0], slow))) if label == "call"]
    assert text.endswith("; these medians are of all calls, the ratio is of pairs of neighbouring blocks")


def blocks(ratio: float) -> Iterator[Block]:
    for number in range(20):
        yield Block(number % 2, (1e-3 / ratio if number % 2 else 1e-3,))


def test_the_kept_margin_is_the_one_that_counts():
    wide, narrow = (session_with(1e-3 / 1.04, replace(PLAN, margin=margin)) for margin in (0.08, 0.01))
    assert ab_result(wide, "r1").versus[0].verdict == "same"
    assert ab_result(narrow, "r1").versus[0].verdict == "faster"
    assert to_dict(wide)["runs"][1]["versus"]["verdict"] == "same"
    runs = narrow.runs
    assert side_versus(wide, runs["r1"], runs["r2"]) is None, "of another session"
    other = session_difference(narrow, narrow, run_before="r2", run_after="r1")
    assert comparison_json(other)["runs"][0]["side"] is None, "the other way round nothing was measured"


def test_two_comparisons_of_one_session_are_two():
    session = session_with()
    for event in session_with(2e-3, replace(PLAN, margin=0.03)).runs.values():
        baseline = "x1" if event.plan.baseline else ""
        session.apply(e.RunPlanned(run=f"x{event.id[1]}", spec=replace(event.plan, baseline=baseline)))
    assert [len(result.sides) for result in ab_results(session)] == [2, 2]
    assert ab_results(session)[1].plan.margin == 0.02, "nothing was kept of the second one"
