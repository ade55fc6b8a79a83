"""`.ci/pins` writes down what pip finds, and nothing that it finds otherwise than before. No network: pip looks into a
folder."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

from jaxprof.devices.absent import wheels

SCRIPT = Path(__file__).parents[3] / ".ci" / "pins"
pytestmark = [
    pytest.mark.skipif(not SCRIPT.exists(), reason="the checks are not part of a source distribution"),
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip"),
]


@pytest.fixture(scope="module")
def pins():
    loader = importlib.machinery.SourceFileLoader("pins", str(SCRIPT))
    spec = importlib.util.spec_from_loader("pins", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def test_what_the_package_has_is_as_the_script_writes_it(pins):
    text = pins.PINS.read_text()
    assert pins.written(pins.read(text)) == text
    assert set(pins.read(text)) == set(pins.PACKAGES)


def test_new_versions_are_pinned_and_listed_ones_unchanged(pins, tmp_path, monkeypatch, capsys):
    file = tmp_path / "pins.txt"
    old = f"libtpu==0.9 --hash=sha256:{'1' * 64}\n"
    file.write_text(old)
    monkeypatch.setattr(pins, "pythons", lambda: ["3.11", "3.13"])
    monkeypatch.setattr(pins, "found", lambda _, python, *rest: ("libtpu", "0.10", python[-1] * 64))
    assert pins.main(["--pins", str(file), "libtpu"]) == 0
    hashes = f"--hash=sha256:{'1' * 64} --hash=sha256:{'3' * 64}"
    assert file.read_text() == f"{old}libtpu==0.10 {hashes}\n", "after 0.9, which is older"
    before = file.read_text()
    monkeypatch.setattr(wheels, "_PINS", file)
    assert wheels.pin_lines(["libtpu==0.10"]) == [f"libtpu==0.10 {hashes}"], "pip gets it as it stands there"
    monkeypatch.setattr(pins, "found", lambda *_: ("libtpu", "0.10", "2" * 64))
    assert pins.main(["--pins", str(file), "libtpu"]) == 1
    assert file.read_text() == before
    assert f"listed without the wheel that pip found, sha256:{'2' * 64}" in capsys.readouterr().err
    assert pins.main(["--pins", str(file), "--accept", "libtpu"]) == 0
    assert "2" * 64 in file.read_text()
    monkeypatch.setattr(pins, "found", lambda *_: None)
    assert pins.main(["--pins", str(file), "libtpu"]) == 1
