"""A file named like a module of the standard library, or like JAX: the program ends as under Python alone, and the
report names the file where the end came from it."""

import sys

import pytest

from jaxprof.findings.program_result import program_result
from pythons import FURTHER
from recorder.running import program_in, run_alone, run_recorded, session_in

JAX = "import jax\nprint(jax.numpy.arange(3) + 1)\n"


def both(folder, name):
    """Run the program by Python alone and recorded: the same end, and the finding about it."""
    alone, recorded = (run(folder, name, PYTHONDONTWRITEBYTECODE="1") for run in (run_alone, run_recorded))
    said = [line for line in recorded.err.splitlines() if not line.startswith("jaxprof:")]
    assert recorded.code == alone.code
    assert recorded.out == alone.out
    assert said == alone.err.splitlines()
    findings = program_result(session_in(folder), program_in(folder).id).findings
    return next((each for each in findings if each.code == "program_failed"), None)


MODULES = ["types", "jax"]
"""What a script is called: a module that printing the error needs, and JAX."""
if FURTHER:
    MODULES += ["copy", "numpy", *({"array"} - {*sys.builtin_module_names})]


@pytest.mark.process(programs=1)
@pytest.mark.parametrize("module", MODULES)
def test_a_script_that_shadows_a_module_is_named(module, tmp_path):
    (tmp_path / f"{module}.py").write_text(JAX)
    failed = both(tmp_path, f"{module}.py")
    assert f"`import {module}` finds {module}.py, not the" in failed.message
    assert failed.fix.startswith(f"Give {module}.py another name")


OWN = {
    "a library imports it": ({"x.py": "import tempfile\n", "random.py": ""}, "random.py"),
    "the program's own fails": ({"x.py": "import queue\n", "queue.py": "raise ValueError('own')\n"}, ""),
}
if FURTHER:
    OWN |= {
        "another file lacks what the standard library has": (
            {"x.py": "import random\nrandom.seed(0)\n", "random.py": ""},
            "random.py",
        ),
        "an error of its own": ({"x.py": "1 / 0\n", "copy.py": "print('mine')\n", "enum.py": "print('mine')\n"}, ""),
        "no module is called so": ({"x.py": "import helpers\nhelpers.seed()\n", "helpers.py": ""}, ""),
    }


@pytest.mark.process(programs=1)
@pytest.mark.parametrize("case", OWN)
def test_only_a_file_that_the_error_came_from_is_named(case, tmp_path):
    files, named = OWN[case]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    failed = both(tmp_path, "x.py")
    assert ("` finds " in failed.message) == bool(named)
    assert named in failed.message


@pytest.mark.process(programs=1)
@pytest.mark.parametrize("shadowed", [True, False] if FURTHER else [True])
def test_a_jax_that_is_not_jax_is_noted(shadowed, tmp_path):
    (tmp_path / "x.py").write_text("import jax\nprint(jax.answer)\n" if shadowed else "print(42)\n")
    if shadowed:
        (tmp_path / "jax.py").write_text("answer = 42\n")
    assert both(tmp_path, "x.py") is None
    (note,) = program_in(tmp_path).program.ended.notes
    assert note.code == "no_jax"
    assert note.shadowed is shadowed
