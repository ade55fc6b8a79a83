"""The programs of a run of pytest, shown in a table and saved for `jaxprof gate`."""

import pytest

from jaxprof.api.session import load
from jaxprof.events import RunFinished, RunPlanned, RunSpec
from jaxprof.session.lines import encode_line
from jaxprof.testing.items import file_of, report

TESTS = """
import jax
import numpy as np
import pytest

X = np.ones((8, 16), np.float32)


@jax.jit
def step(x):
    return (x * 2 + 1).sum()


@pytest.mark.parametrize("rows", [8, 4])
def test_step(jaxprof, rows):
    jaxprof(step, X[:rows])
    jaxprof(step, X[:rows])


def test_other(jaxprof):
    jaxprof(lambda x: x + 1, X)


def test_without():
    pass
"""


@pytest.mark.process
def test_programs_are_shown_and_saved(run_tests, folder):
    ran = run_tests(TESTS, "-n", "1", "--jaxprof-save=main")
    assert ran.ret == 0, ran.stdout.str()
    rows = [line.split() for line in ran.stdout.lines if line.startswith("test_") and "::" not in line]
    names = ["test_other", "test_step[4]", "test_step[8]"]
    assert sorted((row[0], row[-1]) for row in rows) == [(name, "1") for name in names]
    session = load(folder / "main.jaxprof")
    assert sorted((run.plan.workload, run.plan.variant, run.status) for run in session.runs.values()) == [
        (f"test_it.py::{name}", variant, "ok")
        for name, variant in zip(names, ("<lambda>", "step", "step"), strict=True)
    ]
    assert all("hlo" in run.texts for run in session.runs.values())


def test_a_file_of_another_kind_is_not_replaced(tmp_path):
    for name in (tmp_path, "tests/test_it.py"):
        with pytest.raises(pytest.UsageError):
            file_of(str(name))
    assert [str(file_of(name)) for name in ("main", "main.jaxprof")] == ["main.jaxprof"] * 2


def test_a_folder_without_room_fails_the_run_and_loses_no_table(tmp_path):
    spec = RunSpec(workload="t.py::test[\x1b[31m]", variant="step", how="compile", device="cpu:0")
    events = [RunPlanned(run="r1", spec=spec), RunFinished(run="r1", status="ok")]
    (tmp_path / "full").write_text("")
    lines, failed = report(tmp_path / "full" / "main.jaxprof", {"t": [encode_line(event).decode() for event in events]})
    assert failed is True
    assert lines[0].split()[0] == "name"
    assert lines[-1].startswith("not saved: ")
    assert "␛[31m" in "".join(lines)
    assert "\x1b" not in "".join(lines)
