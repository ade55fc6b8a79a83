"""The examples of docs/workloads.md run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from jaxprof.workloads.check import tolerance
from jaxprof.workloads.find import find
from workloads.running import errors, inputs_of

DOCUMENT = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text()
EXAMPLES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, code in EXAMPLES.items():
        path = tmp_path / Path(name).name
        path.write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_every_python_block_is_an_example_with_a_name() -> None:
    assert DOCUMENT.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("model.py:gram", ["f32[32,32]"]),
        ("train.py:step", []),
        ("ridge.py:ridge", []),
        ("softplus.py:softplus", []),
        ("power.py:slope", []),
        ("softsign.py:softsign", []),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_example_runs_and_is_right(target: str, arguments: list[str]) -> None:
    assert target in DOCUMENT
    workload = find(target, arguments)
    parameters = workload.resolve("quick")
    inputs = inputs_of(workload, parameters)
    for error in errors(workload, parameters, inputs).values():
        assert error <= tolerance(workload, "float32", None)


@pytest.mark.usefixtures("folder")
def test_what_is_said_of_the_examples_is_so() -> None:
    assert find("train.py:step").resolve("quick", {"width": "512"}) == {"batch": 32, "width": 512}
    ridge = find("ridge.py:ridge")
    assert ridge.resolve("large") == {"n": 2048, "strength": 10.0}
    assert (ridge.name, ridge.baseline) == ("ridge.py:ridge", "numpy")
    assert ridge.title == "Ridge regression by the normal equations."
