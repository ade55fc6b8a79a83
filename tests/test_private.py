"""What a session may say of an environment and of a command line, and what it must not."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import jaxprof
from cli.calling import Caller, environment
from jaxprof.engine.measure.environment import read_environment
from jaxprof.private import kept_value, safe_variables
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load, new_header

SOURCE = Path(jaxprof.__file__).parent


def test_settings_that_change_a_measurement_are_kept() -> None:
    settings = {
        "CUDA_VISIBLE_DEVICES": "GPU-aaaaaaaa-0000-0000-0000-000000000000,1",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cuda,cpu",
        "OMP_NUM_THREADS": "8",
        "OPENBLAS_NUM_THREADS": "4",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5",
        "XLA_FLAGS": "--xla_gpu_enable_command_buffer= --xla_force_host_platform_device_count=4 --xla_x",
    }
    assert safe_variables(settings) == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("HF_TOKEN", "secret"),
        ("SECRET_JAX_PLATFORMS", "secret"),
        ("JAX_COMPILATION_CACHE_DIR", "gs://bucket/secret"),
        ("JAX_COORDINATOR_ADDRESS", "secret:1234"),
        ("JAX_DUMP_IR_TO", "/home/secret"),
        ("JAX_PLATFORMS", "/home/secret"),
        ("JAX_PLATFORMS", "user:secret@host"),
        ("OMP_NUM_THREADS", "secret" * 12),
        ("OMP_NUM_THREADS", "secret\x1b[31m"),
        ("XLA_FLAGS", "--xla_dump_to=/home/secret --xla_gpu_autotune_level=4"),
        ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/secret secret"),
        ("LIBTPU_INIT_ARGS", "--token=user:secret@host"),
    ],
)
def test_nothing_that_could_be_a_secret_gets_in(name: str, value: str) -> None:
    assert "secret" not in json.dumps(safe_variables({name: value}))


def test_flags_beside_a_hidden_one_are_kept() -> None:
    kept = safe_variables({"XLA_FLAGS": "--xla_dump_to=/tmp/x --xla_gpu_autotune_level=4"})
    assert kept == {"XLA_FLAGS": "--xla_dump_to=... --xla_gpu_autotune_level=4"}


def test_that_an_unlisted_setting_of_jax_is_there_is_told() -> None:
    assert safe_variables({"JAX_SOMETHING_NEW": "/path"}) == {"JAX_SOMETHING_NEW": "..."}


def test_a_named_variable_is_kept_if_it_is_a_setting() -> None:
    assert kept_value("MODE", "fast") == "fast"
    assert kept_value("HF_TOKEN", "abc") == "..."
    assert kept_value("MODE", "hf_abcdefgh12345678") == "..."
    assert (
        kept_value("XLA_FLAGS", "--xla_dump_to=/home/me --xla_x=1 --xla_api_key=abc")
        == "--xla_dump_to=... --xla_x=1 --xla_api_key=..."
    )


def test_the_run_and_the_header_mask_the_environment_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me/secret")
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "secret:1234")
    settings = read_environment([], None).settings
    assert "secret" not in json.dumps(settings)
    assert settings["XLA_FLAGS"] == "--xla_dump_to=..."
    assert settings["JAX_COORDINATOR_ADDRESS"] == "..."


@pytest.mark.process
def test_a_recorded_command_line_has_no_secret_and_the_session_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call = Caller(capsys)
    (tmp_path / "program.py").write_text("import sys\nassert sys.argv[1:] == ['--api-key', 'sesame']\n")
    words = ["script", "--plain", "--out", "x.jaxprof", "program.py", "--api-key", "sesame"]
    command = [sys.executable, "-m", "jaxprof", *words]
    subprocess.run(command, cwd=tmp_path, check=True, env=environment())
    assert "sesame" not in (tmp_path / "x.jaxprof").read_text()
    assert "looks like a secret" in call("show", tmp_path / "x.jaxprof").out
    assert (
        "looks like a secret" in call("show", tmp_path / "x.jaxprof", "--format", "json").data["session"]["notices"][0]
    )


@pytest.mark.process
def test_a_program_that_records_itself_keeps_none_either(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import jaxprof\njaxprof.record('x.jaxprof')\n")
    subprocess.run([sys.executable, "program.py", "token=sesame"], cwd=tmp_path, check=True, env=environment())
    assert "sesame" not in (tmp_path / "x.jaxprof").read_text()
    assert len(load(tmp_path / "x.jaxprof", Session).notices) == 1


def test_a_session_without_secrets_has_no_such_notice(tmp_path: Path) -> None:
    writer = LogWriter(new_header({}, ["jaxprof", "run", "selu"]), tmp_path / "x.jaxprof")
    writer.close()
    assert load(tmp_path / "x.jaxprof", Session).notices == []


def test_a_side_of_a_comparison_keeps_no_secret() -> None:
    from jaxprof.cli.sides import AllWords, SideWords, read_sides

    words = AllWords(targets=("selu", "selu"), a=SideWords(environment=("HF_TOKEN=sesame", "OMP_NUM_THREADS=1")))
    with read_sides(words) as read:
        side = read.sides[0]
    assert "sesame" not in side.title + repr(side.spec())
    assert "OMP_NUM_THREADS=1" in side.title
    assert side.environment["HF_TOKEN"] == "sesame", "the process itself gets it"


def test_only_what_passed_the_list_is_written() -> None:
    """Whoever makes the events and the header that hold a command line or variables asks `private` or `redaction`."""
    asked = {"ProgramStarted": "argv", "Header": "command", "SideSpec": "environment", "EnvironmentRead": "settings"}
    found = {
        (called.func.id, ast.unparse(keyword.value))
        for path in SOURCE.rglob("*.py")
        for called in ast.walk(ast.parse(path.read_text()))
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id in asked
        for keyword in called.keywords
        if keyword.arg == asked[called.func.id]
    }
    assert {name for name, _ in found} == set(asked)
    values = [value for name, value in found if name != "EnvironmentRead"]
    assert all(value.startswith("redacted(") or "kept_value(" in value for value in values), values
    assert "safe_variables(os.environ)" in (SOURCE / "engine/measure/environment.py").read_text()
