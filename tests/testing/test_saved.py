"""The programs of a run of pytest, saved and compared with those of another."""

import pytest

from jaxprof.api.session import Session, load
from jaxprof.errors import JaxprofError
from jaxprof.events import RunFinished, RunPlanned, RunSpec
from jaxprof.session.log import new_header
from jaxprof.session.log.baselines import Baselines
from jaxprof.session.log.codec import encode_line
from jaxprof.testing import reports as saved
from jaxprof.testing.reports import ReportOptions, read_options, report

TESTS = """
import os

import jax
import numpy as np
import pytest

CHANGE = os.environ.get("CHANGE")
X = np.ones((8, 16), np.float32)


@jax.jit
def step(x):
    x = x * 2
    if CHANGE == "fusion":
        x = jax.numpy.sort(x)
    return (x + 1).sum()


@pytest.mark.parametrize("rows", [8, 4])
def test_step(jaxprof, rows):
    jaxprof(step, X[:rows])
    jaxprof(step, X[: rows - 1] if CHANGE == "recompile" else X[:rows])


@pytest.mark.skipif(CHANGE == "fusion", reason="gone")
def test_other(jaxprof):
    jaxprof(lambda x: x + 1, X)


def test_without():
    pass
"""
LIMITS = ("--jaxprof-fail-on", "kernels", "--jaxprof-fail-on=flops:1%", "--jaxprof-fail-on", "compiles")


@pytest.mark.process
def test_save_and_compare(run_tests, run_tests_here, folder, monkeypatch):
    first = run_tests(TESTS, "-n", "1", "--jaxprof-save=main")
    assert first.ret == 0, first.stdout.str()
    rows = [line.split() for line in first.stdout.lines if line.startswith("test_") and "::" not in line]
    names = ["test_other", "test_step[4]", "test_step[8]"]
    assert sorted((row[0], row[-1]) for row in rows) == [(name, "1") for name in names]
    session = load(folder / ".jaxprof" / "0001_main.jaxprof")
    assert sorted((run.plan.workload, run.plan.variant, run.status) for run in session.runs.values()) == [
        (f"test_it.py::{name}", variant, "ok")
        for name, variant in zip(names, ("<lambda>", "step", "step"), strict=True)
    ]
    assert all("hlo" in run.texts for run in session.runs.values())
    for change, base, code, lines in (
        ("", "main", pytest.ExitCode.OK, ["limits: all 9 held"]),
        (
            "fusion", "0001", pytest.ExitCode.TESTS_FAILED,
            [
                "in the base, and not called now: test_it.py::test_other <lambda>",
                "limits: 4 of 6 exceeded",
                "  exceeded *test_step[[]*[]] step cpu:0  kernels *",
                "*3 passed, 1 skipped*",
            ],
        ),
        (
            "recompile", "main", pytest.ExitCode.TESTS_FAILED,
            [
                "test_step[[]8[]] step * 2 (+1)",
                "not in the base: test_it.py::test_step[[]8[]] step 2, test_it.py::test_step[[]4[]] step 2",
                "limits: 2 of 9 exceeded",
                "  exceeded *test_step[[]8[]] step cpu:0  compiles *",
            ],
        ),
    ):  # fmt: skip
        monkeypatch.setenv("CHANGE", change)
        ran = run_tests_here(TESTS, "--jaxprof-compare", base, *LIMITS)
        assert ran.ret == code, ran.stdout.str()
        ran.stdout.fnmatch_lines(lines)


@pytest.mark.parametrize(
    "options",
    [
        ("", "", ("kernels",)), ("a b", None, ()), (None, "main", ()), (None, "no/main", ()),
        (None, "0001", ("run:5%",)), (None, "0001", ("kernel",)), (None, "0001", ("kernels 5",)),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_followed_is_refused(tmp_path, options):
    saved.save(Session(new_header()), tmp_path, "mane")
    with pytest.raises(pytest.UsageError):
        read_options(tmp_path, *options)


def test_a_file_has_the_next_number_and_none_is_replaced(tmp_path, state_home):
    names = ["0001_main.jaxprof", "0002_main.jaxprof", "0003.jaxprof", "0004_b_c.jaxprof"]
    paths = [saved.save(Session(new_header()), tmp_path, name) for name in ("main", "main", "", "b_c")]
    assert [path.name for path in paths] == names
    for name, found in (("main", 1), ("0001", 0), ("0001_main", 0), ("0003", 2), ("b_c", 3), (str(paths[0]), 0)):
        assert saved.find(name, tmp_path) == paths[found]
    for name in ("main", "release"):
        kept = Baselines().save(name, paths[0], replace=False)
    assert saved.find("release", tmp_path) == kept, "after what is kept beside the tests"
    with pytest.raises(JaxprofError):
        saved.find("nothing", tmp_path)


def lines():
    """The events of a test that called one program."""
    spec = RunSpec(workload="t.py::test", variant="step", how="compile", device="cpu:0")
    events = [RunPlanned(run="r1", spec=spec), RunFinished(run="r1", status="ok")]
    return [encode_line(event).decode() for event in events]


def test_what_is_unknown_is_undecided(tmp_path):
    base = saved.save(saved.session_of({"t": lines()}), tmp_path, "base")
    shown = report(read_options(tmp_path, None, str(base), ["flops"]), {"t": lines()})
    assert (shown.failed, "limits: none of 1 exceeded, 1 undecided" in shown.lines) == (False, True)


def test_a_base_that_is_no_session_or_a_folder_without_room_fails_the_run_and_loses_no_table(tmp_path):
    base = tmp_path / "base.jaxprof"
    base.write_text("HloModule m\n")
    odd = [line.replace("t.py::test", "t.py::test[\\u001b[31m]") for line in lines()]
    shown = report(ReportOptions(tmp_path, "kept", base, ()), {"t": odd})
    assert (shown.failed, shown.lines[0].startswith("name")) == (True, True)
    assert any(line.startswith("not compared: ") for line in shown.lines)
    assert ("␛[31m" in "".join(shown.lines), "\x1b" in "".join(shown.lines)) == (True, False)
    assert (tmp_path / ".jaxprof" / "0001_kept.jaxprof").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".jaxprof").write_text("")
    shown = report(ReportOptions(tmp_path / "full", "kept", None, ()), {"t": lines()})
    assert (shown.failed, any(line.startswith("not saved: ") for line in shown.lines)) == (True, True)
