"""The programs of a run of pytest, saved and compared with those of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.api.session import Session, load
from jaxprof.errors import JaxprofError
from jaxprof.events import ESTIMATED_BY, CostReported, RunFinished, RunPlanned, RunSpec
from jaxprof.session.log import new_header
from jaxprof.session.log.baselines import Baselines
from jaxprof.session.log.codec import encode_line
from jaxprof.testing import reports as saved
from jaxprof.testing.reports import ReportOptions, read_options, report
from testing.conftest import Run

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
def test_save_and_compare(run_tests: Run, run_tests_here: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_tests(TESTS, "-n", "1", "--jaxprof-save=main")
    assert first.ret == 0, first.stdout.str()
    first.stdout.fnmatch_lines(["name * kernels *FLOPs *bytes *peak *compiles", "saved: *0001_main.jaxprof"])
    rows = [line.split() for line in first.stdout.lines if line.startswith("test_") and "::" not in line]
    assert sorted((row[0], row[-1]) for row in rows) == [
        ("test_other", "1"),
        ("test_step[4]", "1"),
        ("test_step[8]", "1"),
    ]
    session = load(folder / ".jaxprof" / "0001_main.jaxprof")
    assert sorted((run.plan.workload, run.plan.variant, run.status) for run in session.runs.values()) == [
        ("test_it.py::test_other", "<lambda>", "ok"),
        ("test_it.py::test_step[4]", "step", "ok"),
        ("test_it.py::test_step[8]", "step", "ok"),
    ]
    assert all("hlo" in run.texts for run in session.runs.values())

    same = run_tests_here(TESTS, "--jaxprof-compare=main", *LIMITS)
    assert same.ret == 0, same.stdout.str()
    same.stdout.fnmatch_lines(["limits: all 9 held"])
    same.stdout.no_fnmatch_line("* (+*")

    monkeypatch.setenv("CHANGE", "fusion")
    broken = run_tests_here(TESTS, "--jaxprof-compare", "0001", *LIMITS)
    assert broken.ret == pytest.ExitCode.TESTS_FAILED
    broken.stdout.fnmatch_lines(
        [
            "in the base, and not called now: test_it.py::test_other <lambda>",
            "limits: 4 of 6 exceeded",
            "  exceeded *test_step[[]*[]] step cpu:0  kernels *",
            "*3 passed, 1 skipped*",
        ]
    )

    monkeypatch.setenv("CHANGE", "recompile")
    recompiled = run_tests_here(TESTS, "--jaxprof-compare=main", *LIMITS)
    assert recompiled.ret == pytest.ExitCode.TESTS_FAILED
    recompiled.stdout.fnmatch_lines(
        [
            "test_step[[]8[]] step * 2 (+1)",
            "not in the base: test_it.py::test_step[[]8[]] step 2, test_it.py::test_step[[]4[]] step 2",
            "limits: 2 of 9 exceeded",
            "  exceeded *test_step[[]8[]] step cpu:0  compiles *",
        ]
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("", "", ("kernels",)), "--jaxprof-fail-on needs a base. --jaxprof-compare=BASE"),
        (("a b", None, ()), "--jaxprof-save a b is a path, or no name"),
        ((".", None, ()), "--jaxprof-save . is a path"),
        ((None, "main", ()), "unknown session in .jaxprof 'main'. "),
        ((None, "no/main", ()), "there is no file no/main"),
        (
            (None, "0001", ("run:5%",)),
            "--jaxprof-fail-on run:5% is a time. Two runs of pytest are not measured together",
        ),
        ((None, "0001", ("run",)), "--jaxprof-fail-on run is a time, and two times are never equal"),
        ((None, "0001", ("kernel",)), "unknown fact 'kernel'. Did you mean kernels"),
        ((None, "0001", ("kernels 5",)), "cannot read --jaxprof-fail-on 'kernels 5'"),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(tmp_path: Path, options: tuple, said: str) -> None:
    saved.save(Session(new_header()), tmp_path, "mane")
    with pytest.raises(pytest.UsageError) as raised:
        read_options(tmp_path, *options)
    assert said in str(raised.value)


def test_a_file_has_the_next_number_and_none_is_replaced(tmp_path: Path) -> None:
    paths = [saved.save(Session(new_header()), tmp_path, name) for name in ("main", "main", "", "b_c")]
    assert [path.name for path in paths] == [
        "0001_main.jaxprof",
        "0002_main.jaxprof",
        "0003.jaxprof",
        "0004_b_c.jaxprof",
    ]
    assert saved.find("main", tmp_path) == paths[1]
    assert saved.find("0001", tmp_path) == saved.find("0001_main", tmp_path) == paths[0]
    assert saved.find("0003", tmp_path) == paths[2]
    assert saved.find("b_c", tmp_path) == paths[3]
    assert saved.find(str(paths[0]), tmp_path) == paths[0]


def test_a_baseline_is_found_by_its_name_after_what_is_kept_beside_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path / "home"))
    session = Session(new_header()).save(tmp_path / "s.jaxprof")
    kept = Baselines().save("release", session, replace=False)
    assert saved.find("release", tmp_path) == kept
    beside = saved.save(Session(new_header()), tmp_path, "release")
    assert saved.find("release", tmp_path) == beside


def lines(flops: float | None = 10.0, arguments: tuple[str, ...] = ("f32[4]",), status: str = "ok") -> list[str]:
    """The events of a test that called one program."""
    spec = RunSpec(workload="t.py::test", variant="step", how="compile", device="cpu:0", arguments=arguments)
    events = [
        RunPlanned(run="r1", spec=spec),
        CostReported(run="r1", flops=flops, bytes_accessed=None, source=ESTIMATED_BY),
        RunFinished(run="r1", status=status, error="" if status == "ok" else "no memory"),
    ]
    return [encode_line(event).decode() for event in events]


def compare(tmp_path: Path, before: list[str], now: list[str], *limits: str):
    base = saved.save(saved.session_of({"t": before}), tmp_path, "base")
    return report(read_options(tmp_path, None, str(base), limits), {"t": now})


def test_what_grew_is_passed_and_what_is_unknown_is_undecided(tmp_path: Path) -> None:
    grown = compare(tmp_path, lines(10.0), lines(11.0), "flops:1%", "bytes")
    assert grown.failed
    assert "limits: 1 of 2 exceeded" in grown.lines
    assert any("undecided" in line and "not known of either side" in line for line in grown.lines)
    assert not compare(tmp_path, lines(10.0), lines(10.05), "flops:1%").failed


def test_another_size_is_undecided_and_fails_nothing(tmp_path: Path) -> None:
    other = compare(tmp_path, lines(10.0), lines(20.0, ("f32[8]",)), "flops")
    assert not other.failed
    assert "limits: none of 1 exceeded, 1 undecided" in other.lines
    assert any("other arguments" in line for line in other.lines)


def test_a_base_that_is_no_session_fails_the_run_and_loses_no_table(tmp_path: Path) -> None:
    base = tmp_path / "base.jaxprof"
    base.write_text("HloModule m\n")
    shown = report(ReportOptions(tmp_path, "kept", base, ()), {"t": lines()})
    assert shown.failed
    assert shown.lines[0].startswith("name")
    assert any(line.startswith("not compared: ") for line in shown.lines)
    assert (tmp_path / ".jaxprof" / "0001_kept.jaxprof").exists()


def test_a_folder_that_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / ".jaxprof").write_text("")
    shown = report(ReportOptions(tmp_path, "kept", None, ()), {"t": lines()})
    assert shown.failed
    assert any(line.startswith("not saved: ") for line in shown.lines)


def test_a_run_of_several_tests_numbers_the_runs(tmp_path: Path) -> None:
    session = saved.session_of({"a": lines(), "b": [line.replace("::test", "::more") for line in lines()]})
    assert [(run.id, run.plan.workload) for run in session.runs.values()] == [
        ("r1", "t.py::test"),
        ("r2", "t.py::more"),
    ]
    with pytest.raises(JaxprofError):
        saved.find("nothing", tmp_path)


def test_names_from_outside_are_escaped(tmp_path: Path) -> None:
    odd = [line.replace("t.py::test", "t.py::test[\\u001b[31m]") for line in lines()]
    shown = report(ReportOptions(tmp_path, None, None, ()), {"t": odd})
    assert "␛[31m" in "".join(shown.lines)
    assert "\x1b" not in "".join(shown.lines)
