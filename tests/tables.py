"""Tables of cases, written as they are read."""

import re


def rows(text: str) -> list[list[str]]:
    """The rows of a table. Columns stand two spaces or more apart; `-` is an empty one; `# ` begins a comment."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        ["" if column == "-" else column for column in re.split(" {2,}", line)]
        for line in lines
        if line and not line.startswith("# ")
    ]
