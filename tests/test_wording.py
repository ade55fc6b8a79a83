"""One wording for one thing, in what the user reads: wordings that were given up do not come back."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READ_BY_USERS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(
        path
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".js", ".tcss", ".md") and not path.name.endswith(".min.js")
    ),
]
"""Sources and documents. Code is read whole: a comment in other words than the screen misleads, too."""

GIVEN_UP = {
    r"This capture can be trusted: ": "Capture OK: 14 checks passed",
    r"things were looked at": "checks passed",
    r"\bpa(ys|y|id) off\b": "break-even; is won back",
    r"once-only": "one-time cost",
    r"says nothing of a copy": "No copy happened on this CPU; a GPU or TPU would copy",
    r"[\"'](nothing|gap)[\"'] (if|else)\b": "idle",
    r"[\"']recording \{percent|recording took": "profiler overhead",
    r"[\"'](Leave|Take)[\"']": "Cancel; Apply",
    r"[\"']HLO before\b": "HLO (unoptimised)",
    r"[\"']Own[\"']": "Add function",
    r"[\"']mostly[\"']": "main cost",
    r"[\"']what is there[\"']": "source",
    r"\b(Log of the worker|[Ww]orker log)\b": "Process output",
    r"\bcut off\b": "interrupted; of a file or a text: truncated",
    r"\b(not well|not end well|ends well)\b": "failed; does not fail",
    r"[\"'( ]torn(:|\b[\"'])|if one is torn": "interrupted",
    r"\{[^{}]*:\.\d%\}": "units.percent, as 44 %",
}
"""What was given up, as a regular expression, and what is said instead."""


def uses(pattern, text):
    """The lines of `text` in which `pattern` occurs, with their numbers."""
    if not re.search(pattern, text):
        return []
    return [f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]


@pytest.fixture(scope="module")
def texts():
    return {path.relative_to(ROOT): path.read_text() for path in READ_BY_USERS}


@pytest.mark.parametrize("pattern", GIVEN_UP)
def test_what_was_given_up_is_not_said_again(texts, pattern):
    found = [f"{path}:{use}" for path, text in texts.items() for use in uses(pattern, text)]
    assert not found, f"say {GIVEN_UP[pattern]!r} instead of\n" + "\n".join(found)
