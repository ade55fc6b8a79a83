from __future__ import annotations

from pathlib import Path

from cli.calling import Caller
from hlo.test_passes import _write


def test_passes_of_a_dump_as_text_and_as_json(call: Caller, tmp_path: Path) -> None:
    _write(tmp_path, 0, "pipeline-start", "negate")
    _write(tmp_path, 1, "rewriter\x1b[31m", "abs")
    lines = call("hlo", tmp_path, "--passes").out.splitlines()
    assert lines[0] == "module_0001 jit_f: 2 states, 1 differ from the one before"
    assert "-1 negate" in lines[-1]
    assert "\x1b" not in "".join(lines)
    (module,) = call("hlo", tmp_path, "--passes", "--format", "json", "--full").data["modules"]
    first, second = module["passes"]
    assert (first["changed"], second["changed"], second["instructions_after"]) == (None, True, 2)
    assert second["opcodes"] == {"abs": [0, 1], "negate": [1, 0]}
    assert second["computations"] == {
        "same": 0,
        "changed": [{"before": "main", "after": "main"}],
        "new": [],
        "gone": [],
    }


def test_what_is_no_dump_is_refused(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "x.txt").touch()
    assert "the folder of an XLA dump" in call("hlo", tmp_path / "x.txt", "--passes").err
    assert "no passes" in call("hlo", tmp_path, "--passes").err
    _write(tmp_path, 0, "pipeline-start", "negate")
    assert "1 jit_f" in call("hlo", tmp_path, "--passes", "--module", "9").err
