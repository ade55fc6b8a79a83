"""Words that do not fit are refused with what to do instead, and nothing is run, written or ignored."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import program_events
from folding import written
from golden import held_cases
from jaxprof.cli.output import ExitCode
from job_folders import job, loop
from report import sessions
from tui import profiles

WORDS = """
hlo selu --run r1
hlo selu:jit --variant jax
hlo selu --kernels --findings
hlo selu --force
hlo KEPT --for h100
hlo KEPT --out x
hlo KEPT --module 1
hlo dump --run r1
show KEPT --run r9
show KEPT --host h
show KEPT --limit 3
show KEPT --limit 3 --full --format json
open dump/module.txt --follow
open KEPT --browser --kernels
open KEPT --port 80
open localhost:99 --seconds 1 --steps
open localhost:9999
open KEPT --force
export KEPT
export CAPTURED --format pprof
export KEPT --format pprof --run r1 -o x.pb.gz
export KEPT --format pprof --run r9 -o x.pb.gz
show JOB --kernels
export JOB
hlo JOB
gate JOB --fail-on kernels
serve JOB
import JOB
run --from JOB
compare JOB JOB
compare JOB JOB/process-00000.jaxprof
compare JOB JOB --for h100
hlo MISSING
config completion
devices target install
open localhost:99 --seconds 11m
hlo MISSING:step
open MISSING
show MISSING --kernels
export MISSING
import MISSING
query MISSING 'SELECT 1'
run MISSING.py:step
run MISSING.py
run --from MISSING:r1
workloads MISSING.py
sessions rename MISSING other
sessions scrub MISSING
sessions delete MISSING --yes
run selu --out s3://key:hunter22@bucket/run.jaxprof
ab a.py:f b.py:f --out s3://key:hunter22@bucket/run.jaxprof
hlo selu --out s3://key:hunter22@bucket/run.jaxprof
export last --out s3://key:hunter22@bucket/run.jaxprof
import x.xplane.pb --out s3://key:hunter22@bucket/run.jaxprof
attach localhost:9 --out s3://key:hunter22@bucket/run.jaxprof
query x --out s3://key:hunter22@bucket/run.jaxprof
sessions --format json list
show dump/x.txt
show dump/notes.md
show CAPTURED --lanes --from 9s
show CAPTURED --lanes --from 2ms --to 1ms
show CAPTURED --lanes --to soon
show CAPTURED --steps --to 1ms
show CAPTURED --lanes --format markdown
compare KEPT last --capture
compare --over-time selu --git HEAD
compare selu KEPT
compare KEPT:r1 KEPT
compare KEPT:r1 KEPT:r9
ab
ab sides.py:step
ab sides.py:step --env-b 7
ab sides.py:step --git HEAD
ab sides.py:step sides.py:same --git HEAD
ab selu --set-b m=3
run --device cpu:0
run --describe selu --budget 1
run selu --no-capture --keep-trace
run selu --sweep n=1,2 --set n=3
run sleu
run selu --variant jot
run selu --devic cpu:0
run selu --set n
run selu --set n=0
run selu --device what?
run selu --budget 0
run selu --sweep n=9..1
run selu --arg f32[3]
run selu --python /nowhere/python
run grad-nested --out dump/module.txt
run --from KEPT selu
run --from KEPT --device cpu:0 --device cpu:1
script --values x.py
script --keep-trace x.py
script -n 3 --capture-ranks 0,3 --capture-steps 5 train.py
script -n 3 --capture-ranks worst --capture-steps 5 train.py
script -n 3 --capture-ranks 0 train.py
script --capture-ranks 0 --capture-steps 5 train.py
script --out nonsense://x/run.jaxprof train.py
script --out smb://host/run.jaxprof train.py
script --out https://host/run.jaxprof train.py
script --out 's3://bucket/run.jaxprof?token=s3cr3tvalue' train.py
hlo selu --for mi300x:8
hlo selu --autotune-results dump/module.txt
hlo selu --for h100:8 --mesh data
hlo selu --for h100:8 --shard data
hlo selu --for h100:4 --mesh data=4,model=2
hlo KEPT --run r1
hlo KEPT --stage stablehlo
hlo dump/module.txt --top 1
hlo dump/module.txt --short --kernels
hlo dump/module.txt --diff dump/module.txt --format csv
hlo dump/module.txt --diff none.hlo
explain --code nonsense
explain --code host-sync last
explain --full --format json
explain PROGRAM --try --code host_sync
explain PROGRAM --try --code recompile_in_loop
explain PROGRAM --budget 5
gate sides.py:step --fail-on run
gate sides.py:step --fail-on run:5% --for h100
gate sides.py:step --fail-on kernels --launches 3
gate sides.py:step --fail-on run:5% --base selu:jax --variant jit
gate KEPT --base KEPT --accept x --fail-on flops
gate KEPT --base KEPT --accept ' ' --fail-on flops
gate baseline save a/b KEPT
gate baseline save selu KEPT
gate baseline save last KEPT
gate baseline save x KEPT selu
gate baseline save x KEPT KEPT
gate baseline show mian
config set -- preset slow
config set -- them x
config set -- keys.results.compar x
config set -- fail_on ''
query
query last
query 'SELECT 1'
query --all last 'SELECT 1'
query last 'SELECT 1' -o x
query last 'SELECT 1' --format csv --limit 3
query --schema runz
query --schema --format csv
trian.py
dump/notes.md
shwo
"""
"""A command a line; what is said of each is kept in `tests/net/usage.txt`."""


@pytest.fixture
def here(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A folder with a dump and programs, which is the current one; the sessions of which the words above speak."""
    folder = tmp_path / "here"
    for inside, text in {
        "dump/module.txt": sessions.HLO,
        "dump/m.after_optimizations.txt": sessions.HLO,
        "dump/x.txt": "",
        "dump/notes.md": "nothing of ours",
        "sides.py": "def step(x):\n    return x\n\ndef step_inputs():\n    return (1.0,)\n",
        "train.py": "open('started', 'w')",
    }.items():
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).write_text(text)
    monkeypatch.chdir(folder)
    tape = profiles.captured()
    again = [program_events.compiled("step", "new_function", compile_seconds=0.1) for _ in range(30)]
    program = program_events.program(*again, wall=10.0)
    return {
        "KEPT": kept,
        "CAPTURED": written(tmp_path / "captured.jaxprof", tape.events, tape.header),
        "PROGRAM": written(tmp_path / "program.jaxprof", program, program_events.HEADER),
        "JOB": job(tmp_path / "run.jaxprof.d", loop(), loop()),
        "MISSING": folder / "trian",
    }


@pytest.mark.process  # the first temporary folder of a process starts its reaper
def test_words_that_do_not_fit(call, here, tmp_path, state_home):
    def there() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    before, cases = there(), {}
    for line in WORDS.strip().splitlines():
        words = line
        for name, path in here.items():
            words = words.replace(name, str(path))
        said = call(*shlex.split(words))
        assert said.code == ExitCode.USAGE, (line, said)
        assert said.err.startswith(("jaxprof: ", "Usage: ")), "people read it, also where the answer is in JSON"
        assert not {"s3cr3tvalue", "hunter22"} & set(re.findall(r"\w+", said.err)), line
        assert said.out == "" or json.loads(said.out)["error"]["code"] == "usage", line
        assert there() == before, line
        told = said.err.replace(str(state_home), "HOME").replace(str(tmp_path), "FOLDER")
        cases[line] = told.replace(sys.executable, "PYTHON")
    held_cases("usage.txt", cases)


@pytest.mark.parametrize("name", ["gone.hlo", "gone.jaxprof", "gone.xplane.pb", "~nobody-of-this-name/x", "a/b"])
def test_what_makes_a_word_a_path(call, kept, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert f"there is no file {name}" in call("show", name).err
    assert call("sessions", "rename", "last", "run.hlo").code == ExitCode.OK
    assert call("show", "run.hlo").code == ExitCode.OK, "a kept session may be called like a file"


def test_a_run_is_shown_alone_with_what_it_is_compared_with(call, kept):
    def runs(*words: str) -> list[str]:
        data = call("show", kept, *words, "--format", "json").data
        return [run.get("id", run.get("run")) for run in data["runs"]]

    assert runs() == ["r1", "r2", "r3"]
    assert runs("--run", "r2") == ["r1", "r2"]
    assert runs("--run", "r1") == ["r1"]
    assert runs("--run", "r2", "--memory") == ["r2"]
