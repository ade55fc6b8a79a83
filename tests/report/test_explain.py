"""Text that fits a small terminal, JSON that fits a prompt, Markdown that shows every character."""

import json
import socket
from dataclasses import replace

import pytest

from analysis import made_runs
from folding import fold
from golden import figures_text, held
from jaxprof import events as e
from jaxprof.analysis.explain.derive import explanation
from jaxprof.analysis.explain.model import Abstention, FindingCost, RankedFinding
from jaxprof.analysis.finding import Finding
from jaxprof.report.envelope import json_pieces
from jaxprof.report.explain import HEIGHT, WIDTH, cost_text, explanation_json, explanation_lines, explanation_markdown
from jaxprof.text import columns
from report import sessions

_LONG = "a sentence that goes on and on, with figures and names, until it is longer than anybody wants to read; " * 4
_VERIFY = "jaxprof script --plain experiments/train_the_model.py --config configs/large.yaml --epochs 3"


def crowded(findings=5, **more):
    """An explanation as long as it can be."""
    finding = RankedFinding(
        sentence=Finding("static_argument_varies", _LONG, own_fix=_LONG),
        cost=FindingCost(
            scope="program", seconds=6.01234567, low=5.61234567, high=6.41234567, share=0.3123456, estimate=True
        ),
        verify=_VERIFY,
        run="r1",
        also=("r2", "r3", "r4", "r5", "r6", "r7"),
        where=e.SourceLocation("/home/me/work/experiments/train_the_model.py", 1234),
        directory="/home/me/work",
        code_line="losses.append(float(loss_of_the_step(params, optimizer_state, batch)))  # a long line of code too",
        kernels=("loop_multiply_subtract_fusion.123",) * 5,
        function="train_step",
        compilations=1234,
    )
    unknown = tuple(Abstention(f"no-{number}", _LONG, _VERIFY) for number in range(4))
    base = explanation(sessions.whole(), "s")
    return replace(
        base, findings=tuple(replace(finding, **more) for _ in range(findings)), left_out=3, abstentions=unknown
    )


@pytest.mark.parametrize("findings", [0, 1, 5])
def test_text_fits_a_small_terminal(findings):
    explained = crowded(findings)
    verified = tuple(replace(each, verify=f"{_VERIFY} {number}") for number, each in enumerate(explained.findings))
    for form in (explained, replace(explained, findings=verified)):
        lines = explanation_lines(form)
        assert len(lines) <= HEIGHT
        assert max(map(columns, lines)) <= max(WIDTH, len(_VERIFY) + 8)
        assert sum("static_argument_varies" in line for line in lines) == findings


def test_json_fits_a_prompt_however_long_its_sentences_are():
    text = "".join(json_pieces(explanation_json(crowded())))
    assert len(text) < 7_000
    data = json.loads(text)
    assert len(data["findings"]) == 5
    assert data["findings"][0]["cost"]["ci95_seconds"] == [5.612, 6.412]
    assert data["findings"][0]["evidence"]["source"] == "experiments/train_the_model.py:1234"


def test_markdown_has_each_finding_and_no_fence_can_be_closed():
    text = explanation_markdown(crowded(2, verify="jaxprof script 'a```b.py'"))
    assert text.count("static\\_argument\\_varies") == 2
    assert text.count("``````sh") == 2
    assert text.count("``````") == 4


COSTS = [
    FindingCost(scope="program"),
    FindingCost(scope="module", bytes=8 << 20),
    FindingCost(scope="program", seconds=6.0, share=0.3),
    FindingCost(scope="call", seconds=6.0, low=5.0, high=7.0, estimate=True),
    FindingCost(scope="call", seconds=6.0, saves_seconds=2.0, estimate=True),
    FindingCost(scope="profile", seconds=6.0, share=0.5, at_most=True),
]


def test_what_a_cost_is_called():
    held("costs.txt", figures_text(*map(cost_text, COSTS)))


def test_what_was_compiled_and_not_run_says_so():
    run = made_runs.run(hlo=sessions.TRANSPOSES, workload="m.py:step", how="compile", device="h100")
    session = fold(sessions.HEADER, run)
    lines = explanation_lines(explanation(session, "s"))
    assert lines[0] == "r1 m.py:step jit h100: compiled, and not run"
    command = "jaxprof hlo m.py:step --variant jit --for h100 --findings"
    assert f"verify: {command}" not in lines, "these words came from another machine"
    assert f"verify (from the file): {command}" in " ".join(" ".join(lines).split())
    session.header = replace(session.header, host=socket.gethostname())
    assert f"verify: {command}" in explanation_lines(explanation(session, "s"))
