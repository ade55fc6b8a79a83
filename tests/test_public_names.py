"""What `import jaxprof` offers: `dir` and `help` show it, each name is documented.

What type checkers see: `tests/typed_program.py`, which mypy checks with the source, and pyright against the wheel.
"""

import inspect
import re
from pathlib import Path

import pytest

import jaxprof
from jaxprof.analysis.runs.run_result import RunResult, Versus
from jaxprof.api.recording import Recording
from jaxprof.engine.protocol import RecordingOptions
from jaxprof.hlo.stages import ModuleStages
from jaxprof.session.run import Run
from jaxprof.stats.comparison import TimeComparison
from jaxprof.stats.summary import Modes, Summary
from jaxprof.testing.calls import CallResult

API = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
NAMES = sorted(set(jaxprof.__all__) - {"__version__"})


def test_a_public_name_is_there_and_says_what_it_is():
    assert [name for name in NAMES if not inspect.getdoc(getattr(jaxprof, name))] == []
    assert dir(jaxprof) == sorted(jaxprof.__all__)
    with pytest.raises(AttributeError, match="no attribute 'proflie'"):
        _ = jaxprof.proflie


def section(name):
    """What docs/api.md says under the heading of that name, up to the next one."""
    found = re.search(rf"^#+ `?(?:jaxprof\.)?{re.escape(name)}`?\n(.*?)(?=^#|\Z)", API, re.MULTILINE | re.DOTALL)
    assert found, f"docs/api.md has no section {name}"
    return found[1]


def names_in(text):
    """Every word in `code`, but what is called of something else."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"(?<![.\w])\w+", code)}


def test_a_public_name_is_documented():
    for name in NAMES:
        if isinstance(getattr(jaxprof, name), type) and issubclass(getattr(jaxprof, name), Exception):
            assert f"| `{name}` |" in section("Errors")
        else:
            assert section(name)


@pytest.mark.parametrize("name", ["profile", "record", "load", "load_hlo", "workload"])
def test_arguments_and_errors_of_functions_are_documented(name):
    function = getattr(jaxprof, name)
    said = names_in(section(name))
    arguments = {argument for argument in inspect.signature(function).parameters if argument not in ("function", "fn")}
    raised = set(re.findall(r"\b\w+Error\b", inspect.getdoc(function) or ""))
    assert (arguments | raised) - said == set()


@pytest.mark.parametrize(
    ("title", "values"),
    [
        ("Session", [jaxprof.Session()]),
        ("Recording", [Recording(Path("x.jaxprof"), None, "record", RecordingOptions())]),
        ("load_hlo", [ModuleStages]),
        ("Errors", [jaxprof.JaxprofError("what")]),
        ("The figures of a run", [RunResult, Summary, Versus, TimeComparison, Modes]),
        ("A run", [Run]),
        ("In tests", [CallResult]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_is_documented(title, values):
    members = {name for value in values for name in dir(value) if not name.startswith("_")}
    assert members - names_in(section(title)) - set(dir(Exception)) == set()
