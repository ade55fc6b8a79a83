"""The sentences for warnings of the recorder, which sends codes and values."""

import re
from pathlib import Path

import pytest

import program_events as made
from jaxprof import events as e
from jaxprof import recorder
from jaxprof.session.warning_text import with_text

SOURCES = "".join(path.read_text(encoding="utf-8") for path in Path(recorder.__path__[0]).rglob("*.py"))
CODES = set(re.findall(r"""WarningRaised\([^)]*code="(\w+)\"""", SOURCES)) | {"not_recorded"}


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_warning_of_the_recorder_has_a_sentence(code):
    assert with_text(e.WarningRaised(code=code)).message


def test_the_recorder_writes_no_sentence():
    assert len(CODES) >= 10
    assert not re.search(r"\b(?:message|advice)=", SOURCES)


@pytest.mark.parametrize(
    ("code", "values", "message", "advice"),
    [
        ("ledger_problem", {"error": "ValueError: {x}"}, "ValueError: {x}", "the program is not affected"),
        ("ledger_folded", {"most": 2000}, "more than 2000 compilations", "Start with"),
        ("function_not_called", {"function": "step", "functions": "loss, init"}, "no call of step", "loss, init."),
        ("function_not_called", {"function": "step", "functions": ""}, "no call of step", "Nothing was compiled."),
        ("steps_not_counted", {"cause": "old_python"}, "are not timed, because that needs Python 3.12", ""),
        ("steps_not_counted", {"cause": "of a newer version"}, "steps are not counted", ""),
    ],
)
def test_a_session_has_the_sentence_with_its_values(code, values, message, advice):
    session = made.session(e.WarningRaised(run=made.RUN, code=code, values=values))
    (warning,) = session.runs[made.RUN].warnings
    assert message in warning.message
    assert advice in warning.advice


def test_a_sentence_that_was_sent_stays():
    assert with_text(e.WarningRaised(code="ledger_folded", message="as it was")).message == "as it was"
