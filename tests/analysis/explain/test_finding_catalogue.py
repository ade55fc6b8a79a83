"""The catalogue holds every finding of every source, and leads to pages that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.analysis.explain.catalogue import SOURCES, entries, find_entry
from jaxprof.analysis.programs.findings import CODES, REMARKS
from jaxprof.errors import UsageError
from jaxprof.hlo.analysis.findings.codes import HLO_FINDINGS

DOCS = Path(__file__).parents[3] / "docs"


def test_every_finding_is_an_entry_of_one_source():
    by_source = {source: {entry.code for entry in entries().values() if entry.source == source} for source in SOURCES}
    assert by_source["program"] == {*CODES, *REMARKS}
    assert by_source["hlo"] == set(HLO_FINDINGS)
    assert all(by_source.values())
    assert len({code.replace("_", "-") for code in entries()}) == len(entries())


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.code)
def test_an_entry_is_whole(entry):
    assert all((entry.title, entry.means, entry.fix))
    page, _, anchor = entry.page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    assert not anchor or anchor in {re.sub(r"[^\w\- ]", "", each).lower().replace(" ", "-") for each in headings}


@pytest.mark.process
def test_each_flag_that_an_entry_names_exists_in_this_jaxlib():
    """XLA ends a process that sets one that it does not know, and names all of these."""
    text = " ".join(f"{entry.means} {entry.fix}" for entry in entries().values())
    flags = sorted(set(re.findall(r"--xla_\w+=[\w,]*", text)))
    assert len(flags) >= 4
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join([*flags, "--xla_no_such_flag=1"])}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, check=False).stderr
    assert re.findall(r"--xla_\w+", said) == ["--xla_no_such_flag"]


def test_a_code_is_found_by_its_words_and_an_unknown_one_is_refused_with_similar_ones():
    assert find_entry("host_sync").code == find_entry(" HOST-SYNC ").code == "host_sync"
    with pytest.raises(UsageError, match="host_sync"):
        find_entry("host-sink")
