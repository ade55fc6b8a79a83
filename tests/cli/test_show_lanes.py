"""`jaxprof open FILE --lanes --from TIME --to TIME`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from folding import written
from tui import profiles


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """Steps of 2 ms: 0.9 ms of a matmul and 0.5 ms of a fusion on one stream, a copy on another."""
    tape = profiles.captured()
    path = tmp_path / "captured.jaxprof"
    written(path, tape.events, tape.session().header)
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lanes", "--from", "9s"), "nothing was recorded in this range"),
        (("--lanes", "--from", "2ms", "--to", "1ms"), "before it begins"),
        (("--lanes", "--to", "soon"), "is not a time"),
        (("--steps", "--to", "1ms"), "has no effect without --lanes"),
        (("--lanes", "--format", "markdown"), "--lanes has no markdown form"),
    ],
)
def test_what_cannot_be_is_refused(call: Caller, captured: Path, words: tuple[str, ...], message: str) -> None:
    said = call("show", captured, *words)
    assert said.code == 2
    assert message in said.err
