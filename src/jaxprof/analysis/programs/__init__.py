"""The analysis of a recorded program: its time line, its ledger by function, and its findings."""

DEVICE, DISPATCH, DATA, HOST, COPY, COMPILE = "device", "dispatch", "data", "host", "copy", "compile"
PARTS = (DEVICE, DISPATCH, DATA, HOST, COPY, COMPILE)
"""Parts of a loop's time. The kind of a verdict is one of these words and `-bound`, or one of the next two."""
WAIT_BOUND = "wait-bound"
"""The host's part is the largest, and the thread was blocked for most of it."""


def part_key(part: str) -> str:
    """Return the name of a part for use in keys, before the unit."""
    return "recompile" if part == COMPILE else part
