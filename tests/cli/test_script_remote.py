"""`jaxprof script --out URL`, as a user does it: in processes of their own, on a store that does what a test says."""

import json
import os

import pytest

import flaky_store
from cli.calling import SOURCE, run

PROGRAM = """\
import os, sys, time
sys.stdout.write(f"rank {os.environ.get('RANK', 'none')}\\n")
raise SystemExit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


@pytest.fixture
def store(tmp_path):
    flaky_store.install(tmp_path / "plugin")
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path / "store"


def record(store, *words, after=(), trouble=None, **more):
    variables = {flaky_store.VARIABLE: json.dumps(trouble or {}), "JAXPROF_UPLOAD_WAIT": "20", **more}
    variables["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(store.parent / "plugin")])
    return run("script", *words, "train.py", *after, cwd=store.parent, **variables)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def spooled(state_home):
    found = (state_home / "spool").rglob("*.jaxprof")
    return sorted(path.name for path in found)


@pytest.mark.process
def test_a_session_is_recorded_into_a_store(store, state_home):
    said = record(store, "--out", f"flaky://{store}/run.jaxprof", after=("3",))
    assert (said.code, said.out) == (3, "rank none\n"), said.err
    assert f"uploaded: flaky://{store}/run.jaxprof" in said.err
    assert '"type":"session_closed"' in (store / "run.jaxprof").read_text()
    assert (names(store), spooled(state_home)) == (["run.jaxprof"], []), "the copy here is deleted"
    again = record(store, "--out", f"flaky://{store}/run.jaxprof")
    assert (again.code, again.out) == (2, ""), "it did not start"


@pytest.mark.process
def test_a_job_of_this_machine_is_recorded_into_a_store(store, state_home):
    said = record(store, "-n", "2", "--out", f"flaky://{store}/run")
    assert said.code == 0, said.err
    assert sorted(said.out.splitlines()) == ["rank 0", "rank 1"]
    assert names(store) == ["run.jaxprof.d/process-00000.jaxprof", "run.jaxprof.d/process-00001.jaxprof"]
    assert spooled(state_home) == []
    fewer = record(store, "-n", "1", "--force", "--out", f"flaky://{store}/run.jaxprof.d")
    assert fewer.code == 0, fewer.err
    assert names(store) == ["run.jaxprof.d/process-00000.jaxprof"], "the former job was replaced"


@pytest.mark.process
@pytest.mark.parametrize("trouble", [{"error": "the store is down"}, {"seconds": 2}], ids=["dies", "hangs"])
def test_a_store_that_dies_changes_nothing_for_the_program_and_loses_nothing(store, state_home, trouble):
    told = {"only": "put", **trouble}
    said = record(store, "--out", f"flaky://{store}/run.jaxprof", after=("5",), trouble=told, JAXPROF_UPLOAD_WAIT="0.5")
    assert (said.code, said.out) == (5, "rank none\n"), said.err
    assert "not uploaded to flaky://" in said.err
    assert f"all of it is in {state_home}/spool/" in said.err
    assert spooled(state_home) == ["run.jaxprof"]


@pytest.mark.process
def test_a_store_that_refuses_is_said_before_the_program_starts(store):
    trouble = {"only": "put", "error": "403 Forbidden"}
    said = record(store, "--out", f"flaky://{store}/run.jaxprof", trouble=trouble)
    assert (said.code, said.out) == (2, "")
    assert f"flaky://{store}/run.jaxprof refuses access: 403 Forbidden" in said.err


@pytest.mark.process
def test_no_secret_of_a_url_is_in_the_session(store):
    said = record(store, "--out", f"flaky://alice:hunter22@{store}/run.jaxprof")
    kept = [path.read_text() for path in store.parent.rglob("*.jaxprof")]
    assert kept
    assert "hunter22" not in "".join((said.err, *kept))
