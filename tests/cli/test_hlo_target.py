"""`jaxprof hlo PATH` for everything that HLO can lie in."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from hlo_sources import DUMPED, TEXT, WRONG
from jaxprof.cli.output import ExitCode


@pytest.mark.process
@pytest.mark.parametrize("name", WRONG)
def test_what_holds_no_hlo_is_refused(name: str, call: Caller, tmp_path: Path) -> None:
    make, said = WRONG[name]
    found = call("hlo", make(tmp_path))
    assert (found.code, found.out) == (ExitCode.USAGE, "")
    assert said in found.err


def test_a_file_of_a_folder_that_cannot_be_read_is_told_and_the_others_are_shown(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(TEXT)
    (tmp_path / "b.hlo").write_text("nothing that is HLO")
    said = call("hlo", tmp_path, "--kernels")
    assert (said.code, "exp" in said.out) == (ExitCode.OK, True)
    assert f"left out: {tmp_path / 'b.hlo'}: this is not HLO" in said.err
    (tmp_path / "a.hlo").unlink()
    assert "this is not HLO" in call("hlo", tmp_path).err


def test_of_several_modules_one_is_chosen_by_its_number(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(TEXT + "\n" + TEXT.replace("jit_g", "jit_h"))
    (tmp_path / f"{DUMPED}.cpu_after_optimizations.txt").write_text(TEXT.replace("jit_g", "jit_i"))
    names = [
        call("hlo", tmp_path, "--module", n, "--format", "json").data["programs"][0]["module"] for n in ("1", "2", "3")
    ]
    assert names == ["jit_g", "jit_h", "jit_i"]
    assert call("hlo", tmp_path / "a.hlo", "--module", "2").out.startswith("HloModule jit_h")
    assert "takes 1 to 3" in call("hlo", tmp_path, "--module", "4").err
