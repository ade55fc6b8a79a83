"""Words that do not fit are refused with what to do instead, and nothing is run, written or ignored."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import program_events
from cli.calling import Caller
from folding import written
from jaxprof.cli.output import ExitCode
from report import sessions
from tui import profiles

WORDS = [
    # options without effect
    ("hlo selu --run r1", "--run chooses among existing programs"),
    ("hlo selu:jit --variant jax", "says its variant, and so does --variant jax"),
    ("hlo selu --kernels --findings", "--kernels and --findings cannot be printed together"),
    ("hlo selu --dot fusion --format json", "--format has no effect beside --tree and --dot"),
    ("hlo selu --force", "--force has no effect without --out"),
    ("hlo KEPT --for h100", "--for applies when jaxprof compiles"),
    ("hlo KEPT --out x", "--out applies when jaxprof compiles"),
    ("hlo KEPT --module 1", "--module chooses a module of a dump"),
    ("hlo dump --run r1", "--run chooses a run of a session"),
    ("hlo dump --passes --variant jit", "--variant has no effect with --passes"),
    ("show KEPT --run r9", "unknown run 'r9'"),
    ("show KEPT --host h", "--host chooses a part of a profile"),
    ("show KEPT --limit 3", "--limit bounds an answer in JSON"),
    ("show KEPT --limit 3 --full --format json", "--limit and --full exclude each other"),
    ("open dump/module.txt --follow", "--follow applies to a session that is being written"),
    ("open KEPT --browser --kernels", "--kernels does not apply to a page in a browser"),
    ("open KEPT --port 80", "--port has no effect without --browser"),
    ("open localhost:99 --seconds 1 --steps", "--steps does not apply to a program that is running"),
    ("open localhost:9999", "localhost:9999 is no session\n  If a profiler server listens there"),
    ("open KEPT --force", "--force replaces the file of --out"),
    ("sessions --format json list", "--format goes after the subcommand"),
    ("show dump/x.txt", "x.txt is empty"),
    ("show dump/notes.md", "neither a session nor a profile"),
    # lanes
    ("show CAPTURED --lanes --from 9s", "nothing was recorded in this range"),
    ("show CAPTURED --lanes --from 2ms --to 1ms", "before it begins"),
    ("show CAPTURED --lanes --to soon", "is not a time"),
    ("show CAPTURED --steps --to 1ms", "has no effect without --lanes"),
    ("show CAPTURED --lanes --format markdown", "--lanes has no markdown form"),
    # compare
    ("compare KEPT last --capture", "--capture does not apply to sessions"),
    ("compare --over-time selu --git HEAD", "--git does not apply to a trend"),
    ("compare selu KEPT", "selu is run, and"),
    ("compare KEPT:r1 KEPT", "a run cannot be compared with a whole session"),
    ("compare KEPT:r1 KEPT:r9", "unknown run 'r9'"),
    ("ab", "compare needs two sessions, or two that can be run"),
    ("ab sides.py:step", "compare needs two sides"),
    ("ab sides.py:step --env-b 7", "cannot read the variable '7'"),
    ("ab sides.py:step --git HEAD", "not in a git repository"),
    ("ab sides.py:step sides.py:same --git HEAD", "--git compares one target"),
    ("ab selu --set-b m=3", "unknown parameter of selu 'm'"),
    # run
    ("run --device cpu:0", "--device is an option of a run, and no workload was named"),
    ("run --describe selu --budget 1", "--budget is an option of a run"),
    ("run selu --no-capture --keep-trace", "--keep-trace keeps what --no-capture omits"),
    ("run selu --sweep n=1,2 --set n=3", "--set n and --sweep n cannot both set the size"),
    ("run sleu", "Did you mean selu"),
    ("run selu --variant jot", "Did you mean jit"),
    ("run selu --set n", "--set n=4000"),
    ("run selu --set n=0", "out of bounds"),
    ("run selu --device what?", "is not a device"),
    ("run selu --budget 0", "not above 0"),
    ("run selu --sweep n=9..1", "cannot sweep"),
    ("run selu --arg f32[3]", "--set"),
    ("run selu --python /nowhere/python", "no interpreter"),
    ("run grad-nested --out dump/module.txt", "--force"),
    ("run --from KEPT selu", "--from repeats the runs of a session"),
    ("run --from KEPT --device cpu:0 --device cpu:1", "one --device"),
    # script
    ("script --values x.py", "--values has no effect without --function"),
    ("script --keep-trace x.py", "--keep-trace keeps the profile of a window"),
    ("script -n 3 --capture-ranks 0,3 --capture-steps 5 train.py", "of 3 processes the last one is 2"),
    ("script -n 3 --capture-ranks worst --capture-steps 5 train.py", "'worst' is no process"),
    ("script -n 3 --capture-ranks 0 train.py", "no window was requested"),
    ("script --capture-ranks 0 --capture-steps 5 train.py", "is for a job of several processes"),
    ("script --out nonsense://x/run.jaxprof train.py", "is the scheme of no store"),
    ("script --out smb://host/run.jaxprof train.py", "smb:// needs smbprotocol"),
    ("script --out https://host/run.jaxprof train.py", "takes no files"),
    ("script --out 's3://bucket/run.jaxprof?token=s3cr3tvalue' train.py", "has a query"),
    # hlo
    ("hlo selu --for mi300x:8", "ROCm"),
    ("hlo selu --autotune-results dump/module.txt", "--for h100"),
    ("hlo selu --for h100:8 --mesh data", "cannot read the mesh"),
    ("hlo selu --for h100:8 --shard data", "cannot read --shard 'data'"),
    ("hlo selu --for h100:4 --mesh data=4,model=2", "has 8 devices, but h100:4 has 4"),
    ("hlo KEPT --run r1", "run r1 (selu numpy cpu:0) has no compiled program"),
    ("hlo KEPT --stage stablehlo", "has its stablehlo"),
    ("hlo dump/x.txt --passes", "the folder of an XLA dump"),
    ("hlo dump --passes", "no passes"),
    ("hlo dump/module.txt --top 1", "--kernels"),
    ("hlo dump/module.txt --short --kernels", "--short"),
    ("hlo dump/module.txt --diff dump/module.txt --format csv", "only --kernels has a CSV form"),
    ("hlo dump/module.txt --diff none.hlo", "none.hlo"),
    # explain
    ("explain --code nonsense", "unknown finding"),
    ("explain --code host-sync last", "has no effect beside --code"),
    ("explain --full --format json", "applies to text"),
    ("explain PROGRAM --try --code host_sync", "has no finding host_sync"),
    ("explain PROGRAM --try --code recompile_in_loop", "the fix of recompile_in_loop is a change of the program"),
    ("explain PROGRAM --budget 5", "has no effect without --try"),
    # gate
    ("gate sides.py:step --fail-on run", "is a time"),
    ("gate sides.py:step --fail-on run:5% --for h100", "is a time, and --for"),
    ("gate sides.py:step --fail-on kernels --launches 3", "--launches applies to times"),
    ("gate sides.py:step --fail-on run:5% --base selu:jax --variant jit", "as one variant"),
    ("gate KEPT --base KEPT --accept x --fail-on flops", "beside a named baseline"),
    ("gate KEPT --base KEPT --accept ' ' --fail-on flops", "--accept needs a reason"),
    ("gate baseline save a/b KEPT", "cannot be the name"),
    ("gate baseline save selu KEPT", "--base selu is a workload"),
    ("gate baseline save last KEPT", "the newest session"),
    ("gate baseline save x KEPT selu", "compiled now, or of a session"),
    ("gate baseline save x KEPT KEPT", "a copy of one session"),
    ("gate baseline show mian", "unknown baseline 'mian'"),
    # settings
    ("config set -- preset slow", "preset is 'slow'"),
    ("config set -- them x", "unknown setting 'them'"),
    ("config set -- keys.results.compar x", "unknown action"),
    ("config set -- fail_on ''", "fail_on is"),
    # query
    ("query", "there is no SQL"),
    ("query last", "'last' is none"),
    ("query 'SELECT 1'", "no session was named"),
    ("query --all last 'SELECT 1'", "--all is every kept session"),
    ("query last 'SELECT 1' -o x", "--out is for parquet and arrow"),
    ("query last 'SELECT 1' --format csv --limit 3", "--limit bounds an answer in text or json"),
    ("query --schema runz", "unknown table"),
    ("query --schema --format csv", "--schema has no csv form"),
    # a word alone
    ("trian.py", "there is no file trian.py"),
    ("dump/notes.md", "notes.md is neither a program in Python nor a session, a job, a profile or HLO"),
    ("shwo", "unknown command 'shwo'"),
]  # fmt: skip


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
    }


@pytest.mark.process  # the first temporary folder of a process starts its reaper
@pytest.mark.parametrize(("words", "told"), WORDS, ids=[words for words, _ in WORDS])
def test_words_that_do_not_fit(call: Caller, here: dict[str, Path], tmp_path: Path, words: str, told: str) -> None:
    def there() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    before = there()
    for name, path in here.items():
        words = words.replace(name, str(path))
    said = call(*shlex.split(words))
    assert said.code == ExitCode.USAGE, said
    assert told in said.err
    assert said.err.startswith(("jaxprof: ", "Usage: ")), "people read it, also where the answer is in JSON"
    assert "s3cr3tvalue" not in said.err
    assert said.out == "" or json.loads(said.out)["error"]["code"] == "usage"
    assert there() == before


OF_A_FILE = """hlo {}; hlo {}:step; hlo {} --passes; open {}; show {} --kernels; export {}; import {};
query {} 'SELECT 1'; run {}.py:step; run {}.py; run --from {}:r1; workloads {}.py;
sessions rename {} other; sessions scrub {}; sessions delete {} --yes"""


@pytest.mark.process
@pytest.mark.parametrize("words", [line.strip() for line in OF_A_FILE.split(";")])
def test_a_word_that_is_plainly_a_path_is_answered_as_one(call: Caller, kept: Path, tmp_path: Path, words: str) -> None:
    (tmp_path / "train.py").touch()
    missing = tmp_path / "trian"
    said = call(*shlex.split(words.format(missing)))
    assert (said.code, f"there is no file {missing}" in said.err) == (ExitCode.USAGE, True)
    assert "Similar names there: train.py" in said.err


@pytest.mark.parametrize("name", ["gone.hlo", "gone.jaxprof", "gone.xplane.pb", "~nobody-of-this-name/x", "a/b"])
def test_what_makes_a_word_a_path(
    call: Caller, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"there is no file {name}" in call("show", name).err
    assert call("sessions", "rename", "last", "run.hlo").code == ExitCode.OK
    assert call("show", "run.hlo").code == ExitCode.OK, "a kept session may be called like a file"


def test_a_run_is_shown_alone_with_what_it_is_compared_with(call: Caller, kept: Path) -> None:
    def runs(*words: str) -> list[str]:
        data = call("show", kept, *words, "--format", "json").data
        return [run.get("id", run.get("run")) for run in data["runs"]]

    assert runs() == ["r1", "r2", "r3"]
    assert runs("--run", "r2") == ["r1", "r2"]
    assert runs("--run", "r1") == ["r1"]
    assert runs("--run", "r2", "--memory") == ["r2"]
