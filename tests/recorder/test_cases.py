"""Of a small program of `bench/cases/` and its mended twin: what is planted is found at its line, and not in the twin.
The harness of the small programs: reading a header, and judging what was said of a program."""

import pytest

from case_files import Found, Outcome, cases, judge, read_case
from jaxprof.findings.programs import CHECKS

ALL = cases()
BY_NAME = {case.name: case for case in ALL}


def test_the_mended_twin_must_not_have_what_was_planted():
    for case in ALL:
        if case.mended:
            twin = BY_NAME[case.mended]
            planted = set(case.expected[0])
            assert "*" in twin.forbidden or planted <= twin.forbidden
            assert not planted & {code for alternatives in twin.expected for code in alternatives}


def test_every_finding_has_a_case_with_a_mended_twin():
    paired = {code for case in ALL if case.mended for alternatives in case.expected for code in alternatives}
    endings = {"program_failed", "standstill", "unfinished_compile"}  # these programs all end, and end well
    assert paired >= {check.code for check in CHECKS} - endings


HEADER = """\
# about: a loader
# verdict: data-bound | host-bound
# expect: data_waits | host_work, host_sync
# forbid: op_by_op_loop
# lines: data_waits@cause
# advice-not: put jax.jit on `\\w+`
"""
PROGRAM = "import jax\nfor batch in loader():  # <- cause\n    step(batch)\n"


def outcome(*codes, verdict="data-bound", line=8, file="/x/c.py", advice=""):
    return Outcome(tuple(Found(code, "it waits", advice, line, file) for code in codes), verdict, 0, "", 1.0)


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        (outcome("data_waits", "host_sync"), []),
        (outcome("host_work", "host_sync", verdict="host-bound", line=None), []),
        (outcome("data_waits", "host_sync", verdict="device-bound"), ["verdict"]),
        (outcome("data_waits", "host_sync", verdict="-"), ["verdict"]),
        (outcome("host_sync", "data_waits"), ["first"]),
        (outcome("data_waits"), ["missing"]),
        (outcome(), ["missing", "missing"]),
        (outcome("data_waits", "host_sync", "op_by_op_loop"), ["forbidden"]),
        (outcome("data_waits", "host_sync", line=9), ["line"]),
        (outcome("data_waits", "host_sync", file="/x/other.py"), ["line"]),
        (outcome("data_waits", "host_sync", advice="put jax.jit on `loader`"), ["advice", "advice"]),
        (Outcome((), "-", 1, "Traceback", 1.0), ["run"]),
    ],
)
def test_each_kind_of_fault(said, kinds, tmp_path):
    (tmp_path / "c.py").write_text(HEADER + PROGRAM)
    assert [fault.kind for fault in judge(read_case(tmp_path / "c.py"), said)] == kinds


@pytest.mark.parametrize(
    ("header", "wrong"),
    [
        ("# about: x\n", "no `verdict`"),
        ("# about: x\n# verdict: data\n", "no verdict is called data"),
        ("# about: x\n# verdict: -\n# lines: host_sync@here\n", "no line carries the marker"),
        ("# about: x\n# verdict: -\n# forbid: *\n# forbid: host_sync\n", "nobody reads"),
    ],
)
def test_a_header_that_is_not_right_is_refused(header, wrong, tmp_path):
    (tmp_path / "c.py").write_text(header + PROGRAM)
    with pytest.raises(ValueError, match=wrong):
        read_case(tmp_path / "c.py")
