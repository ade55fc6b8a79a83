import sys
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from jaxprof.base.errors import UsageError
from jaxprof.runner import interpreter
from jaxprof.runner.interpreter import find_interpreter, probe


@pytest.mark.process
def test_a_named_one_is_asked_for_its_versions():
    found = find_interpreter(Path(sys.executable))
    assert found.jax == find_interpreter().jax
    assert find_interpreter(Path(sys.prefix)).jax == found.jax  # an environment's folder


@pytest.mark.process
def test_an_environment_is_taken_when_this_one_has_no_jax(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "python"
    script.write_text('#!/bin/sh\necho \'{"python": [3, 12, 1], "jax": "0.9.0", "numpy": "2.0"}\'\n')
    script.chmod(0o755)
    monkeypatch.setattr(interpreter, "find_spec", lambda name: None)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    found = find_interpreter()
    assert (found.path, found.jax) == (str(script), "0.9.0")
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    assert find_interpreter().jax == "0.9.0"
    monkeypatch.delenv("CONDA_PREFIX")
    assert find_interpreter().jax is None


def test_the_version_of_the_own_jax_is_the_one_that_is_installed(monkeypatch, tmp_path):
    found = find_interpreter()
    assert (found.path, found.jax) == (sys.executable, metadata.version("jax"))
    package = tmp_path / "jax" / "__init__.py"
    package.parent.mkdir()
    package.touch()
    monkeypatch.setattr(interpreter, "find_spec", lambda name: ModuleSpec(name, None, origin=str(package)))
    assert find_interpreter().jax == metadata.version("jax")  # nothing beside it
    (tmp_path / "jax-0.8.1.dist-info").mkdir()
    assert find_interpreter().jax == "0.8.1"
    (tmp_path / "jax-0.8.0.dist-info").mkdir()  # what an update left behind
    assert find_interpreter().jax == metadata.version("jax")


@pytest.mark.process
@pytest.mark.parametrize("is_there", [False, True])
def test_what_is_no_python_is_refused(tmp_path, is_there):
    path = tmp_path / "python"
    if is_there:
        path.write_text("#!/bin/sh\nexit 0\n")
        path.chmod(0o755)
    with pytest.raises(UsageError) as caught:
        find_interpreter(path)
    assert caught.value.hint


@pytest.mark.process
def test_an_old_python_is_refused(tmp_path):
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho \'{"python": [3, 9, 1], "jax": null, "numpy": null}\'\n')
    script.chmod(0o755)
    with pytest.raises(UsageError, match=r"3\.11 or newer"):
        probe(str(script))
