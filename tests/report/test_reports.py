"""An answer in JSON is one line that JSON reads, whatever pieces it is written in, and says what it leaves out."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

import program_events as made
from folding import fold
from golden import held_cases
from jaxprof import events as e
from jaxprof.analysis.kernels.memory import memory_of_dump, memory_of_run
from jaxprof.facts import Fact, recorder
from jaxprof.facts.units import COUNT
from jaxprof.facts.units import ROWS as LIST_OF_ROWS
from jaxprof.findings.program_result import program_result
from jaxprof.hlo.stages import ModuleStages
from jaxprof.report.envelope import ROWS, answer_pieces, json_pieces
from jaxprof.report.memory import fit_words, memory_heading
from jaxprof.report.runs import groups, launches_text, leading_run, verdict_parts
from jaxprof.report.session_text import to_text
from jaxprof.stats.summary import MedianTime
from report import sessions
from tui import session_tapes
from tui.hlo_texts import HLO

NO_ROOM = e.ProgramEnded(
    run=made.RUN, exit_code=1, wall_seconds=9.0, error="RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes."
)
ROOM = e.DeviceReading(device="cuda:0", memory_used_bytes=60 << 30, memory_limit_bytes=80 << 30)


def test_interval_over_launches_that_says_nothing_is_left_out():
    def summary(low, high):
        return MedianTime(median=0.05, low=low, high=high, unit="launch", launches=2)

    known = {"trace": summary(0.0, 1e300), "lower": summary(0.001, 0.9), "compile": summary(1e-9, 80.0)}
    text = launches_text(SimpleNamespace(over_launches=known))
    assert text == "95 % over 2 launches: lower 1.00 ms to 900 ms"
    assert launches_text(SimpleNamespace(over_launches={"trace": summary(0.0, 1e300)})) == ""


@pytest.mark.parametrize(
    ("deserted", "statuses"), [(True, ["ok", "interrupted", "cancelled"]), (False, ["ok", "running", "queued"])]
)
def test_a_session_that_is_being_written_is_not_called_cut_off(deserted, statuses):
    session = sessions.torn()
    assert [run.end(deserted=deserted).status for run in session.runs.values()] == statuses
    session.desert(deserted=deserted)
    assert ("being written" in to_text(session)) is not deserted


@pytest.mark.parametrize(
    ("events", "exit_code", "words"),
    [
        (
            made.arrays([4, 9, 2], 1 << 20),
            0,
            "It fits: the highest seen is 9.00 MiB of arrays, besides what its programs need.",
        ),
        (
            [replace(made.arrays([4])[0], devices={"cuda:0": 3 << 30}), ROOM],
            0,
            "It fits: the highest seen is 3.00 GiB of 80.0 GiB on",
        ),
        (made.arrays([4]), 3, "It fitted until it failed: the highest seen is 4.00 KiB of arrays"),
        ([NO_ROOM], 1, "It did not fit: it ran out of memory: 4.00 KiB were asked for"),
        ([], 0, "It fits."),
        ([], 130, "Whether it fits is unknown, because it was cancelled."),
    ],
)
def test_whether_a_program_fits_is_said_without_a_capture(events, exit_code, words):
    session = made.session(*events, exit_code=exit_code)
    assert fit_words(session, program_result(session, made.RUN)).startswith(words)


@pytest.mark.parametrize(
    ("how", "device", "more", "words"),
    [
        ("jit", "cuda:0", (), "peak memory 30.0 GiB (memory"),
        ("jit", "cuda:0", (ROOM,), "needs 30.0 GiB of 80.0 GiB on the device: peak memory (memory"),
        ("compile", "h100:8", (), "needs 30.0 GiB of 79.1 GiB on the device: peak memory (memory"),
        ("compile", "tpu-v5e", (), "does not fit: needs 30.0 GiB of 16.0 GiB on the device"),
        ("compile", "cpu:0", (), "peak memory 30.0 GiB (memory"),
    ],
)
def test_memory_of_a_run_names_its_devices_memory(how, device, more, words):
    planned = e.RunPlanned(run="r1", spec=e.RunSpec(workload="f", variant="jit", how=how, device=device))
    needed = e.MemoryReported(run="r1", argument_bytes=20 << 30, output_bytes=10 << 30, temporary_bytes=0)
    picture = memory_of_run(fold(e.Header(), [planned, needed, *more]), "r1")
    assert next(memory_heading(picture)).startswith(words)


def test_memory_of_a_dump_names_its_devices_memory():
    for device, words in (("NVIDIA H100 80GB HBM3", "needs 2.50 MiB of 79.1 GiB"), ("", "peak memory 2.50 MiB (est")):
        picture = memory_of_dump(ModuleStages("m", "m", {"hlo": lambda: HLO}, device=device))
        assert next(memory_heading(picture)).startswith(words)


def _streamed(data):
    """The same with iterators in place of lists of objects."""
    if isinstance(data, dict):
        return {key: _streamed(value) for key, value in data.items()}
    if isinstance(data, list) and any(isinstance(one, dict) for one in data):
        return iter([_streamed(one) for one in data])
    return data


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": 1, "b": None, "c": "é\n\"'", "d": {}, "e": []},
        {"a": [{"b": [{"c": 1}, {}]}, {"b": []}], "z": [["x"], ["y"]], "empty": [{}]},
        [{"a": {"b": {"c": [{"d": True}]}}}, {"a": 1.5}],
    ],
)
def test_pieces_add_up_to_what_json_writes(data):
    expected = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    assert "".join(json_pieces(data)) == expected
    assert "".join(json_pieces(_streamed(data))) == expected


def test_json_of_an_iterator_is_lazy():
    asked = []

    def items():
        for number in range(1000):
            asked.append(number)
            yield {"n": number}

    pieces = json_pieces({"items": items(), "none": iter(())})
    text = ""
    while '"n":0' not in text:
        text += next(pieces)
    assert len(asked) < 100
    assert json.loads(text + "".join(pieces)) == {"items": [{"n": number} for number in range(1000)], "none": []}


def test_rows_left_out_are_counted_and_not_recorded():
    read = []
    numbers = Fact(
        "numbers", LIST_OF_ROWS, "", lambda _: iter(range(1000)), inside=(Fact("n", COUNT, "", read.append),)
    )
    text = answer("any", recorder([numbers])(None), 10)
    assert json.loads(text)["truncated"] == {"numbers": 990}
    assert read == [*range(10)]


def test_an_end_that_was_not_well_stands_in_the_heading():
    crashed = e.RunClosed(run="r1", workload="selu", variant="numpy", device="cpu:0", status="crashed")
    whole = fold(sessions.HEADER, [*sessions.numpy_run("r1"), crashed, e.SessionClosed()])
    assert to_text(whole).splitlines()[0].endswith("complete, 1 crashed")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_unknown(number):
    text = "".join(json_pieces({"a": [{"b": number}, [1.5, number]]}))
    assert json.loads(text) == {"a": [{"b": None}, [1.5, None]]}


def answer(kind, data, limit=None):
    text = "".join(answer_pieces(kind, data, ["jaxprof open last"], limit))
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    return text


RUNS = {"runs": [{"parts": [{"n": 1}, {"n": 2}, {"n": 3}], "ci95": [1.0, 2.0]}, {"parts": [{"n": 4}, {"n": 5}]}]}
SAMPLED = {"runs": [{"id": "r1", "samples_seconds": [0.1, 0.2, 0.3], "settings": {"a": 1}}, {"id": "r2"}]}
CHECKS = [{"code": f"c{n}", "verdict": verdict} for n, verdict in enumerate(["good", "doubt", "good", "bad"])]
ANSWERS = {
    "the envelope": answer("any", {"a": 1}),
    "rows inside rows are counted together": answer("any", RUNS, 2),
    "an interval stays whole": answer("any", RUNS, 1),
    "raw samples and settings are left out": answer("session", SAMPLED),
    "of fewer runs": answer("session", SAMPLED, 1),
    "they are there on request": answer("session", SAMPLED, 0),
    "of the checks of a capture the doubtful ones are kept": answer("session", {"runs": [{"trust": CHECKS}]}),
}


def test_what_an_answer_holds_and_what_it_leaves_out():
    held_cases("answers.txt", {case: f"  {text}" for case, text in ANSWERS.items()})


@pytest.mark.parametrize("make", [list, iter])
def test_rows_are_bounded_and_what_is_left_out_is_counted(make):
    rows = [{"n": n} for n in range(ROWS + 7)]
    for limit, most in ((None, ROWS), (3, 3), (0, ROWS + 7)):
        said = json.loads(answer("any", {"rows": make(rows), "few": make(rows[:2])}, limit))
        assert said["data"] == {"rows": rows[:most], "few": rows[:2]}
        assert said["truncated"].get("rows", 0) == len(rows) - most


def test_verdict_of_the_chosen_run():
    def verdicts(tape):
        (group,) = groups(tape.session())
        return [verdict_parts(group, leading_run(group, chosen)) for chosen in group.runs]

    jit, jax = "jit: 6.9× (6.9-7.0) as fast as numpy", "jax: 3.8× (3.7-3.8) as fast as numpy"
    right = [jit, "same result", "pays after 21 calls"]
    assert verdicts(session_tapes.finished()) == [right, [jax, "same result", "pays after 24 calls"], right]

    tape = session_tapes.planned("jit", "slow")
    tape.numpy_run("r1")
    tape.jit_run("r2")
    tape.events.insert(-2, e.CheckReported(run="r2", passed=False, max_relative_error=0.31, tolerance=1e-5))
    tape.jit_run("r3", 9e-3)
    baseline, wrong, slow = verdicts(tape)
    assert wrong == ["jit: wrong result, 3.1e-01"]
    assert slow[1:] == baseline[1:] == ["same result", "never pays"], "fast and wrong is no answer"

    tape = session_tapes.planned("jit")
    tape.numpy_run("r1")
    tape.jit_run("r2", 0.7e-3, count=4, spread=3.0)
    assert verdicts(tape)[1][1:] == ["same result"], "it may never pay"

    tape = session_tapes.planned()
    tape.numpy_run("r1")
    assert verdicts(tape) == [["numpy: 4.36 ms a call ± 0.64 %"]]
    assert verdicts(session_tapes.planned("jit")) == [[], []]
