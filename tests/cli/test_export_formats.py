"""`jaxprof export` in each of its formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from jaxprof.api.session import Session
from jaxprof.cli.commands.export import NAMES
from jaxprof.events import Event
from jaxprof.exports.formats import FORMATS
from jaxprof.session.log import new_header
from report import sessions


def _saved(path: Path, events: list[Event]) -> Path:
    made = Session(new_header())
    made.extend(events)
    return Path(made.save(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session with captures, on disk."""
    runs = [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), *sessions.captures("r2")]
    return _saved(tmp_path / "s.jaxprof", runs)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("perfetto", "parquet")])
def test_each_is_written_and_not_replaced_without_force(call, file, tmp_path, name):
    out = tmp_path / f"x{FORMATS[name].suffix}"
    done = call("export", file, "--format", name, "-o", out)
    assert (done.code, done.out) == (0, "")
    content = out.read_bytes()
    assert content
    assert call("export", file, "--format", name, "-o", out).code != 0
    assert call("export", file, "--format", name, "-o", out, "--force").code == 0
    assert out.read_bytes() == content


def test_gz_compresses_what_is_not_compressed_by_itself(call, file, tmp_path):
    assert call("export", file, "--format", "speedscope", "-o", tmp_path / "s.json.gz").code == 0
    assert json.loads(gzip.decompress((tmp_path / "s.json.gz").read_bytes()))["profiles"]
    assert call("export", file, "--format", "pprof", "-o", tmp_path / "p.pb.gz").code == 0
    assert not gzip.decompress((tmp_path / "p.pb.gz").read_bytes()).startswith(b"\x1f\x8b")


def test_the_tables_of_a_session_are_files_of_parquet(call, file, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "tables"
    words = ("export", file, "--format", "parquet", "-o", folder)
    assert call(*words).code == 0
    assert [run["run"] for run in parquet.read_table(folder / "runs.parquet").to_pylist()] == ["r1", "r2"]
    assert not (folder / "compiles.parquet").exists(), "a table without rows is left out"
    assert call(*words).code == 2
    assert call(*words, "--force").code == 0
    assert call(*words, "--run", "r2").code == call("export", file, "--format", "parquet").code == 2


def test_of_a_session_without_times_that_is_said(call, tmp_path):
    file = _saved(tmp_path / "s.jaxprof", [*sessions.numpy_run("r1"), sessions.plan("r2", "jit", "jit")])
    for words, said in ((("--run", "r2"), "run r2 has no times"), ((), "without times, and left out: r2")):
        done = call("export", file, "--format", "pytest-benchmark", *words)
        assert (done.code, said in done.err) == (0 if not words else 2, True), done.err
