"""`jaxprof export` in each of its formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.api.session import Session
from jaxprof.cli.commands.export import NAMES
from jaxprof.exports.formats import FORMATS
from jaxprof.session.log import new_header
from report import sessions


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session with captures, on disk."""
    made = Session(new_header())
    for event in [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), *sessions.captures("r2")]:
        made.apply(event)
    return Path(made.save(tmp_path / "s.jaxprof"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("perfetto", "parquet")])
def test_each_is_written_and_not_replaced_without_force(call: Caller, file: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / f"x{FORMATS[name].suffix}"
    done = call("export", file, "--format", name, "-o", out)
    assert (done.code, done.out) == (0, "")
    content = out.read_bytes()
    assert content
    assert call("export", file, "--format", name, "-o", out).code != 0
    assert call("export", file, "--format", name, "-o", out, "--force").code == 0
    assert out.read_bytes() == content


def test_gz_compresses_what_is_not_compressed_by_itself(call: Caller, file: Path, tmp_path: Path) -> None:
    assert call("export", file, "--format", "speedscope", "-o", tmp_path / "s.json.gz").code == 0
    assert json.loads(gzip.decompress((tmp_path / "s.json.gz").read_bytes()))["profiles"]
    assert call("export", file, "--format", "pprof", "-o", tmp_path / "p.pb.gz").code == 0
    assert not gzip.decompress((tmp_path / "p.pb.gz").read_bytes()).startswith(b"\x1f\x8b")


def test_what_a_run_lacks_is_said_with_the_runs_that_have_it(call: Caller, file: Path, tmp_path: Path) -> None:
    none = call("export", file)
    assert none.code == 2
    assert "has a timeline" in none.err
    assert "Name a file: -o run.pb.gz" in call("export", file, "--format", "pprof").err
    out = ("-o", tmp_path / "x.pb.gz")
    other = call("export", file, "--format", "pprof", "--run", "r1", *out)
    assert other.code == 2
    assert "r2 (selu jit cpu:0)" in other.err
    assert "unknown run 'r9'" in call("export", file, "--format", "pprof", "--run", "r9", *out).err
    assert "no run" not in call("export", file, "--format", "speedscope").err


def test_the_tables_of_a_session_are_files_of_parquet(call: Caller, file: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "tables"
    assert call("export", file, "--format", "parquet", "-o", folder).code == 0
    runs = parquet.read_table(folder / "runs.parquet").to_pylist()
    assert [run["run"] for run in runs] == ["r1", "r2"]
    kernels = parquet.read_table(folder / "kernels.parquet").to_pylist()
    measured = {kernel["name"]: kernel["self_seconds"] for kernel in kernels}
    assert measured["fusion"] == pytest.approx(4e-3)
    assert len(parquet.read_table(folder / "samples.parquet")) > 0
    assert not (folder / "compiles.parquet").exists(), "a table without rows is left out"
    again = call("export", file, "--format", "parquet", "-o", folder)
    assert again.code != 0
    assert "already exists" in again.err
    assert call("export", file, "--format", "parquet", "-o", folder, "--force").code == 0
    assert call("export", file, "--format", "parquet").code == 2
    assert call("export", file, "--format", "parquet", "--run", "r2", "-o", folder).code == 2
