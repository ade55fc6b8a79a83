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


def test_every_code_is_in_the_catalogue(driver):
    for program in driver.programs():
        assert {*program.expected, *program.allowed} <= set(entries()), program.name
        assert program.how[0] in ("script", "run", "ab"), program.name
