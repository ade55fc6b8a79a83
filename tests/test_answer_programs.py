"""The programs of bench/answers: their headers say what the driver reads, in codes that there are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxprof.analysis.explain.catalogue import entries

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / "bench" / "answers" / "run.py"

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the benchmarks are not in a package that was built")


@pytest.fixture(scope="module")
def driver() -> Any:
    spec = importlib.util.spec_from_file_location("bench_answers_run", DRIVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_there_are_thirty_causes_and_some_programs_without_one(driver: Any) -> None:
    planted = [program for program in driver.programs() if program.of == "planted"]
    assert sum(not program.clean for program in planted) >= 30
    assert sum(program.clean for program in planted) >= 6


def test_every_code_is_in_the_catalogue(driver: Any) -> None:
    for program in driver.programs():
        assert {*program.expected, *program.allowed} <= set(entries()), program.name
        assert program.how[0] in ("script", "run", "ab"), program.name


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("# about: x\n# how: script\n", "no `expect`"),
        ("# about: x\n# how: script\n# expect: -\n# hint: y\n", "nobody reads"),
        ("# about: x\n# about: y\n# how: script\n# expect: -\n", "nobody reads"),
    ],
)
def test_a_header_that_is_not_right_is_refused(driver: Any, tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(text)
    with pytest.raises(ValueError, match=wrong):
        driver.read_program(file)


def test_what_counts_as_first_and_as_forbidden(driver: Any, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("# about: x\n# how: script\n# expect: host_sync | dispatch_bound\n# allow: cache_off\n")
    planted = driver.read_program(file)
    assert driver.judged(planted, ("dispatch_bound", "cache_off")) == (True, ())
    assert driver.judged(planted, ("cache_off", "dispatch_bound")) == (False, ())
    assert driver.judged(planted, ("host_sync", "data_waits")) == (True, ("data_waits",))
    assert driver.judged(planted, ()) == (False, ())
    file.write_text("# about: x\n# how: script\n# expect: -\n# allow: cache_off\n")
    clean = driver.read_program(file)
    assert driver.judged(clean, ()) == driver.judged(clean, ("cache_off",)) == (True, ())
    assert driver.judged(clean, ("host_sync",)) == (False, ("host_sync",))
