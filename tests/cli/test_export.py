"""`jaxprof export --format pytest-benchmark`."""

from __future__ import annotations

import json
from pathlib import Path

from cli.calling import Caller
from jaxprof.api.session import Session
from jaxprof.events import RunPlanned, RunSpec, SamplesTaken
from jaxprof.session.log import new_header


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
