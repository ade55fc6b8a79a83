"""Targets: built-in names, files, modules; and what is said of those that cannot be found or imported."""

import sys

import pytest

from jaxprof.base.errors import UsageError
from jaxprof.workloads.find import find, find_all
from tables import rows
from workloads.running import errors, inputs_of

MODEL = """
import functools
import jax
import jax.numpy as jnp
import jaxprof
from neighbour import WIDTH


def gram(x):
    return jnp.dot(x, x.T)


@jax.jit
def step(x):
    return x * WIDTH


def step_inputs(random, n=4):
    return random.standard_normal(n, dtype="float32")


@jaxprof.workload(name="declared-one", inputs=["f32[n]"], parameters={"n": 8})
def declared(x):
    return jnp.sin(x)


half = functools.partial(jnp.multiply, 0.5)
SIZE = 3


class Model:
    @staticmethod
    def forward(x):
        return x + 1

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, x):
        return x - 1

    @jaxprof.workload(inputs=lambda: (model, 2.0))
    def declared_step(self, x):
        return x - 1


class Other(Model):
    pass


model = Model()


if __name__ == "__main__":
    raise SystemExit("run as a script")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with somebody's code, which is the current one; what is imported from it is forgotten afterwards."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("WIDTH = 2.0\n")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n    pass\n")
    (tmp_path / "failing.py").write_text("def helper():\n    return 1 / 0\n\n\nvalue = helper()\n")
    (tmp_path / "missing.py").write_text("import not_a_package_at_all\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "json.py").write_text("def mine(x):\n    return x\n")
    (tmp_path / "empty.py").write_text("")
    package = tmp_path / "package" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("WIDTH = 3.0\n")
    (package / "net.py").write_text("from .sizes import WIDTH\n\n\ndef forward(x):\n    return x * WIDTH\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def refusal(target):
    with pytest.raises(UsageError) as refused:
        find(target)
    return refused.value


def test_a_built_in_name_is_the_catalogue_s():
    assert find("selu").origin == "built in"
    assert [workload.name for workload in find_all("matmul-uniform")] == ["matmul-uniform"]


@pytest.mark.parametrize(
    ("target", "argument", "name"),
    rows("""
        model.py:gram               f32[3,2]  model.py:gram
        ./model.py:gram             f32[3,2]  model.py:gram
        model.py:step               -         model.py:step
        model.py:declared           -         declared-one
        model.py:declared-one       -         declared-one
        model.py:half               f32[3]    model.py:half
        model.py:Model.forward      f32[3]    model.py:Model.forward
        model.py:model.step         -         model.py:model.step
        model:gram                  f32[3,2]  model:gram
        package.inner.net:forward   f32[3]    package.inner.net:forward
        package/inner/net.py:forward  f32[3]  net.py:forward
        json.py:mine                f32[3]    json.py:mine
    """),
)
def test_a_function_of_one_s_own_is_found_and_runs(target, argument, name):
    workload = find(target, [argument] if argument else [])
    assert workload.name == name
    assert workload.origin == target
    parameters = workload.resolve("quick")
    assert max(errors(workload, parameters, inputs_of(workload, parameters)).values()) < 1e-6
    assert find(target, [argument] if argument else []).name == name, "of the module that is loaded"


@pytest.mark.parametrize(
    ("target", "argv", "seen"),
    rows("""
        parsing.py:step  -                       parsing.py
        parsing:step     -                       FOLDER/parsing.py
        parsing.py:step  jobs/train.py --size 7  jobs/train.py --size 7
        parsing.py:step  -m parsing --size 7     parsing.py --size 7
        parsing:step     -m parsing --size 7     FOLDER/parsing.py --size 7
    """),
)
def test_a_file_that_parses_its_arguments_has_its_own(folder, target, argv, seen, monkeypatch):
    (folder / "parsing.py").write_text("import sys\nSEEN = sys.argv\n\n\ndef step(x):\n    return x\n")
    monkeypatch.setattr(sys, "argv", ["engine", "--events-fd", "7"])
    workload = find(target, ["f32[3]"], argv.split())
    assert workload.origin == target
    assert seen.replace("FOLDER", str(folder)) == " ".join(sys.modules["parsing"].SEEN)
    assert sys.argv == ["engine", "--events-fd", "7"]


def test_a_file_alone_lists_what_is_in_it():
    error = refusal("model.py")
    assert "not a function" in error.what
    assert error.hint == "It has: model.py:declared, model.py:gram, model.py:step."
    assert refusal("empty.py").hint == "It defines no function."


@pytest.mark.parametrize(
    ("target", "what", "hint"),
    rows("""
        matmull                     unknown workload 'matmull'                matmul
        no-such-thing-at-all        unknown workload                          Known:
        -                           unknown workload ''                       Known:
        modle.py:gram               there is no file modle.py                 model.py
        nowhere/at/all.py:gram      there is no file                          nowhere/at
        model.py:gramm              has no function 'gramm'                   Did you mean gram?
        model.py:zzz                has no function 'zzz'                     model.py:step
        model.py:Model.step         method of a class, and needs an object    model.py:model.step
        model.py:Other.step         needs an object of it                     other = Other(...), and give model.py
        model.py:SIZE               is not a function (its type is int)       model.py:gram
        model.py:gram               nothing says what they are                gram_inputs()
        broken.py:f                 broken.py, line 2:                        def f(:
        failing.py:f                failing.py failed, line 2: ZeroDivisionError  return 1 / 0
        missing.py:f                line 1: ModuleNotFoundError               --python
        script.py:f                 ended the program while it was imported (exit 3)  __main__
        package:f                   has no function 'f'                       defines no function
        package/:f                  not a Python file                         path/to/file.py:function
        no_such_package.module:f    there is no module 'no_such_package'      --python
        package.nothing:f           there is no module 'package.nothing'      --python
    """),
)
def test_what_cannot_be_found_says_what_to_do(target, what, hint):
    error = refusal(target)
    assert what in error.what
    assert hint in error.hint


OTHER = """
import jax.numpy as jnp


def step(x):
    return x + 1


def two(x, y):
    return x


def none():
    return 1
"""


def test_inputs_of_a_method_may_have_its_object():
    assert find("model.py:Model.declared_step").name == "model.py:Model.declared_step"


def test_a_function_without_inputs_borrows_them(folder):
    (folder / "other.py").write_text(OTHER)
    with pytest.raises(UsageError, match="nothing says what they are"):
        find("other.py:step")
    taken, lender = find("other.py:step", inputs_from="model.py:step"), find("model.py:step")
    assert taken.inputs_from == "model.py:step"
    assert inputs_of(taken, {})[0].tolist() == inputs_of(lender, {})[0].tolist()
    of_sizes = find("other.py:step", inputs_from="selu")
    assert of_sizes.inputs_from == "selu"
    assert of_sizes.resolve("quick", {"n": "6"})["n"] == 6
    assert [each.name for each in find_all("other.py", inputs_from="model.py:step")] == ["other.py:step"]


@pytest.mark.parametrize("written", ['["0", None]', '("0", None)', "lambda mesh: ['0', None]", "3"])
def test_shardings_are_a_list_or_a_function_that_makes_one(folder, written):
    (folder / "split.py").write_text(f"def step(x): return x\nstep_inputs = lambda: 1.0\nstep_shardings = {written}\n")
    shardings = find("split.py:step").shardings
    taken = shardings(None) if callable(shardings) else shardings
    assert taken is None if written == "3" else list(taken) == ["0", None]
