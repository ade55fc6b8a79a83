from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.result import NOT_SEEN

DURATIONS = st.floats(0, 1e4, allow_nan=False)
STRETCHES = st.lists(st.dictionaries(st.sampled_from(e.PROGRAM_STATES), DURATIONS, max_size=9), max_size=12)


class TestTimeLine:
    @given(STRETCHES, DURATIONS)
    def test_it_adds_up_whatever_was_seen(self, stretches, wall):
        events: list[e.Event] = []
        at = 0.0
        for states in stretches:
            events.append(made.sampled(at, took := sum(states.values()), states))
            at += took
        found = made.result(*events, wall=wall)
        assert sum(share.seconds for share in found.timeline) == pytest.approx(found.wall_seconds, abs=1e-6)
        assert sum(took for _, took in found.segments()) == pytest.approx(found.wall_seconds, abs=1e-5)
        assert all(share.seconds >= 0 for share in found.timeline)
        assert found.wall_seconds >= wall

    def test_what_was_not_seen_comes_last_and_is_no_estimate_of_anything(self):
        found = made.result(made.sampled(2, 3.0, {"compile": 1.0, "device_busy": 2.0}), wall=10.0)
        assert found.timeline[-1].state == NOT_SEEN
        assert found.timeline[-1].seconds == pytest.approx(7.0)
        assert list(found.segments()) == [
            (NOT_SEEN, pytest.approx(2.0)),
            ("compile", 1.0),
            ("device_busy", 2.0),
            (NOT_SEEN, pytest.approx(5.0)),
        ]

    def test_a_program_that_runs_lasts_until_its_last_event(self):
        session = made.session(*made.steady(4, {"device_busy": 1.0}), wall=None)
        found = program_result(session, made.RUN)
        assert (found.wall_seconds, found.ended, found.exit_code) == (4.0, False, None)
        session.apply(made.sampled(4, 1.0, {"waiting": 1.0}))
        again = program_result(session, made.RUN)
        assert again.wall_seconds == 5.0
        assert again.share("waiting").seconds == 1.0
        assert again.share("device_busy").seconds == 4.0


class TestFunctions:
    def test_the_stages_of_several_compilations_have_a_spread(self):
        rows = [made.compiled(compile_seconds=took, lower_seconds=None) for took in (0.2, 0.1, 0.9)]
        (step,) = made.result(*rows, made.compiled(count=40, compile_seconds=4.0)).functions
        spreads = step.spreads()
        assert list(spreads) == ["trace", "compile"], "nothing is known of lowering"
        found = spreads["compile"]
        assert (found.count, found.minimum, found.median, found.maximum) == (3, 0.1, 0.2, 0.9)
        assert made.result(made.compiled()).functions[0].spreads() == {}

    def test_functions_of_one_name_are_kept_apart_by_where_they_are_defined(self):
        rows = [made.compiled("<lambda>", defined_at=made.at(line, "")) for line in (4, 9, 4)]
        assert [one.count for one in made.result(*rows).functions] == [2, 1]

    def test_rows_that_were_put_together_count_as_many(self):
        rows = made.compiled(reason_code="shape", count=99, compile_seconds=9.9)
        (step,) = made.result(made.compiled(), rows).functions
        assert (step.count, step.reason("shape").count) == (100, 99)

    def test_a_row_more_changes_its_function_and_no_other(self):
        session = made.session(*made.shaped(3), made.compiled("init"), wall=None)
        before = {one.function: one for one in program_result(session, made.RUN).functions}
        session.apply(made.compiled("step", "dtype", reason="argument x: f32[1,128] → bf16[1,128]"))
        after = {one.function: one for one in program_result(session, made.RUN).functions}
        assert after["init"] is before["init"]
        assert after["step"].count == before["step"].count + 1


class TestParts:
    def test_a_loop_has_its_rate_and_its_jitter(self):
        """The one that took most; too few steps have no jitter."""
        steps = made.result(made.steps(500, 0.01), made.steps(500, 0.01), made.steps(10_000, 1e-5, 12)).steps
        assert (steps.where.line, steps.count, steps.per_second) == (85, 1000, pytest.approx(100.0))
        assert (steps.median_seconds, steps.jitter) == pytest.approx((0.01, 0.02))
        assert made.result(made.steps(3, 0.01)).steps.jitter is None

    def test_copies_are_added_up_by_direction_source_and_type(self):
        found = made.result(
            made.copies("host_to_device", 3, bytes=96, type="f32[8]"), made.copies("host_to_device", 2, type=""),
            made.copies("host_to_device", 2, bytes=64, type="f32[8]"), made.copies("host_to_device", 9, type=""),
            made.copies("host_to_device", 7, "samples", seconds=0.1, **asdict(made.at(88))),
            made.copies("host_to_device", 1, "samples", seconds=0.1, bytes=4, **asdict(made.at(88))),
        )  # fmt: skip
        assert [(one.source, one.type, one.count, one.bytes) for one in found.transfers] == [
            ("guard", "", 11, None),
            ("guard", "f32[8]", 5, 160),
            ("samples", "", 8, None),  # of samples, not of copies
        ]
        assert found.transfers[-1].seconds == pytest.approx(0.2)


class TestOddInput:
    def test_a_run_that_was_only_planned_is_a_program_in_which_nothing_was_seen(self):
        session = fold(made.HEADER, made.program(wall=None)[:1])
        found = program_result(session, made.RUN)
        assert session.programs == [session.runs[made.RUN]]
        assert session.runs[made.RUN].is_program
        assert (found.wall_seconds, found.argv, found.functions, found.findings) == (0.0, ("train.py",), (), ())

    def test_rows_without_anything_in_them_are_taken_for_nothing(self):
        found = made.result(
            made.compiled(called_from=e.NOWHERE, signature=[e.SignatureLeaf()]),
            made.sampled(0, 1.0, {"nonsense": 1.0, "compile": 0.5}, [{}]),
            e.TransfersSeen(run=made.RUN, rows=[e.CopiesSeen()]),
            made.copies("sideways", 1),
        )  # fmt: skip
        assert found.functions[0].called_from is None
        assert found.lines == ()
        assert found.share("compile").seconds == 0.5
