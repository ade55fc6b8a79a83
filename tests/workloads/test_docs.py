"""The examples of docs/workloads.md run as they stand. Which programs of a folder import JAX, by their text alone."""

import os
import re
import sys
from pathlib import Path

import pytest

from jaxprof.workloads.check import tolerance
from jaxprof.workloads.find import find
from jaxprof.workloads.scripts import imports_jax, scripts_with_jax
from tables import rows
from workloads.running import errors, inputs_of

DOCUMENT = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text()
EXAMPLES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, code in EXAMPLES.items():
        path = tmp_path / Path(name).name
        path.write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_every_python_block_is_an_example_with_a_name():
    assert DOCUMENT.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize(
    ("target", "argument"),
    rows("""
        model.py:gram         f32[32,32]
        train.py:step         -
        ridge.py:ridge        -
        softplus.py:softplus  -
        power.py:slope        -
        softsign.py:softsign  -
    """),
)
@pytest.mark.usefixtures("folder")
def test_an_example_runs_and_is_right(target, argument):
    assert target in DOCUMENT
    workload = find(target, [argument] if argument else [])
    parameters = workload.resolve("quick")
    inputs = inputs_of(workload, parameters)
    for error in errors(workload, parameters, inputs).values():
        assert error <= tolerance(workload, "float32", None)


@pytest.mark.usefixtures("folder")
def test_what_is_said_of_the_examples_is_so():
    assert find("train.py:step").resolve("quick", {"width": "512"}) == {"batch": 32, "width": 512}
    assert find("ridge.py:ridge").resolve("large") == {"n": 2048, "strength": 10.0}


IMPORTS = [
    "import jax  # the profiler",
    "import jax.numpy as jnp",
    "import jax as j, numpy",
    "import os, jax",
    "from jax import jit",
    "from jax.experimental.shard_map import shard_map",
    "try:\n    import jax\nexcept ImportError:\n    pass",
    "import jax\r",
    "import jax; jax.devices()",
    '"""What it does."""\nimport jax',
]
LOOKALIKES = [
    "# import jax",
    "import jaxtyping",
    "import ajax",
    "from . import jax_things",
    '"""\nimport jax\n"""',
    "'''Needs\nfrom jax import jit\n'''",
    "x = 'import jax'",
]


@pytest.mark.parametrize("line", [*IMPORTS, *LOOKALIKES])
def test_imports_of_jax_differ_from_lookalikes(line):
    assert imports_jax(f"import sys\n{line}\n".encode()) == (line in IMPORTS)


def test_the_newest_program_comes_first_and_none_is_imported(tmp_path):
    for age, name in enumerate(("new.py", "old.py")):
        path = tmp_path / name
        path.write_text("import jax\nraise SystemExit('it was imported')\n")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "plain.py").write_text("import numpy\n")
    (tmp_path / ".hidden.py").write_text("import jax\n")
    (tmp_path / "notes.txt").write_text("import jax\n")
    (tmp_path / "package.py").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    assert [path.name for path in scripts_with_jax(tmp_path)] == ["new.py", "old.py"]
    assert scripts_with_jax(tmp_path / "nowhere") == []
