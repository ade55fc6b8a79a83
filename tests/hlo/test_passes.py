"""What passes changed: in a dump that XLA makes here, and in folders that are odd."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.errors import HloError
from jaxprof.hlo.passes import AFTER, BEFORE, modules_with_passes, passes

PROGRAM = """
import jax, jax.numpy as jnp
jax.jit(lambda x: jnp.tanh(x) * 2 + 1 - 1).lower(jax.ShapeDtypeStruct((8, 16), jnp.float32)).compile()
"""

STATE = """HloModule m

ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
{more}  ROOT %out = f32[8]{{0}} {opcode}(%x)
}}
"""


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, timeout=120)
    return folder


def _write(folder: Path, number: int, done: str, opcode: str, more: str = "") -> None:
    name = f"module_0001.jit_f.{number:04d}.simplification.after_{done}.before_next.txt"
    (folder / name).write_text(STATE.format(opcode=opcode, more=more))


@pytest.mark.process
def test_a_real_dump_tells_what_simplification_and_fusion_did(dump):
    ((module, name, states),) = modules_with_passes(dump)
    assert name.startswith("jit__lambda")
    (found,) = passes(dump, module)
    assert (found.module, len(found.passes)) == (module, states)
    assert [found.passes[0].name, found.passes[-1].name] == [BEFORE, AFTER]
    assert not found.passes[0].changed
    simplified = [change for change in found.passes if change.changed and "algsimp" in change.name]
    assert simplified
    removed = {name for change in simplified for name, by in change.opcode_changes.items() if by < 0}
    assert "subtract" in removed
    assert any(change.opcode_changes.get("fusion", 0) > 0 for change in found.passes)
    # Nothing falls between two states: the changes lead from the first one to the last.
    counted = dict(found.passes[0].opcodes_after)
    for change in found.passes[1:]:
        for opcode, by in change.opcode_changes.items():
            counted[opcode] = counted.get(opcode, 0) + by
    assert {opcode: count for opcode, count in counted.items() if count} == found.passes[-1].opcodes_after


def test_a_file_that_cannot_be_read_is_told_and_passed_over(tmp_path):
    _write(tmp_path, 0, "pipeline-start", "negate")
    _write(tmp_path, 1, "broken", "negate")
    _write(tmp_path, 2, "rewriter", "abs")
    next(tmp_path.glob("*broken*")).write_bytes(b"")
    (found,) = passes(tmp_path)
    assert [bool(change.problem) for change in found.passes] == [False, True, False]
    assert found.passes[2].opcode_changes == {"abs": 1, "negate": -1}


def test_the_first_ten_thousand_passes_come_in_order(tmp_path):
    for number in (10_000, 9_999, 2):
        _write(tmp_path, number, "algsimp", "negate")
    (found,) = passes(tmp_path)
    assert [change.number for change in found.passes] == [2, 9_999, 10_000]


@pytest.mark.parametrize("name", ["", "module_0001.jit_f.before_optimizations.txt", "notes.txt"])
def test_a_folder_without_passes_is_refused_with_the_flag_that_makes_some(tmp_path, name):
    if name:
        (tmp_path / name).write_text(STATE.format(opcode="negate", more=""))
    with pytest.raises(HloError) as error:
        passes(tmp_path)
    assert "xla_dump_hlo_pass_re" in error.value.hint
    with pytest.raises(HloError):
        passes(tmp_path / "nowhere")
