"""No option is silently ignored: each is taken, or refused with what to do instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.output import ExitCode


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("hlo selu --run r1", "--run chooses among existing programs"),
        ("hlo selu:jit --module 1", "--module chooses among existing programs"),
        ("hlo mine.py:f --run r1", "--run chooses among existing programs"),
        ("hlo selu:jit --variant jax", "says its variant, and so does --variant jax"),
        ("hlo selu --kernels --findings", "--kernels and --findings cannot be printed together"),
        ("hlo selu --barriers --tree fusion", "--barriers and --tree cannot be printed together"),
        ("hlo selu --kernels --stage hlo", "--kernels and --stage cannot be printed together"),
        ("hlo selu --dot fusion --format json", "--format has no effect beside --tree and --dot"),
        ("hlo selu --force", "--force has no effect without --out"),
        ("hlo KEPT --for h100", "--for applies when jaxprof compiles"),
        ("hlo KEPT --variant jit", "--variant applies when jaxprof compiles"),
        ("hlo KEPT --preset quick", "--preset applies when jaxprof compiles"),
        ("hlo KEPT --set n=3", "--set applies when jaxprof compiles"),
        ("hlo KEPT --arg f32[3]", "--arg applies when jaxprof compiles"),
        ("hlo KEPT --out x", "--out applies when jaxprof compiles"),
        ("hlo KEPT --module 1", "--module chooses a module of a dump"),
        ("hlo FOLDER --run r1", "--run chooses a run of a session"),
        ("hlo FOLDER --passes --variant jit", "--variant has no effect with --passes"),
        ("show KEPT --kernels --compile", "--kernels and --compile cannot be printed together"),
        ("show KEPT --run r9", "unknown run 'r9'"),
        ("show KEPT --host h", "--host chooses a part of a profile"),
        ("show KEPT --profile-run x", "--profile-run chooses a part of a profile"),
        ("open KEPT --host h", "--host chooses a part of a profile"),
        ("open FOLDER/module.txt --follow", "--follow applies to a session that is being written"),
        ("export KEPT --host h", "--host chooses a part of a profile"),
        ("export KEPT --force", "--force has no effect without --out"),
        ("open --keep FOLDER --force", "--force has no effect without --out"),
        ("open --seconds 2 1234 --force", "--force has no effect without --out"),
        ("run --device cpu:0", "--device is an option of a run, and no workload was named"),
        ("run selu --force", "--force has no effect without --out"),
        ("run selu --no-capture --keep-trace", "--keep-trace keeps what --no-capture omits"),
        ("run selu --sweep n=1,2 --set n=3", "--set n and --sweep n cannot both set the size"),
        ("script --values x.py", "--values has no effect without --function"),
        ("script --keep-trace x.py", "--keep-trace keeps the profile of a window"),
        ("script --force x.py", "--force has no effect without --out"),
        ("sessions --format json list", "--format goes after the subcommand"),
    ],
)
def test_what_would_change_nothing_is_refused(
    call: Caller, kept: Path, tmp_path: Path, words: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from report import sessions

    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module.txt").write_text(sessions.HLO)
    (folder / "m.after_optimizations.txt").write_text(sessions.HLO)
    monkeypatch.chdir(tmp_path)
    before = kept.read_bytes()
    said = call(*(word.replace("KEPT", str(kept)).replace("FOLDER", str(folder)) for word in words.split()))
    assert said.code == ExitCode.USAGE, said
    assert told in said.err
    assert said.out == "" or json.loads(said.out)["error"]["code"] == "usage"
    assert kept.read_bytes() == before
    assert not list(tmp_path.glob("*.jaxprof"))


def test_a_run_is_shown_alone_with_what_it_is_compared_with(call: Caller, kept: Path) -> None:
    whole = call("show", kept, "--format", "json").data
    last = whole["runs"][-1]["id"]
    assert len(whole["runs"]) == 3
    alone = call("show", kept, "--run", "r2", "--format", "json").data
    assert [run["id"] for run in alone["runs"]] == ["r1", "r2"]
    assert alone["runs"][1]["versus"] == whole["runs"][1]["versus"]
    assert [run["id"] for run in call("show", kept, "--run", "r1", "--format", "json").data["runs"]] == ["r1"]
    assert last not in call("show", kept, "--run", "r2", "--memory").out
    memory = call("show", kept, "--run", "r2", "--memory", "--format", "json").data
    assert [row["run"] for row in memory["runs"]] == ["r2"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("content", "named"), [(b"garbage\n", True), (b"", False), (b"{}", True), (b"\x0a\xff\xff", False)]
)
def test_a_wrong_file_leaves_no_session_behind(
    call: Caller, kept: Path, tmp_path: Path, state_home: Path, content: bytes, named: bool
) -> None:
    wrong, out = tmp_path / "wrong.xplane.pb", tmp_path / "out.jaxprof"
    wrong.write_bytes(content)
    said = call("import", wrong, *(["--out", out] if named else []))
    assert said.code == ExitCode.USAGE
    assert not out.exists()
    assert [path for path in state_home.rglob("*") if path.is_file()] == [kept]
    assert "selu" in call("show", "last").out, "`last` is still the session that was there"
