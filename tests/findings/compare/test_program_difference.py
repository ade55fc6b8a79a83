"""What of two recorded programs is said first, which of them is faster, and what the clock alone may explain."""

from dataclasses import replace

import pytest

import program_events as made
from folding import fold
from jaxprof import events as e
from jaxprof.facts.comparisons import answer
from jaxprof.findings.compare.session_difference import session_difference
from jaxprof.findings.program_result import program_result
from jaxprof.report.comparison import comparison_head, tables
from jaxprof.report.conclusion import difference_conclusion
from report import sessions

LOOP = made.loop(made.line(86, 0.1, "host_busy", "log"))
FOLDER = made.FOLDER


def recorded(*inside, jax="0.10.2", code="1", name="train.py", arguments=("--epochs", "3"), **more):
    reported = [sessions.environment(made.RUN, jax), e.SourcesRead.of({f"{FOLDER}/{name}": code}, made.RUN)]
    return fold(made.HEADER, made.program(*reported, *inside, argv=(name, *arguments), **more))


def compared(*sides):
    difference = session_difference(*sides)
    return difference, difference.runs[0], answer(difference.runs[0])


AS_IT_IS = recorded(*LOOP, made.steps(500, 2e-3))
CHANGED = {
    "arguments": (
        recorded(*LOOP, made.steps(500, 2e-3), arguments=()),
        "different arguments: --epochs 3 → none; a step of the second takes as long",
    ),
    "script": (
        recorded(*LOOP, made.steps(500, 1e-3), name="fast.py"),
        "different scripts: train.py → fast.py; a step of the second is 2.0 times as fast: 2.00 ms → 1.00 ms",
    ),
    "code": (
        recorded(*LOOP, made.steps(500, 4e-3), code="2"),
        "different code: train.py; a step of the second takes 2.0 times as long: 2.00 ms → 4.00 ms",
    ),
    "jaxlib": (
        recorded(*LOOP, jax="0.12.0"),
        "jax 0.10.2 → 0.12.0; jaxlib 0.10.2 → 0.12.0; the second program takes as long",
    ),
    "the device's work": (
        recorded(*made.steady(10, {"host_busy": 1.0}), made.steps(500, 2e-3)),
        "a step of the second takes as long, within the 10 % by which two recordings may differ: 2.00 ms → 2.00 ms; "
        "device busy 9.00 s → 0 ns; host busy 1.00 s → 10.0 s",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_explains_the_rest_is_said_before_all_else(case):
    other, first = CHANGED[case]
    difference, _, text = compared(AS_IT_IS, other)
    assert text.startswith(first)
    assert next(iter(comparison_head(difference))).text == text
    assert difference_conclusion(difference, "new").cost == text


def test_of_one_program_twice_nothing_is_said_to_differ():
    _, pair, text = compared(AS_IT_IS, recorded(*LOOP, made.steps(500, 2.1e-3)))
    assert (pair.program.verdict, pair.program.changes) == ("same", ())
    assert text.endswith("differ: 2.00 ms → 2.10 ms; nothing was compiled")


def test_a_program_that_did_not_end_is_not_faster():
    _, pair, text = compared(recorded(*LOOP), recorded(*LOOP[:5], wall=5.0, exit_code=1))
    assert pair.program.verdict is None
    assert "the second program" not in text


def test_what_a_cut_off_side_lacks_is_not_gone():
    waits = made.loop(made.line(90, 0.6, "host_busy", "plot", kind="host"))
    whole = recorded(*made.shaped(4), *waits)
    cut = recorded(*made.loop(count=10), wall=None)
    for sides in ((whole, cut), (cut, whole)):
        difference, pair, text = compared(*sides)
        assert {row.status for row in (*pair.program.functions, *pair.program.findings)} == {"unclear"}
        assert text.endswith("compiled functions: 1 not seen on a side that was cut off")
        name = "the second" if cut is sides[1] else "the first"
        assert next(iter(comparison_head(difference))).text.startswith(f"{name}: its end was not recorded")
        assert difference_conclusion(difference, "new").certainty.startswith("not seen to its end: " + name)
    back = session_difference(whole, recorded(*made.loop())).runs[0].program
    assert {row.status for row in (*back.functions, *back.findings)} == {"gone"}


def test_a_compilation_that_did_not_end_has_no_time_to_compare():
    cut, later = made.cut_off(), recorded(made.compiled(), *made.steady(3, {"compile": 1.0}))
    pair = session_difference(cut, later).runs[0].program
    assert {row.code: (row.before, row.after) for row in pair.states}["compile"] == (None, 3.0)
    seconds = {row.code: (row.before, row.after) for row in pair.sums}["compiling_seconds"]
    assert seconds == (None, program_result(later, made.RUN).compile_seconds)


def test_what_was_not_seen_of_a_side_is_not_zero():
    without, idle = made.without_jax(), fold(made.HEADER, made.program(e.JaxImported(run=made.RUN, seconds=0.5)))
    worked = recorded(made.compiled(), *made.steady(3, {"compile": 1.0}))
    count, took = program_result(worked, made.RUN).compile_count, program_result(worked, made.RUN).compile_seconds
    for other, sums, compiling in (
        (without, {"compiles": (None, None), "compiling_seconds": (None, None)}, (None, None)),
        (idle, {"compiles": (None, 0), "compiling_seconds": (None, None)}, (None, None)),
        (worked, {"compiles": (None, count), "compiling_seconds": (None, took)}, (None, 3.0)),
    ):
        pair = session_difference(without, other).runs[0].program
        known = {row.code: (row.before, row.after) for row in pair.sums}
        assert {code: known[code] for code in sums} == sums
        assert {row.code: (row.before, row.after) for row in pair.states}["compile"] == compiling
        assert pair.shifts == ()
    sums, states, *_ = tables(session_difference(without, without).runs[0])
    assert [row.code for row in (*sums.rows, *states.rows)] == ["wall_seconds", "not_seen"]


def test_a_wall_time_of_zero_is_not_unknown():
    started = [replace(event, monotonic_seconds=made.BEGAN) for event in made.program(wall=None)]
    for events, known in ((started, None), (made.program(wall=0.0), 0.0), (made.program(wall=2.0), 2.0)):
        assert program_result(fold(made.HEADER, events), made.RUN).known_wall_seconds == known


@pytest.mark.parametrize(("share", "status"), [(0.6, "new"), (0.11, "unclear")])
def test_a_finding_near_its_threshold_is_not_called_new(share, status):
    waits = made.loop(made.line(90, share, "host_busy", "plot", kind="host"))
    _, pair, text = compared(recorded(*made.loop()), recorded(*waits))
    (row,) = pair.program.findings
    assert (row.either.code, row.status) == ("host_work", status)
    assert ("host_work new" in text) == (status == "new")
    back = session_difference(recorded(*waits), recorded(*made.loop())).runs[0].program.findings
    assert [row.status for row in back] == ["gone" if status == "new" else "unclear"]


@pytest.mark.parametrize(("share", "status"), [(0.08, "unclear"), (0.03, "new")])
def test_a_finding_the_other_side_nearly_has_is_not_new(share, status):
    little, much = (recorded(*made.loop(made.line(90, of, "host_busy", "plot", kind="host"))) for of in (share, 0.6))
    assert not program_result(little, made.RUN).findings
    _, pair, text = compared(little, much)
    assert [(row.either.code, row.status) for row in pair.program.findings] == [("host_work", status)]
    assert ("host_work new" in text) == (status == "new")


@pytest.mark.parametrize(("name", "is_alone"), [("jaxlib", True), ("code", False), ("arguments", False)])
def test_difference_made_by_a_compiler_has_no_fix(name, is_alone):
    difference, _, _ = compared(AS_IT_IS, CHANGED[name][0])
    action = difference_conclusion(difference, "new").action
    assert action.startswith("nothing in the program: it is the same, compiled by jax 0.10.2 and") == is_alone
