"""Which programs of a folder import JAX, by their text alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jaxprof.workloads.scripts import imports_jax, scripts_with_jax


@pytest.mark.parametrize(
    "line",
    [
        "import jax",
        "import jax  # the profiler",
        "import jax.numpy as jnp",
        "import jax as j, numpy",
        "import os, jax",
        "import numpy as np, jax.numpy as jnp",
        "from jax import jit",
        "from jax.experimental.shard_map import shard_map",
        "try:\n    import jax\nexcept ImportError:\n    pass",
        "import jax\r",
        "import jax; jax.devices()",
        '"""What it does."""\nimport jax',
    ],
)
def test_a_statement_that_imports_jax_is_one(line: str) -> None:
    assert imports_jax(f"import sys\n{line}\n".encode())


@pytest.mark.parametrize(
    "line",
    [
        "import numpy",
        "# import jax",
        "import jaxtyping",
        "import jaxlib",
        "from jaxtyping import Array",
        "import ajax",
        "from . import jax_things",
        '"""\nimport jax\n"""',
        "'''Needs\nfrom jax import jit\n'''",
        "x = 'import jax'",
    ],
)
def test_what_only_looks_like_it_is_none(line: str) -> None:
    assert not imports_jax(f"import sys\n{line}\n".encode())


def test_the_newest_program_comes_first_and_none_is_imported(tmp_path: Path) -> None:
    for age, name in enumerate(("new.py", "old.py")):
        path = tmp_path / name
        path.write_text("import jax\nraise SystemExit('it was imported')\n")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "plain.py").write_text("import numpy\n")
    (tmp_path / ".hidden.py").write_text("import jax\n")
    (tmp_path / "notes.txt").write_text("import jax\n")
    (tmp_path / "package.py").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    assert [path.name for path in scripts_with_jax(tmp_path)] == ["new.py", "old.py"]
    assert scripts_with_jax(tmp_path / "nowhere") == []
