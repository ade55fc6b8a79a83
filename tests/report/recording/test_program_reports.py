from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from folding import fold
from jaxprof import events as e
from jaxprof.facts.programs import VIEWS as PROGRAM_VIEWS
from jaxprof.report.json import to_dict
from jaxprof.report.recording.tables import letters, rounded
from jaxprof.report.recording.text import program_view_text, summary_lines
from jaxprof.report.text import WIDTH, to_text
from jaxprof.session import Session
from jaxprof.text import columns
from report import sessions

PARTS = st.lists(st.floats(0, 1e5, allow_nan=False), min_size=1, max_size=10)


@given(PARTS)
def test_what_is_written_adds_up_and_is_moved_by_no_more_than_one_unit(parts):
    texts, total = rounded(parts, sum(parts))
    written = [float(text.removesuffix(" s")) for text in texts]
    assert sum(written) == pytest.approx(float(total.removesuffix(" s")), abs=1e-6)
    unit = 10.0 ** -len(total.removesuffix(" s").partition(".")[2])
    assert all(abs(each - part) <= 1.001 * unit for each, part in zip(written, parts, strict=True))


class TestBar:
    def test_it_is_in_the_order_of_time(self):
        found = made.result(made.sampled(2, 4.0, {"compile": 4.0}), made.sampled(6, 2.0, {"waiting": 2.0}))
        assert letters(found, 10) == "··CCCCww··"
        assert letters(made.result(wall=0.0), 10) == ""


class TestText:
    @pytest.mark.parametrize("view", PROGRAM_VIEWS)
    def test_nothing_to_show_is_said(self, view):
        assert program_view_text(sessions.whole(), view).endswith("that needs jaxprof script")
        _, _, nothing, *more = program_view_text(made.session(wall=0.0), view).splitlines()
        assert nothing.endswith(".")
        assert "--transfers" in " ".join(more) if view == "transfers" else not more


class TestSummary:
    @pytest.mark.parametrize("session", [made.training(), made.without_jax(), made.cut_off()])
    def test_its_lines_fit(self, session):
        assert max(map(columns, summary_lines(session))) <= WIDTH


def asked(*after: e.Event, warning: str = "", wall: float | None = 10.0) -> Session:
    """A program whose recording was asked for `step`; `after` is what its measuring gave."""
    inside = [e.WarningRaised(run=made.RUN, code=warning, message="no call of stp was compiled", advice="Try step.")]
    events = made.program(*(inside if warning else []), wall=wall)
    started = next(event for event in events if isinstance(event, e.ProgramStarted))
    events[events.index(started)] = replace(started, options={"function": "step"})
    return fold(made.HEADER, [*events, *after])


class TestAskedFunction:
    PLAN = e.RunPlanned(run="r2", spec=e.RunSpec(workload="train.py:step", variant="jit", how="jit", device="host"))

    def test_a_failed_one_stands_in_the_summary_and_in_the_json(self):
        session = asked(self.PLAN, e.RunFinished(run="r2", status="failed", error="not measured: TypeError: no"))
        assert any("--function step: not measured: TypeError: no" in line for line in summary_lines(session))
        function = to_dict(session)["program"]["function"]
        assert (function["run"], function["status"]) == ("r2", "failed")
        measured = asked(self.PLAN, e.RunFinished(run="r2", status="ok"))
        assert not any("step" in line for line in summary_lines(measured))
        assert to_dict(measured)["program"]["function"]["status"] == "ok"
        assert to_dict(asked(wall=None))["program"]["function"]["status"] == "pending"

    @pytest.mark.parametrize("code", ["function_not_called", "function_not_kept", "function_not_measured"])
    def test_one_that_was_never_called_is_told_with_what_to_do(self, code):
        session = asked(warning=code)
        assert any("no call of stp was compiled. Try step." in line for line in summary_lines(session))
        function = to_dict(session)["program"]["function"]
        assert (function["status"], function["run"]) == ("not_measured", None)


def test_the_kernels_of_a_capture_window_are_one_table_and_no_empty_groups():
    session = made.session(made.sampled(0, 5.0, {"host_busy": 5.0}))
    for number, module in enumerate(("jit_init", "jit_step"), start=2):
        run = f"r{number}"
        row = e.KernelTimes(
            module=module, name=f"fusion.{number}", device="cuda:0", count=3, self_seconds=number, total_seconds=number
        )
        session.extend(
            [
                e.RunPlanned(
                    run=run, spec=e.RunSpec(workload=module, variant="profile", how="imported", device="cuda:0")
                ),
                e.KernelsMeasured(run=run, kind="imported", rows=[row]),
                e.RunFinished(run=run, status="ok"),
            ]
        )
    text = to_text(session)
    table = text[text.index("capture window") :].splitlines()
    assert [row.split()[-2:] for row in table[3:]] == [["fusion.3", "jit_step"], ["fusion.2", "jit_init"]]
    assert "jit_step  ·" not in text
    assert all(columns(line) <= WIDTH for line in table)
