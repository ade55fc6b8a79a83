"""The moment when jax is imported, with a small package in jax's place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxprof.recorder.jax_import import JaxFinder

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a `jax` can be put; the real one cannot be found meanwhile."""
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "jax"}
    for name in kept:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if not isinstance(finder, JaxFinder)])
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "jax"]:
        del sys.modules[name]
    sys.modules.update(kept)


def write_jax(place: Path, text: str = "import jax.inner\nvalue = 1\n") -> None:
    (place / "jax").mkdir()
    (place / "jax" / "__init__.py").write_text(text)
    (place / "jax" / "inner.py").write_text("")
    importlib.invalidate_caches()


def test_it_is_told_once_at_the_end_of_the_import(place: Path) -> None:
    write_jax(place)
    told: list[tuple[float, int]] = []
    finder = JaxFinder(lambda seconds: told.append((seconds, sys.modules["jax"].value)))
    finder.install()
    assert sys.meta_path[0] is finder
    import jax

    importlib.reload(jax)
    ((seconds, value),) = told
    assert seconds > 0
    assert value == 1
    assert finder not in sys.meta_path
    assert jax.__spec__ is not None
    assert vars(jax.__spec__.loader).keys() == {"name", "path"}, "the loader is as it was"
    assert jax.__loader__ is jax.__spec__.loader


def test_an_import_that_fails_may_be_tried_again(place: Path) -> None:
    told: list[float] = []
    JaxFinder(told.append).install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jax")
    write_jax(place, "raise RuntimeError('no jaxlib')")
    with pytest.raises(RuntimeError):
        importlib.import_module("jax")
    assert told == []
    (place / "jax" / "__init__.py").write_text("value = 'another length'")
    importlib.invalidate_caches()
    importlib.import_module("jax")
    assert len(told) == 1


@pytest.mark.process
@pytest.mark.parametrize("how", ["import jax", "import importlib\nimportlib.import_module('jax')"])
def test_a_failing_import_shows_no_frame_of_ours(how: str, tmp_path: Path) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("import warnings\nwarnings.warn('old', stacklevel=2)\n1 / 0\n")
    program = tmp_path / "x.py"
    before = "import sys\nfrom jaxprof.recorder.jax_import import JaxFinder\n"
    said = []
    for middle in ("JaxFinder(print).install()", ""):
        program.write_text(f"{before}{middle}\n{how}\n")
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE)}
        )
        assert "ZeroDivisionError" in done.stderr
        said.append(done.stderr)
    assert said[0] == said[1]
