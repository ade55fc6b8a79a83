from dataclasses import asdict
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from folding import fold
from golden import figures_text, held
from jaxprof import events as e
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.result import NOT_SEEN

DURATIONS = st.floats(0, 1e4, allow_nan=False)
STRETCHES = st.lists(st.dictionaries(st.sampled_from(e.PROGRAM_STATES), DURATIONS, max_size=9), max_size=12)


@given(STRETCHES, DURATIONS)
def test_the_time_line_adds_up_whatever_was_seen(stretches, wall):
    ends = list(accumulate(sum(states.values()) for states in stretches))
    began = [0.0, *ends][: len(stretches)]
    sampled = [made.sampled(at, sum(states.values()), states) for at, states in zip(began, stretches, strict=True)]
    found = made.result(*sampled, wall=wall)
    assert sum(share.seconds for share in found.timeline) == pytest.approx(found.wall_seconds, abs=1e-6)
    assert sum(took for _, took in found.segments()) == pytest.approx(found.wall_seconds, abs=1e-5)
    assert all(share.seconds >= 0 for share in found.timeline)
    assert found.wall_seconds >= wall


def test_what_was_not_seen_comes_last_and_is_no_estimate_of_anything():
    found = made.result(made.sampled(2, 3.0, {"compile": 1.0, "device_busy": 2.0}), wall=10.0)
    assert (found.timeline[-1].state, found.timeline[-1].seconds) == (NOT_SEEN, pytest.approx(7.0))
    states, seconds = zip(*found.segments(), strict=True)
    assert states == (NOT_SEEN, "compile", "device_busy", NOT_SEEN)
    assert seconds == pytest.approx((2.0, 1.0, 2.0, 5.0))


def test_a_program_that_runs_lasts_until_its_last_event():
    session = made.session(*made.steady(4, {"device_busy": 1.0}), wall=None)
    found = program_result(session, made.RUN)
    assert (found.wall_seconds, found.ended, found.exit_code) == (4.0, False, None)
    session.apply(made.sampled(4, 1.0, {"waiting": 1.0}))
    again = program_result(session, made.RUN)
    assert (again.wall_seconds, again.share("waiting").seconds, again.share("device_busy").seconds) == (5.0, 1.0, 4.0)


def test_the_stages_of_several_compilations_have_a_spread():
    rows = [made.compiled(compile_seconds=took, lower_seconds=None) for took in (0.2, 0.1, 0.9)]
    (step,) = made.result(*rows, made.compiled(count=40, compile_seconds=4.0)).functions
    assert list(step.spreads()) == ["trace", "compile"], "nothing is known of lowering"
    held("spread.txt", figures_text(step.spreads()["compile"]))
    assert made.result(made.compiled()).functions[0].spreads() == {}


def test_functions_are_told_apart_by_where_they_are_defined_and_count_each_compilation():
    rows = [made.compiled("<lambda>", defined_at=made.at(line, "")) for line in (4, 9, 4)]
    more = made.compiled("<lambda>", "shape", defined_at=made.at(9, ""), count=99)
    found = {one.defined_at.line: one for one in made.result(*rows, more).functions}
    assert (found[4].count, found[9].count, found[9].reason("shape").count) == (2, 100, 99)


def test_a_loop_has_its_rate_and_its_jitter():
    """The one that took most; too few steps have no jitter."""
    steps = made.result(made.steps(500, 0.01), made.steps(500, 0.01), made.steps(10_000, 1e-5, 12)).steps
    assert (steps.where.line, steps.count, steps.per_second) == (85, 1000, pytest.approx(100.0))
    assert (steps.median_seconds, steps.jitter) == pytest.approx((0.01, 0.02))
    assert made.result(made.steps(3, 0.01)).steps.jitter is None


def test_copies_are_added_up_by_direction_source_and_type():
    def copied(count, *more, **fields):
        return made.copies("host_to_device", count, *more, **fields)

    sampled = {"seconds": 0.1, **asdict(made.at(88))}
    found = made.result(
        copied(3, bytes=96, type="f32[8]"), copied(2, type=""), copied(2, bytes=64, type="f32[8]"), copied(9, type=""),
        copied(7, "samples", **sampled), copied(1, "samples", bytes=4, **sampled),
    ).transfers  # fmt: skip
    held("transfers.txt", figures_text(*found))


def test_a_run_that_was_only_planned_is_a_program_in_which_nothing_was_seen():
    session = fold(made.HEADER, made.program(wall=None)[:1])
    found = program_result(session, made.RUN)
    assert session.programs == [session.runs[made.RUN]]
    assert (found.wall_seconds, found.argv, found.functions, found.findings) == (0.0, ("train.py",), (), ())


def test_rows_without_anything_in_them_are_taken_for_nothing():
    found = made.result(
        made.compiled(called_from=e.NOWHERE, signature=[e.SignatureLeaf()]),
        made.sampled(0, 1.0, {"nonsense": 1.0, "compile": 0.5}, [{}]),
        e.TransfersSeen(run=made.RUN, rows=[e.CopiesSeen()]),
        made.copies("sideways", 1),
    )
    assert (found.functions[0].called_from, found.lines) == (None, ())
    assert found.share("compile").seconds == 0.5
