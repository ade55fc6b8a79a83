"""A program whose functions are changed in memory: which ones, and whether they still compute the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxprof.recorder import fixed_program
from jaxprof.recorder.fixed_program import Fix

FILE = "/somewhere/train.py"
IMPORTS = "from functools import partial\nimport jax\nimport jax.numpy as jnp\n"


def run(source: str, how: str, *functions: tuple[str, int], checks: bool = False) -> tuple[dict[str, Any], Fix]:
    """The names that the program defines once it has run, with these functions of it changed."""
    plan = {"how": how, "functions": [[FILE, *each] for each in functions]}
    fix = Fix(plan)
    fix.checks = checks
    names: dict[str, Any] = {"__jaxprof_fixed__": fix}
    exec(fix.code((IMPORTS + source).encode(), FILE), names)
    return names, fix


class TestJit:
    SOURCE = """
def step(x):
    traced.append(isinstance(x, jax.core.Tracer))
    return x * 2

def other(x):
    traced.append(isinstance(x, jax.core.Tracer))
    return x

traced = []
step(jnp.ones(2))
other(jnp.ones(2))
"""

    @pytest.mark.parametrize(
        ("place", "traced"),
        [(("step", 6), [True, False]), (("other", 10), [False, True]), (("step", 10), [False, False])],
    )
    def test_only_the_function_at_the_line_is_under_jit(self, place: tuple[str, int], traced: list[bool]) -> None:
        names, fix = run(self.SOURCE, "jit", place)
        assert names["traced"] == traced
        assert fix.found == sum(traced)

    def test_what_python_decides_by_a_value_cannot_be_under_jit(self) -> None:
        with pytest.raises(jax.errors.TracerBoolConversionError):
            run("def step(x):\n    return x if x.sum() > 0 else -x\n\nstep(jnp.ones(2))\n", "jit", ("step", 5))


ROWS = """
{decorated}
def step(x):
    compiled.append(x.shape)
    return {{"y": jnp.cumsum(x, 1), "n": {number}}}
{after}
compiled, results = [], []
for n in range(3, 30):
    results.append(step(jnp.ones((n, 4)) * n))
"""


def test_random_keys_are_compared_by_their_data() -> None:
    source = "def step(key):\n    return jax.random.split(key)[0]\n\nstep(jax.random.key(1))\n"
    _, fix = run(source, "jit", ("step", 5), checks=True)
    assert (fix.calls, fix.note, set(fix.apart.values())) == (1, "", {0.0})


class TestPad:
    @pytest.mark.parametrize(
        ("decorated", "after"),
        [
            ("@jax.jit", ""),
            ("@partial(jax.jit, donate_argnums=())", ""),
            ("", "step = jax.jit(step)"),
            ("", "from jax import jit\nstep = jit(step, donate_argnums=())"),
        ],
    )
    def test_a_compiled_function_gets_few_shapes_and_returns_what_it_did(self, decorated: str, after: str) -> None:
        names, fix = run(ROWS.format(decorated=decorated, after=after, number="x.shape[1]"), "pad", ("step", 6))
        assert fix.found == 1
        assert {shape[0] for shape in names["compiled"]} >= {3, 8, 16, 32}
        assert len(set(names["compiled"])) <= 6  # and two that say which axes of the results follow
        for n, result in zip(range(3, 30), names["results"], strict=True):
            np.testing.assert_allclose(result["y"], np.cumsum(np.full((n, 4), n), 1), rtol=1e-6)

    @pytest.mark.parametrize(("number", "differs"), [("x.sum()", False), ("x.mean()", True), ("x.shape[0]", True)])
    def test_the_check_finds_what_padding_changes(self, number: str, differs: bool) -> None:
        _, fix = run(ROWS.format(decorated="@jax.jit", after="", number=number), "pad", ("step", 6), checks=True)
        assert fix.calls == 20
        assert (max(fix.apart.values()) > 1e-4) is differs
        assert fix.note == ""


class TestBind:
    LEAVES = """
@jax.jit
def step(tree, x):
    return {used}, x + tree["p0"][0]
tree = {{f"p{{i}}": jnp.full(3, float(i)) for i in range(40)}}
results = [step(tree, jnp.ones(2) * n) for n in range(4)]
"""

    def test_leaves_that_are_not_used_are_left_out(self) -> None:
        names, fix = run(self.LEAVES.format(used='tree["p1"]'), "bind", ("step", 5), checks=True)
        assert (fix.found, fix.calls, fix.apart, fix.note) == (1, 4, {"float32": 0.0}, "")
        names, _ = run(self.LEAVES.format(used='tree["p1"]'), "bind", ("step", 5))
        ((used, *_),) = names["step"]._few.values()
        assert used == [0, 1, 40]
        assert [float(last[1][0]) for last in names["results"]] == [0, 1, 2, 3]

    def test_what_uses_its_leaves_is_called_as_it_is(self) -> None:
        names, _ = run(self.LEAVES.format(used="sum(tree.values())"), "bind", ("step", 5))
        assert list(names["step"]._few.values()) == [None]

    def test_what_is_done_beside_the_result_uses_its_leaves(self) -> None:
        source = self.LEAVES.format(used='[jax.debug.callback(print, leaf) for leaf in tree.values()] and tree["p1"]')
        names, _ = run(source, "bind", ("step", 5))
        assert list(names["step"]._few.values()) == [None]

    def test_another_shape_of_an_unused_leaf_and_a_static_argument_give_the_program_its_own_result(self) -> None:
        source = """
@partial(jax.jit, static_argnames="times")
def step(tree, times=1):
    return tree["a"] * times + tree["b"].shape[0]
results = [step({"a": 1.0, "b": jnp.ones(size), "c": 0}) for size in (3, 4, 3)]
static = step({"a": 1.0, "b": jnp.ones(3), "c": 0, "d": 0}, 2)
"""
        names, _ = run(source, "bind", ("step", 5))
        assert [float(result) for result in names["results"]] == [4, 5, 4]
        assert float(names["static"]) == 5

    def test_modules_of_nnx_are_bound_and_learn_as_before(self) -> None:
        pytest.importorskip("flax.nnx")
        source = """
from flax import nnx

class Model(nnx.Module):
    def __init__(self):
        self.layer = nnx.Linear(2, 2, rngs=nnx.Rngs(0))

@nnx.jit
def step(model, x):
    model.layer.kernel[...] = model.layer.kernel[...] * 0.5
    return model.layer(x)

model = Model()
results = [step(model, jnp.ones(2)) for _ in range(4)]
kernel = model.layer.kernel[...]
"""
        place = ("step", 11)
        plain = run(source, "")[0]
        bound = run(source, "bind", place)[0]
        assert bound["step"]._modules == (bound["model"],)
        np.testing.assert_array_equal(plain["kernel"], bound["kernel"])
        np.testing.assert_array_equal(plain["results"], bound["results"])
        checked, fix = run(source, "bind", place, checks=True)
        assert (fix.calls, fix.apart, fix.note) == (4, {"float32": 0.0}, "")
        np.testing.assert_array_equal(plain["kernel"], checked["kernel"])


def test_the_check_gives_the_program_its_own_result_and_sees_another_structure() -> None:
    source = """
def step(x):
    return (x, x) if isinstance(x, jax.core.Tracer) else x + 1
result = step(jnp.ones(2))
"""
    names, fix = run(source, "jit", ("step", 6), checks=True)
    assert names["result"].tolist() == [2, 2]
    assert "structure" in fix.note


def test_the_check_leaves_donated_and_written_arguments_alone() -> None:
    source = """
class Model:
    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(self, x):
        return x + 1

results = [Model().step(jnp.ones((n, 2))).shape for n in (3, 5, 6)]
lowered = Model.step.lower(Model(), jnp.ones((3, 2)))
"""
    names, fix = run(source, "pad", ("step", 7), checks=True)
    assert names["results"] == [(3, 2), (5, 2), (6, 2)]
    assert (fix.calls, fix.apart, fix.note) == (3, {"float32": 0.0}, "")
    assert run(source, "pad", ("step", 7))[0]["results"] == names["results"]


def test_results_that_are_not_alike_for_two_sizes_are_not_padded() -> None:
    source = """
@jax.jit
def step(x):
    return x[:2].reshape(1, 2) if x.shape[0] % 2 else x[:2]
results = [step(jnp.ones(n)).shape for n in (3, 5, 6)]
"""
    names, _ = run(source, "pad", ("step", 6))
    assert names["results"] == [(1, 2), (1, 2), (2,)]


@pytest.mark.process
def test_a_program_is_itself_and_a_module_of_it_is_changed(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text(
        "import types\n"
        "tree = types.SimpleNamespace(leaves=lambda x: [x], structure=lambda x: '*')\n"
        "def jit(function):\n    return lambda x: 'jitted'\n"
    )
    (tmp_path / "model.py").write_text("def step(x):\n    return x\n")
    (tmp_path / "train.py").write_text(
        "import sys, model\n"
        "print(__name__, __file__, sys.argv, sys.modules['__main__'].model is model, model.step('plain'))\n"
    )
    plan = {"how": "jit", "functions": [[str(tmp_path / "model.py"), "step", 2]]}

    def started(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    plain = started("train.py", "--epochs", "3")
    assert plain.split()[-1] == "plain"
    file = fixed_program.__file__
    assert started(file, json.dumps({"how": ""}), "train.py", "--epochs", "3") == plain
    assert started(file, json.dumps(plan), "train.py", "--epochs", "3") == plain.replace("plain", "jitted")
