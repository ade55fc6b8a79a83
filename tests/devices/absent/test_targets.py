"""What `--for` says, what XLA is told of a chip, and what is installed where."""

import re
import stat
import subprocess
from pathlib import Path

import pytest

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.devices.absent import chip, parse_mesh, parse_target, wheels
from tables import rows


def test_targets_are_read():
    for text, label, topology, devices in rows("""
        H100:8         h100:8         1x1x8        8
        4xh100:8       4xh100:8       4x1x8        32
        2xa100         2xa100:1       2x1x1        2
        tpu-v6e:16x16  tpu-v6e:16x16  v6e:16x16    256
        v5p:4x4x4      tpu-v5p:4x4x4  v5p:4x4x4    64
        tpu-v5e        tpu-v5e        v5e:2x2      1
        tpu-v7:2x2x1   tpu-v7x:2x2x1  tpu7x:2x2x1  8
        tpu7x          tpu-v7x        tpu7x:2x2x1  1
        tpu-v3:2x2     tpu-v3:2x2     v3:2x2       8
    """):
        target = parse_target(text)
        assert target.label == label
        assert target.topology == topology
        assert str(target.devices) == devices
        assert parse_target(target.label).devices == target.devices


TARGETS = ["h1000x", "h100:", "h100:0", "h100:2x2", "tpu-v5e:4", "tpu-v5p:2x2", "2xtpu-v5e:2x2", "h100:99999", "-", ""]
MESHES = ["data", "data=", "data=0", "data=-1", "4=data", "data=4,data=2", "data=9999999", ""]


@pytest.mark.parametrize(
    ("parse", "text"), [*((parse_target, text) for text in TARGETS), *((parse_mesh, text) for text in MESHES)]
)
def test_what_cannot_be_read_says_how_it_is_written(parse, text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.hint


def test_every_name_of_a_ceiling_names_the_chip():
    for name, row in rows("""
        Trillium   tpu-v6e
        A100_80GB  a100
        h100-SXM   h100
        v5e        tpu-v5e
    """):
        assert chip(name).name == row


@pytest.fixture(autouse=True)
def no_kits(monkeypatch):
    monkeypatch.delenv(wheels.FOLDER_VARIABLE, raising=False)


FACTS = {
    "jax": "0.9.0",
    "jaxlib": "0.9.0.1",
    "tag": "cp312",
    "requires": ['libtpu==0.0.40.*; extra == "tpu"', "numpy>=2"],
    "has": {},
}


def test_the_wheels_belong_to_the_users_jaxlib():
    assert wheels.requirements("nvidia", FACTS)[:2] == ["jax-cuda12-plugin==0.9.0.1", "jax-cuda12-pjrt==0.9.0.1"]
    assert wheels.requirements("tpu", FACTS) == ["libtpu==0.0.40.*"]
    assert wheels.folder("nvidia", FACTS).name == "nvidia-jaxlib0.9.0.1-cp312"


def test_each_wheel_has_a_known_hash():
    lines = wheels.pin_lines(["jax-cuda12-plugin==0.9.0.1", "nvidia-cuda-nvcc-cu12", "libtpu==0.0.42.*"])
    assert [line.split()[0] for line in lines] == [
        "jax-cuda12-plugin==0.9.0.1",
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "libtpu==0.0.42.1",
    ]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)


@pytest.mark.parametrize("unknown", ["libtpu==9.9.9", "libtpu==0.0.4.*", "libtpu==0.0.42.1.*.", "elsewhere"])
def test_what_has_no_known_hash_is_refused(unknown):
    with pytest.raises(UsageError, match="does not know") as caught:
        wheels.pin_lines([unknown])
    assert "--allow-unpinned" in caught.value.hint


@pytest.mark.process
def test_pip_checks_hashes_unless_unpinned_is_allowed(tmp_path, monkeypatch, state_home):
    log = tmp_path / "log"
    keep = f'echo "$@" > {log}; while [ "$1" != "-r" ]; do shift; done; cat "$2" >> {log}; exit 1'
    python = fake_python(tmp_path, keep)
    with pytest.raises(JaxprofError):
        wheels.install("nvidia", python, lambda line: None)
    arguments, *lines = log.read_text().splitlines()
    assert {"--require-hashes", "--only-binary", "--no-deps"} <= set(arguments.split())
    assert len(lines) == 3
    assert all("--hash=sha256:" in line for line in lines)
    monkeypatch.setattr(wheels, "_PINS", tmp_path / "none.txt")
    (tmp_path / "none.txt").write_text("")
    log.unlink()
    with pytest.raises(UsageError, match="does not know"):
        wheels.install("nvidia", python, lambda line: None)
    assert not log.exists()
    said = []
    with pytest.raises(JaxprofError):
        wheels.install("nvidia", python, said.append, allow_unpinned=True)
    assert "not checked" in said[0]
    assert "--require-hashes" not in log.read_text()
    words = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
    python = fake_python(tmp_path, f'echo "{words}" >&2; echo "  Got  abc" >&2; exit 1')
    with pytest.raises(JaxprofError, match="another hash"):
        wheels.install("nvidia", python, lambda line: None, allow_unpinned=True)
    assert not list((state_home / "targets").glob("*/*"))


def fake_python(folder, pip):
    """An interpreter that answers the probe, and whose pip does `pip` (shell)."""
    script = folder / "python"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = "-P" ]; then shift; fi\n'
        'if [ "$1" = "-m" ]; then\n'
        '  if [ "$3" = "--version" ]; then exit 0; fi\n'
        f"  {pip}\n"
        "fi\n"
        'echo \'{"jax": "0.9.0", "jaxlib": "0.9.0", "tag": "cp312", "requires": [], "has": {"x": null}}\'\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


@pytest.mark.process
@pytest.mark.parametrize("error", [KeyboardInterrupt(), subprocess.TimeoutExpired("pip", 1800), OSError(28, "full")])
def test_half_a_folder_is_never_used_whatever_ends_the_installer(error, tmp_path, monkeypatch, state_home):
    python = fake_python(tmp_path, "exit 0")
    run = subprocess.run

    def interrupted(words, **options):
        if "--target" not in words:
            return run(words, **options)
        (Path(words[words.index("--target") + 1]) / "jax_plugins").mkdir(parents=True)
        raise error

    monkeypatch.setattr(wheels.subprocess, "run", interrupted)
    with pytest.raises((JaxprofError, KeyboardInterrupt, OSError)) as caught:
        wheels.install("nvidia", python, lambda line: None)
    assert not isinstance(caught.value, subprocess.TimeoutExpired)
    assert list((state_home / "targets").iterdir()) == []


@pytest.mark.process
def test_wheels_go_into_a_folder_that_only_the_child_sees(tmp_path, monkeypatch, state_home):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    python = fake_python(tmp_path, 'while [ "$1" != "--target" ]; do shift; done; mkdir -p "$2"; exit 0')
    with pytest.raises(JaxprofError, match="not here") as caught:
        wheels.environment("nvidia", python)
    assert "jaxprof devices target install nvidia" in caught.value.hint
    assert wheels.folder_if_installed("nvidia", python) is None
    said = []
    place = wheels.install("nvidia", python, said.append)
    assert place.is_relative_to(state_home)
    assert "jax-cuda12-plugin==0.9.0" in said[0]
    assert wheels.folder_if_installed("nvidia", python) == place
    assert wheels.environment("nvidia", python)["PYTHONPATH"] == f"{place}:/theirs"
    assert wheels.install("nvidia", python, said.append) == place
    assert len(said) == 1  # nothing was done twice
    assert wheels.remove("nvidia") == [place]
    assert wheels.remove("nvidia") == []
    assert wheels.folder_if_installed("nvidia", python) is None
