from __future__ import annotations

import re

from cli.calling import SOURCE

DOCS = SOURCE.parent / "docs"


def test_the_tools_that_are_documented_are_those_that_there_are():
    from cli.agent.test_server import READING

    table = re.findall(r"^\| (`.+?) \|", (DOCS / "mcp.md").read_text(), re.MULTILINE)
    assert {name for cell in table for name in re.findall(r"`(\w+)`", cell)} == READING
