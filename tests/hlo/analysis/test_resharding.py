"""Which collectives move arrays between shardings, in programs that JAX partitions over four devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.findings.finding import HloFinding
from jaxprof.hlo.read.parse import module


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    script = Path(__file__).with_name("meshed.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def resharding(text: str) -> HloFinding | None:
    return next((finding for finding in findings(module(text)) if finding.code == "resharding"), None)


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "mended", "word"),
    [
        ("rows_and_columns", "rows_and_rows", "all-to-all"),
        ("split_argument", "whole_argument", "all-gather"),
        ("split_layer_then_whole", "split_layers_that_fit", "all-gather"),
        ("swapped_axes", "the_same_axes", "collective-permute"),
    ],
)
def test_shardings_that_do_not_fit_each_other(texts: dict[str, str], program: str, mended: str, word: str) -> None:
    found = resharding(texts[program])
    assert found is not None
    assert f"from one sharding to another ({word})" in found.message
    assert (found.bytes or 0) >= 1 << 20
    assert resharding(texts[mended]) is None


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("split_weights", "all-gather"),
        ("whole_result", "all-gather"),
        ("border", "collective-permute"),
        ("asked_for", "all-to-all"),
    ],
)
def test_collectives_that_are_meant(texts: dict[str, str], program: str, word: str) -> None:
    """Weights that are split to save memory, a result that was asked for whole, a border, and the program's own."""
    assert f" {word}(" in texts[program]
    assert resharding(texts[program]) is None
