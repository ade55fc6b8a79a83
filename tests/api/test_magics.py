"""`%%jaxprof` in a real IPython shell, and what notebooks show of a session."""

import pytest

import jaxprof


@pytest.fixture
def shell(monkeypatch, tmp_path):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made = InteractiveShell()
    made.run_line_magic("load_ext", "jaxprof")
    cell = "import jax, jax.numpy as jnp\ndef step(x, n=2):\n    return jnp.tanh(x) * n\nx = jnp.ones(8)"
    made.run_cell(cell, store_history=True)
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_the_session_of_a_line_is_shown_as_text_and_as_markdown(shell):
    shell.run_cell("import jaxprof; s = jaxprof.profile(step, x, budget_seconds=0.05)")
    shown, _ = shell.display_formatter.format(shell.user_ns["s"])
    assert shown["text/plain"] == str(shell.user_ns["s"])
    assert shown["text/markdown"].startswith("```text\nsession ")
    listed, _ = shell.display_formatter.format([shell.user_ns["s"]])
    assert listed["text/plain"].startswith("[<jaxprof.Session")


def test_a_cell_is_recorded_and_stays_as_it_is(shell, tmp_path, capsys):
    path = tmp_path / "cell.jaxprof"
    cell = "jitted = jax.jit(step)\nfor size in (3, 4):\n    last = jitted(jnp.ones(size))\nprint('done')\nlast.shape"
    assert shell.run_cell(f"%%jaxprof {path}\n{cell}", store_history=True).success, "a notebook counts its cells"
    shown = capsys.readouterr().out
    assert "done" in shown
    assert "(4,)" in shown
    assert shell.user_ns["last"].shape == (4,)
    program = jaxprof.load(path).runs["r1"].program
    assert (program.started.how, program.started.argv) == ("cell", ["In [2]"])
    steps = [row for row in program.compiled if row.function == "step"]
    assert {(row.called_from.file, row.called_from.line, row.defined_at.file) for row in steps} == {
        ("In [2]", 4, "In [1]"),
    }  # fmt: skip
    assert sum(row.count for row in steps) == 2
    shell.run_cell(f"%%jaxprof {tmp_path / 'other.jaxprof'}\n1 / 0")
    assert "ZeroDivisionError" in capsys.readouterr().out
