"""`jaxprof export` in each of its formats. `jaxprof export --format pytest-benchmark`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.api.session import Session
from jaxprof.cli.commands.export import NAMES
from jaxprof.events import RunPlanned, RunSpec, SamplesTaken
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


def session(path: Path, *timed: str) -> str:
    """A session of two runs, of which these have samples."""
    made = Session(new_header())
    for number in ("r1", "r2"):
        spec = RunSpec(workload="t.py::test", variant=number, how="jit", device="cpu:0")
        made.apply(RunPlanned(run=number, spec=spec))
        if number in timed:
            made.apply(SamplesTaken(run=number, series="run", seconds=[1.0, 2.0, 3.0], calls_per_sample=4))
    return str(made.save(path))


def test_the_times_of_a_session_are_written(call: Caller, tmp_path: Path) -> None:
    file, out = session(tmp_path / "s.jaxprof", "r2"), tmp_path / "b.json"
    done = call("export", file, "--format", "pytest-benchmark", "-o", str(out))
    assert done.code == 0
    assert "without times, and left out: r1" in done.err
    (benchmark,) = json.loads(out.read_text())["benchmarks"]
    assert benchmark["fullname"] == "t.py::test r2 cpu:0"
    assert (benchmark["stats"]["median"], benchmark["stats"]["iterations"]) == (2.0, 4)
    again = call("export", file, "--format", "pytest-benchmark", "-o", str(out))
    assert again.code != 0
    assert "already exists" in again.err


def test_what_has_no_times_is_refused(call: Caller, tmp_path: Path) -> None:
    file = session(tmp_path / "s.jaxprof", "r1")
    for words, said in (((), ""), (("--run", "r2"), "run r2 has no times"), (("--run", "r9"), "unknown run 'r9'")):
        done = call("export", file, "--format", "pytest-benchmark", *words)
        assert said in done.err
        assert done.code == (2 if said else 0)
    empty = call("export", session(tmp_path / "e.jaxprof"), "--format", "pytest-benchmark")
    assert empty.code == 2
    assert "has times" in empty.err
