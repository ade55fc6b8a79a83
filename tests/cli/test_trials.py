"""`jaxprof compare TARGET --try`: whole, with real engines, and what it refuses before one starts."""

import re
from importlib.metadata import version

import pytest

from folding import written
from jaxprof import events as e
from jaxprof.findings.trials import PROPOSED
from jaxprof.session import Session, load
from report import sessions

LOOP = """import jax
import jax.numpy as jnp


def step(x):
    x = jax.vmap(jnp.sin)(x)[:160]
    return jax.lax.scan(lambda carry, _: (carry * 1.5 + 1.0, None), x, length=200)[0]


def step_inputs():
    return (jnp.ones(1 << 20),)
"""
jax_version = tuple(map(int, version("jax").split(".")[:2]))
TIMED = ("--launches", "1", "--format", "json")


@pytest.fixture
def loop(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.sides.LAUNCH_SECONDS", 0.1)
    file = tmp_path / "loop.py"
    file.write_text(LOOP)
    return file


@pytest.mark.process
@pytest.mark.skipif(
    jax_version >= (0, 12), reason="XLA:CPU makes one function of a loop: nothing proposes to unroll it"
)
@pytest.mark.timeout(120)  # five engines, of which each may start late on a busy machine
def test_what_the_findings_propose_is_a_side(call, loop, tmp_path):
    found = call("compare", f"{loop}:step", "--try", *TIMED, "--out", tmp_path / "s.jaxprof").data
    original, unrolled = found["sides"]
    assert "trial" not in original
    assert (unrolled["trial"], unrolled["finding"]) == ("unroll", "small_loop_body")
    (versus,) = found["versus"]
    assert versus["results"]["equal"] is True
    assert versus["sentence"].startswith("B, unroll=4 at loop.py:7: ")
    launches = next(fact for fact in versus["facts"] if fact["fact"] == "kernel_launches")
    assert launches["after"] < launches["before"] / 2, "the loop makes fewer iterations"


@pytest.mark.process
def test_the_call_of_a_session_is_changed_after_a_question_alone(call, loop, tmp_path):
    spec = e.RunSpec(
        workload="loop.py:step", variant="jit", how="jit", device="cpu:0", target=f"{loop}:step", preset="quick"
    )
    events = [e.RunPlanned(run="r1", spec=spec), e.RunFinished(run="r1", status="ok")]
    ran = written(tmp_path / "r.jaxprof", events, sessions.HEADER)
    refused = call("compare", ran, "--try", "small_loop_body")
    assert refused.code == 2
    assert "loop.py:step, in" in refused.err
    again = call("compare", ran, "--try", "small_loop_body", "--yes", *TIMED, "--out", tmp_path / "t.jaxprof").data
    assert again["versus"][0]["sentence"].startswith("B, unroll=4 at loop.py:7: ")


@pytest.mark.process
def test_change_without_effect_is_reported(call, loop, tmp_path):
    said = call(
        "compare", "selu", "--set", "n=1000", "--try", "small_loop_body", *TIMED, "--out", tmp_path / "s.jaxprof"
    )
    assert said.code == 0
    assert said.data["versus"][0]["sentence"] == (
        "B, unroll=4: failed, no call of jax.lax.scan or fori_loop can be changed"
    )
    assert [run.status for run in load(tmp_path / "s.jaxprof", Session).runs.values()] == ["ok", "failed"]


FOLDED = """
import jax, jax.numpy as jnp, numpy
TABLE = numpy.ones((1000, 1000), "float32")

def step(x):
    return x * jax.lax.reduce_window(jnp.asarray(TABLE), -jnp.inf, jax.lax.max, (48, 48), (1, 1), "SAME").sum()
"""


@pytest.mark.process
def test_trial_of_a_compile_without_an_end_names_its_limit(call, tmp_path):
    """XLA folds that constant for a minute; the engines end both sides after two seconds more than they may take."""
    (tmp_path / "folded.py").write_text(FOLDED)
    words = ("--try", "slow_llvm", "--arg", "f32[]", "--max-seconds", "2", "--out", tmp_path / "s.jaxprof")
    tried = call("compare", f"{tmp_path / 'folded.py'}:step", *words)
    assert tried.code == 1
    assert "B, LLVM at level 0, compile: not over after" in tried.out


REFUSED = {
    ("selu", "gelu", "--try"): "--try changes one target",
    ("selu", "--try", "no_such_code"): "unknown finding 'no_such_code'",
    ("selu", "--try", "padding"): "nothing can be tried of padding",
    ("selu", "--try", "--git", "HEAD"): "--git does not apply to what --try changes",
    ("selu", "--try", "--for", "h100"): "--for does not apply to what --try changes",
    ("selu", "gelu", "--yes"): "--yes has no effect without --try",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_cannot_be_tried_is_refused_before_anything_runs(call, words):
    refused = call("compare", *words)
    assert refused.code == 2, refused.err
    assert REFUSED[words] in " ".join(refused.err.split()), refused.err


@pytest.mark.parametrize("code", ["lost_donatoin", "no_such"])
def test_only_what_can_be_tried_is_offered(call, code):
    offered = call("compare", "selu", "--try", code).err.splitlines()[-1]
    assert set(re.findall(r"[a-z0-9]+_[a-z0-9_]+", offered)) <= set(PROPOSED)
    assert "lost_donation" in offered
