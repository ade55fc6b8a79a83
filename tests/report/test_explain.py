"""Text that is not cut, JSON that fits a prompt. The three lines at the end of what measures: the largest
cost first, parts that add up, nothing left unsaid."""

import json
import re
import socket
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events
from analysis import made_runs
from folding import fold
from golden import figures_text, held
from jaxprof import events as e
from jaxprof.base.text import columns
from jaxprof.base.units import parts_of, spread
from jaxprof.events.finding import Finding
from jaxprof.findings import Abstention
from jaxprof.findings.derive import explanation
from jaxprof.report import explain, wrap
from jaxprof.report.conclusion import conclusion, conclusion_lines, largest
from jaxprof.report.envelope import json_pieces
from jaxprof.report.program_words import saving
from report import sessions

_LONG = "a sentence that goes on and on, with figures and names, until it is longer than anybody wants to read; " * 4
_VERIFY = "jaxprof script --plain experiments/train_the_model.py --config configs/large.yaml --epochs 3"


def crowded(findings=5, **more):
    """An explanation as long as it can be."""
    finding = Finding(
        _LONG,
        (e.SourceLocation("/home/me/work/experiments/train_the_model.py", 1234),),
        own_fix=_LONG,
        seconds=6.01234567,
        low=5.61234567,
        high=6.41234567,
        share=0.3123456,
        estimate=True,
        verify=_VERIFY,
        run="r1",
        also=("r2", "r3", "r4", "r5", "r6", "r7"),
        directory="/home/me/work",
        code_line="losses.append(float(loss_of_the_step(params, optimizer_state, batch)))  # a long line of code too",
        kernels=("loop_multiply_subtract_fusion.123",) * 5,
        function="train_step",
        compilations=1234,
        code="static_argument_varies",
    )
    unknown = tuple(Abstention(f"no-{number}", _LONG, _VERIFY) for number in range(4))
    base = explanation(sessions.whole(), "s")
    return replace(
        base, findings=tuple(replace(finding, **more) for _ in range(findings)), left_out=3, abstentions=unknown
    )


def test_no_speed_up_is_claimed_of_what_is_inconclusive():
    apart = made_runs.session(
        made_runs.run("r1", variant="numpy", samples=[10.0] * 40),
        made_runs.run("r2", samples=[1.0] * 40, baseline="r1"),
    )
    (line,) = [line for line in explain.answers(explanation(apart, "s")) if line.startswith("r2")]
    assert "inconclusive beside numpy: 10×" in line
    assert "as fast as" not in line


def test_what_was_not_seen_is_said_before_what_costs_most():
    def first_lines(session):
        return list(explain.explanation_lines(explanation(session, "s")))[:2]

    cut = fold(sessions.HEADER, program_events.cut_off_events())
    cut.notice("the last line is truncated; everything before it was read")
    assert [line[:32] for line in first_lines(cut)] == [
        "note: its end was not recorded: ", "note: the last line is truncated",
    ]  # fmt: skip
    whole = fold(sessions.HEADER, program_events.program(*program_events.steady(3, {"device_busy": 1.0})))
    assert not any(line.startswith("note") for line in first_lines(whole))


def test_no_line_of_a_finding_is_cut_nor_wider_than_the_page():
    (found,) = crowded(1).findings
    lines = list(explain.explanation_lines(crowded(1)))
    assert max(map(columns, lines)) <= explain.WIDTH
    assert " ".join(found.code_line.split()) in " ".join(" ".join(lines).split())
    assert "…" not in "".join(lines)


def test_json_fits_a_prompt_however_long_its_sentences_are():
    text = "".join(json_pieces(explain.explanation_json(crowded())))
    assert len(text) < 7_000
    data = json.loads(text)
    assert len(data["findings"]) == 5
    assert data["findings"][0]["cost"]["low_seconds"] == 5.612
    assert data["findings"][0]["evidence"]["place"].endswith("/experiments/train_the_model.py:1234")
    many = replace(crowded(), abstentions=(Abstention("no", "unknown", ""),) * 60)
    assert len(explain.explanation_json(many)["unknown"]) == 60, "what prints it counts what it leaves out"


COSTS = [
    Finding("", scope="program", code=""),
    Finding("", scope="module", bytes=8 << 20, code=""),
    Finding("", scope="program", seconds=6.0, share=0.3, code=""),
    Finding("", scope="call", seconds=6.0, low=5.0, high=7.0, estimate=True, code=""),
    Finding("", scope="call", seconds=6.0, saves_seconds=2.0, estimate=True, code=""),
    Finding("", scope="profile", seconds=6.0, share=0.5, at_most=True, code=""),
]


@pytest.mark.parametrize(("saves", "is_said"), [(2.0, True), (5.9, False), (None, False)])
def test_a_saving_is_claimed_by_all_or_by_none(saves, is_said):
    found = Finding("it took 6.0 s", seconds=6.0, saves_seconds=saves, code="code")
    said = saving(found), explain.cost_text(found)
    assert ["save" in words for words in said] == [is_said] * 2


def test_what_a_cost_is_called():
    held("costs.txt", figures_text(*map(explain.cost_text, COSTS)))


def test_what_was_compiled_and_not_run_says_so():
    run = made_runs.run(hlo=sessions.TRANSPOSES, workload="m.py:step", how="compile", device="h100")
    session = fold(sessions.HEADER, run)
    lines = list(explain.explanation_lines(explanation(session, "s")))
    assert lines[0] == "r1 m.py:step jit h100: compiled, and not run"
    command = "jaxprof hlo m.py:step --variant jit --for h100 --findings"
    assert f"verify: {command}" in lines
    session.content = "0" * 64  # it was read from a file, whatever host that states
    session.header = replace(session.header, host=socket.gethostname())
    of_file = " ".join(" ".join(explain.explanation_lines(explanation(session, "s"))).split())
    assert f"verify: {command}" not in of_file
    assert f"verify with a command from the file: {command}" in of_file


def test_largest_cost_is_named_first():
    times = {"host_busy": 6.5, "compile": 60.0, "import": 20.0, "waiting": 8.0}
    assert largest(times, 97.0) == (
        "compiling 60.0 s (62 %), imports 20.0 s (21 %), waiting 8.0 s (8 %), the rest 9.0 s (9 %) of 97.0 s"
    )
    assert largest({}, 0.2) == "unknown: no sample shows where 200 ms went"
    assert "host" not in largest({"import": 3.2, "host_busy": 0.001}, 3.5), "it would be 0 %"


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8))
def test_what_is_printed_adds_up(parts):
    text = largest({f"state {number}": part for number, part in enumerate(parts)}, sum(parts))
    shares = [int(share) for share in re.findall(r"\((\d+) %\)", text)]
    assert sum(shares) == 100
    times = [float(time) for time in re.findall(r"(\d+(?:\.\d+)?) (?:min|s|ms)\b", text)]
    assert sum(times[:-1]) == pytest.approx(times[-1])


PLANNED = sessions.plan("r1", "jit", "jit")
COMPILED = e.TextRecorded(run="r1", name="hlo", text=sessions.HLO)
COPIED = e.SamplesTaken(run="r1", series="transfer_in", seconds=[1e-4])


@pytest.mark.parametrize(
    ("events", "action"),
    [
        ([], "nothing was measured"),
        ([PLANNED, COPIED, COMPILED], "run it again"),  # interrupted after its compile
        ([sessions.plan("r1", "jit", "compile"), COMPILED], "no finding above"),  # its HLO is all that was wanted of it
        ([PLANNED, *sessions.turns("r1", 1e-3, 0)], "no finding above"),
    ],
)
def test_what_to_do_where_nothing_was_found(events, action):
    found = conclusion(explanation(fold(sessions.HEADER, events), "s"))
    assert found.action.startswith(action)
    assert events or (found.cost, found.certainty) == ("unknown: nothing was measured", "no run was recorded")


def measured(run, variant, how, median, **once):
    ended = [e.PhaseEnded(run=run, phase=phase, seconds=took) for phase, took in once.items()]
    return made_runs.run(run, *ended, variant=variant, how=how, samples=[median] * 10)


@pytest.mark.parametrize(
    ("first_call", "lines"),
    [
        (3.0, ["r2 f jit cpu:0: compiling 500 ms", "op by op, r1 f jax cpu:0: 3.00 s up to the end of the first call"]),
        (0.2, ["r2 f jit cpu:0: compiling 500 ms"]),  # what is deployed takes longer to start
    ],
)
def test_conclusion_is_about_jit_before_op_by_op(first_call, lines):
    op_by_op = measured("r1", "jax", "eager", 8e-3, first_run=first_call)
    jitted = [measured("r2", "jit", "jit", 2e-3, compile=0.5, first_run=0.1)]
    found = conclusion(explanation(made_runs.session(op_by_op, *jitted), "s"))
    assert [line[: len(wanted)] for line, wanted in zip(found.cost.split("\n"), lines, strict=True)] == lines
    shown = [line for line in conclusion_lines(found) if "op by op" in line]
    assert [line.startswith(" " * 13 + "op by op, r1") for line in shown] == [True] * (len(lines) - 1)
    unknown = conclusion(explanation(made_runs.session(measured("r1", "jax", "eager", 3.0), *jitted), "s"))
    assert "op by op" not in unknown.cost, "its first call was not timed"
    alone = conclusion(explanation(made_runs.session(op_by_op), "s"))
    assert alone.cost == "r1 f jax cpu:0: 8.00 ms a call", "where nothing is under jit"


def test_that_nothing_was_measured_stands_once():
    plans = [sessions.plan(run, "jit", "jit") for run in ("r1", "r2", "r3")]
    ends = [
        e.RunClosed(run=run, workload="w", variant="jit", device="cpu:0", status="cancelled") for run in ("r1", "r2")
    ]
    found = conclusion(explanation(fold(sessions.HEADER, [*plans[:2], *ends]), "s"))
    assert (found.cost, found.command) == ("unknown: 2 runs, all cancelled", "jaxprof run --from s")
    found = conclusion(
        explanation(fold(sessions.HEADER, [*plans, *ends, replace(ends[0], run="r3", status="failed")]), "s")
    )
    assert found.cost == "unknown: 3 runs, 2 cancelled, 1 failed"


def test_what_is_still_measured_is_not_to_be_run_again():
    session = fold(sessions.HEADER, [PLANNED, COMPILED])
    session.desert(deserted=False)
    found = conclusion(explanation(session, "s"))
    assert (found.cost, found.command) == ("unknown: 1 run, queued", "")
    assert found.action.startswith("nothing was measured")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_program_cut_at_its_start_has_no_time(count):
    events = program_events.program(program_events.sampled(0.5, 1.0, {"import": 1.0}), wall=None)
    session = fold(program_events.HEADER, events[:count])
    text = "\n".join(explain.explanation_lines(explanation(session, "s")))
    assert ("cut off before anything was measured" in text, "nothing was measured" in text) == (count < 4,) * 2
    assert "0 ns" not in text
    session.desert(deserted=False)
    assert "cut off" not in "\n".join(explain.explanation_lines(explanation(session, "s")))


def test_what_a_session_without_runs_holds_is_said():
    session = fold(sessions.HEADER, [])
    session.notice("events of an unknown type were left out: later_event")
    assert "later_event" in "\n".join(explain.answers(explanation(session, "s")))


def test_parts_have_the_unit_of_the_whole():
    assert parts_of([0.0123, 0.0456], 0.0579) == (["12.3 ms", "45.6 ms"], "57.9 ms")
    assert spread(0.097, 0.010, 0.012) == "± 9.7 %"
    assert spread(1.36, 0.012, 0.096) == "12 ms to 96 ms"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("about 40 % of it", 9, ["about", "40 % of", "it"]),
        ("took 3.2 s, 12 ms", 8, ["took", "3.2 s,", "12 ms"]),
        ("line 3 says 2 steps", 8, ["line 3", "says 2", "steps"]),  # a word is no unit
    ],
)
def test_a_number_is_not_parted_from_its_unit(text, width, lines):
    assert wrap(text, first="", width=width) == lines
