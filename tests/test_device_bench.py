"""The programs of `bench/device/`, whose causes bound the device, and how what was said of them is judged."""

import pytest

from device import Answer, Program, counts, healthy, judge, past_limits, planted, programs

HEADER = "# about: a loop\n# cause: loop carry\n# expect: whole_carry | copy_traffic\n# run: f\n# mended: g\n"
SOURCE = "def f(x):\n    return x  # <- cause\n"


def finding(code, share, line, saves=None):
    cost = {"seconds": 2.0, "share": share} | ({} if saves is None else {"saves_seconds": saves})
    return {"code": code, "cost": cost, "evidence": {"place": f"/some/folder/loop.py:{line}"}}


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(HEADER + SOURCE)
    return planted(path)


def judged(program, *findings):
    answer = Answer(program.name, list(findings), gain=5.0)
    judge(program, answer)
    return answer


def test_there_are_as_many_programs_as_the_figures_need():
    every = programs()
    names = [program.name for program in every]
    assert len(set(names)) == len(names)
    assert sum(bool(program.cause) for program in every) >= 25
    assert sum(not program.cause for program in every) == 40
    for program in every:
        text = program.path.read_text()
        assert (
            not program.function or f"\n{program.function}_inputs = " in text or f"{program.function}_inputs(" in text
        )


@pytest.mark.parametrize(
    "text",
    [HEADER.replace("# cause: loop carry\n", "") + SOURCE, HEADER + "# colour: red\n" + SOURCE, HEADER + "x = 1\n"],
)
def test_a_header_that_is_not_right_is_refused(tmp_path, text):
    path = tmp_path / "loop.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"loop\.py"):
        planted(path)


def test_the_cause_must_come_first_at_its_line(loop):
    (line,) = loop.lines
    right = judged(loop, finding("copy_traffic", 0.9, line), finding("page_faults", None, 3))
    assert right.first is True
    assert right.line is True
    assert right.others == ["page_faults"]
    assert judged(loop, finding("copy_traffic", 0.9, line + 1)).line is False
    second = judged(loop, finding("page_faults", None, 3), finding("whole_carry", 0.9, line))
    assert second.first is False
    assert second.line is None


def test_a_saving_is_held_against_what_the_twin_gains(loop):
    (line,) = loop.lines
    assert judged(loop, finding("whole_carry", 0.8, line, saves=2.0)).is_near
    assert judged(loop, finding("whole_carry", 0.8, line, saves=1.0)).is_near is False
    assert judged(loop, finding("whole_carry", 0.8, line)).is_near is None


def test_a_trial_is_held_against_the_twin_too():
    assert Answer("loop", gain=5.0, tried=4.0).is_tried_near
    assert Answer("loop", gain=5.0, tried=0.0).is_tried_near is False
    assert Answer("loop", gain=5.0).is_tried_near is None


def test_finding_in_a_healthy_program_is_false_above_a_share(tmp_path):
    path = tmp_path / "well.py"
    path.write_text("# about: nothing\n# allow: layout_copy\ndef f(x): ...\ndef f_inputs(): ...\ndef g(x): ...\n")
    (program,) = healthy(path)
    findings = [finding("padding", 0.04, 1), finding("layout_copy", 0.5, 1), finding("slow_kernel", 0.3, 1)]
    answer = judged(program, *findings, finding("lost_donation", None, 1))
    assert answer.others == ["slow_kernel", "lost_donation"]
    assert past_limits([(program, answer)]) == ["false findings: 2"]


def test_different_results_exceed_the_limit_unless_meant(loop):
    (line,) = loop.lines
    answer = judged(loop, finding("whole_carry", 0.9, line))
    assert past_limits([(loop, answer)]) == []
    answer.same = False
    assert past_limits([(loop, answer)]) == ["loop: its twin has other results"]
    assert counts([(loop, answer)])["first"] == (1, 1)
    assert isinstance(loop, Program)
