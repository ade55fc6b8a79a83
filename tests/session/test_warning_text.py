"""The sentences for warnings of the engine and the recorder, which send codes and values."""

import re
from pathlib import Path

import pytest

import program_events as made
from jaxprof import engine, recorder
from jaxprof import events as e
from jaxprof.session.fold import with_text

SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for package in (engine, recorder)
    for path in Path(package.__path__[0]).rglob("*.py")
)
CODES = set(re.findall(r"""(?:WarningRaised\([^)]*code=|\.warn\(\s*)"(\w+)\"""", SOURCES)) | {"not_recorded"}


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_warning_has_a_sentence(code):
    """Also if its values are missing, or of another kind."""
    assert with_text(e.WarningRaised(code=code)).message
    hostile = dict.fromkeys(("count", "before_flops", "first_seconds", "used", "directions", "split"), "{x} 1e9")
    assert with_text(e.WarningRaised(code=code, values=hostile)).message


def test_engine_and_recorder_write_no_sentence():
    assert len(CODES) >= 20
    assert not re.search(r"WarningRaised\([^)]*\b(?:message|advice)=", SOURCES)


SPLIT = {"used": 8, "devices": 8, "mesh": "data=8", "split": "x over data", "others": 0, "example": "w=data"}


@pytest.mark.parametrize(
    ("code", "values", "message", "advice"),
    [
        ("ledger_problem", {"error": "ValueError: {x}"}, "ValueError: {x}", "the program is not affected"),
        ("ledger_folded", {"most": 2000}, "more than 2000 compilations", "Start with"),
        ("function_not_called", {"function": "step", "functions": "loss, init"}, "no call of step", "loss, init."),
        ("function_not_called", {"function": "step", "functions": ""}, "no call of step", "Nothing was compiled."),
        ("steps_not_counted", {"cause": "old_python"}, "are not timed, because that needs Python 3.12", ""),
        ("steps_not_counted", {"cause": "of a newer version"}, "steps are not counted", ""),
        ("folded_constants", {"before_flops": 2e9, "after_flops": 0.0}, "given 2e+09 FLOPs and left 0: ", "Pass"),
        ("compiled_again", {"count": 1, "cause": "steady_run", "functions": "f"}, "1 unexpected compilation du", "new"),
        ("zero_copy", {"directions": "in and out"}, "the transfer in and out copied nothing", "No copy happened"),
        ("zero_copy", {}, "a call moved no data", "no bandwidth"),
        ("compile_cached", {"cause": "persistent_cache"}, "came from the persistent compilation cache: ", "fresh"),
        ("max_seconds_reached", {"limit_seconds": 60.0, "phase": "run"}, "cap of 60.0 s in phase run: ", "--max-sec"),
        ("max_seconds_reached", {"limit_seconds": 60.0, "phase": ""}, "cap of 60.0 s: later", "--max-seconds"),
        ("over_budget", {"first_seconds": 3.0, "budget_seconds": 2.0}, "took 3.00 s, more than the budget of 2", "--b"),
        ("sharding", SPLIT, "over 8 devices, mesh data=8: x over data", "--shard w=data."),
        ("sharding", {**SPLIT, "used": 4}, "over 4 of 8 devices, ", ""),
        ("sharding", {**SPLIT, "others": 1}, "; 1 other input has no sharding", ""),
        ("sharding", {**SPLIT, "others": 2}, "; 2 other inputs have no sharding", ""),
        ("sharding", {**SPLIT, "split": "", "others": 2}, "mesh data=8: no input is split", ""),
    ],
)
def test_a_session_has_the_sentence_with_its_values(code, values, message, advice):
    session = made.session(e.WarningRaised(run=made.RUN, code=code, values=values))
    (warning,) = session.runs[made.RUN].warnings
    assert message in warning.message
    assert advice in warning.advice


def test_a_sharding_that_was_requested_needs_no_advice():
    assert with_text(e.WarningRaised(code="sharding", values={**SPLIT, "example": ""})).advice == ""


def test_a_sentence_that_was_sent_stays():
    assert with_text(e.WarningRaised(code="ledger_folded", message="as it was")).message == "as it was"
