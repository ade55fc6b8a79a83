import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from analysis import made_runs
from folding import changed, fold
from jaxprof import events as e
from jaxprof.base.text import columns
from jaxprof.facts.programs import VIEWS as PROGRAM_VIEWS
from jaxprof.facts.session_tree import to_dict
from jaxprof.report import WIDTH
from jaxprof.report.program import letters, program_view_text, round_parts, summary_lines
from jaxprof.report.program_words import verdict
from jaxprof.report.session_text import to_text
from report import sessions

PARTS = st.lists(st.floats(0, 1e5, allow_nan=False), min_size=1, max_size=10)


@given(PARTS)
def test_rounded_parts_add_up(parts):
    texts, total = round_parts(parts, sum(parts))
    written = [float(text.removesuffix(" s")) for text in texts]
    assert sum(written) == pytest.approx(float(total.removesuffix(" s")), abs=1e-6)
    unit = 10.0 ** -len(total.removesuffix(" s").partition(".")[2])
    assert all(abs(each - part) <= 1.001 * unit for each, part in zip(written, parts, strict=True))


def test_a_bar_is_in_the_order_of_time():
    found = made.result(made.sampled(2, 4.0, {"compile": 4.0}), made.sampled(6, 2.0, {"waiting": 2.0}))
    assert letters(found, 10) == "··CCCCww··"
    assert letters(made.result(wall=0.0), 10) == ""


@pytest.mark.parametrize("view", PROGRAM_VIEWS)
def test_nothing_to_show_is_said(view):
    assert program_view_text(sessions.whole(), view).endswith("that needs jaxprof script")
    nothing = program_view_text(made.session(wall=0.0), view).splitlines()[2:]
    assert nothing[-1].endswith(".")
    assert ("JAX_TRANSFER_GUARD" in " ".join(nothing)) == (view == "transfers")


def asked(*after, warning="", wall=10.0):
    """A program whose recording was asked for `step`: its summary, and its answer. `after` is what measuring gave."""
    inside = [e.WarningRaised(run=made.RUN, code=warning, message="no call of stp was compiled", advice="Try step.")]
    events = made.program(*(inside if warning else []), wall=wall)
    session = fold(made.HEADER, [*changed(events, e.ProgramStarted, options={"function": "step"}), *after])
    return "\n".join(summary_lines(session)), to_dict(session)["program"]["requested_function"]


PLAN = made_runs.planned("r2", workload="train.py:step")


def test_requested_function_in_json_and_summary():
    summary, function = asked(PLAN, e.RunFinished(run="r2", status="failed", error="not measured: TypeError: no"))
    assert "--function step: not measured: TypeError: no" in summary
    assert (function["run"], function["status"]) == ("r2", "failed")
    summary, function = asked(PLAN, e.RunFinished(run="r2", status="ok"))
    assert "step" not in summary
    assert function["status"] == "ok"
    assert asked(wall=None)[1]["status"] == "pending"


@pytest.mark.parametrize("code", ["function_not_called", "function_not_kept", "function_not_measured"])
def test_requested_function_that_was_never_called(code):
    summary, function = asked(warning=code)
    assert "no call of stp was compiled. Try step." in summary
    assert (function["status"], function["run"]) == ("not_measured", None)


def test_conclusion_counts_the_findings_of_explain():
    runs = [made.compiled(f"f{number}", "new_function", compile_seconds=1.0, count=20) for number in range(8)]
    session = fold(made.HEADER, made.program(*runs, wall=20.0))
    assert "more finding" not in "\n".join(summary_lines(session))


def test_kernels_of_a_window_are_one_table():
    session = made.session(made.sampled(0, 5.0, {"host_busy": 5.0}))
    for number, module in enumerate(("jit_init", "jit_step"), start=2):
        row = sessions.kernel_times(f"fusion.{number}", number, 3, module=module, device="cuda:0")
        captured = e.KernelsMeasured(run=f"r{number}", kind="imported", rows=[row])
        session.extend(made_runs.run(f"r{number}", captured, workload=module, how="imported", variant="profile"))
    text = to_text(session)
    table = text[text.index("capture window") :].splitlines()
    assert [row.split()[-2:] for row in table[3:]] == [["fusion.3", "jit_step"], ["fusion.2", "jit_init"]]
    assert "jit_step  ·" not in text
    assert all(columns(line) <= WIDTH for line in table)


@pytest.mark.parametrize(
    ("waited", "said"), [(0.5, ", without the 50 % of its time in which it waited for a processor"), (0.04, "")]
)
def test_waits_for_a_processor_are_mentioned_where_they_are_much(waited, said):
    lines = [
        made.line(88, 1 - waited, "device_busy", "step"),
        made.line(88, waited, "waiting", "step", kind="preempted"),
    ]
    bound = verdict(made.result(*made.steady(10, {"device_busy": 1 - waited, "waiting": waited}, lines)))
    assert bound.startswith("device-bound: ")
    assert bound.endswith(f"of the loop at train.py:85{said}")
