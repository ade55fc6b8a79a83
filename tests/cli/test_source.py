"""URLs where commands take a path. `jaxprof script --out URL` as a user does it: in processes of their own, on a store
that does what a test says."""

import json
import os
import re
import shlex
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import flaky_store
from cli.calling import SOURCE, run
from jaxprof.cli import target
from job_folders import job, loop


@pytest.fixture(autouse=True)
def _nothing_fetched(monkeypatch):
    monkeypatch.setattr(target, "_mirrors", {})


@pytest.fixture
def folder(tmp_path):
    return job(tmp_path / "store" / "run.jaxprof.d", loop(), loop(data=0.3), loop())


@pytest.fixture
def address(folder):
    """Of a web server on the folder's folder."""
    pytest.importorskip("aiohttp")
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder.parent))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.process
def test_each_command_takes_a_url_where_it_takes_a_path(call, folder):
    url = f"file://{folder}"
    of_one = f"{url}/process-00001.jaxprof"
    assert "process 1 on node1 is late" in call("open", url).out
    assert "data_waits" in call("explain", of_one).out
    assert call("query", url, "select count(*) as n from runs").out.split() == ["n", "3"]
    assert call("compare", f"{of_one}:r1", f"{url}/process-00000.jaxprof:r1").code == 0
    assert call("export", of_one, "--format", "html").code == 0
    assert "node1, process 1 of 3" in call(of_one).out, "without a terminal a file alone is shown"


def test_a_web_server_is_read_file_by_file(call, address):
    assert "a web server lists no folders" in call("open", f"{address}/run.jaxprof.d").err
    assert "node2, process 2 of 3" in call("open", f"{address}/run.jaxprof.d/process-00002.jaxprof").out
    gone = call("open", f"{address}/nothing.jaxprof")
    assert (gone.code, f"there is nothing at {address}/nothing.jaxprof" in gone.err) == (2, True)


def test_what_a_store_fails_to_give_is_said_and_the_rest_is_shown(call, folder, monkeypatch):
    flaky = flaky_store.register()
    normal = flaky.get_file

    def broken(self, path, *rest, **more):
        if "00002" in path:
            raise ConnectionResetError("connection reset by peer")
        return normal(self, path, *rest, **more)

    monkeypatch.setattr(flaky, "get_file", broken)
    said = call("open", f"flaky://{folder}")
    assert said.code == 0
    assert "1 of 3 files could not be fetched (process-00002.jaxprof: connection reset by peer)" in said.err
    assert "1 of 3 processes have no session here: 2" in said.out


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [
        "open", "open --format json", "open --compiles", "explain", "export", "hlo", "open --keep", "compare URL",
        "run", "sessions rollup", "gate --fail-on flops", "compare --over-time",
        "open --seconds 2",
        "compare --over-time --format json", "script", "compare", "devices", "sessions delete",
        "config completion", "run --describe", "",
    ],
)  # fmt: skip
def test_no_command_repeats_the_secrets_of_a_url(call, words):
    url = "http://alice:hunter22@127.0.0.1:9/run.jaxprof.d?sig=s3cr3tvalue"
    said = call(*words.replace("URL", url).split(), url)
    assert said.code != 0
    assert not {"hunter22", "s3cr3tvalue"} & set(re.findall(r"\w+", said.out + said.err))


@pytest.mark.process
def test_the_copy_here_of_a_url_is_never_named(call, folder, tmp_path):
    (folder / "process-00002.jaxprof").write_bytes(b"")
    url, other = f"file://{folder}", f"file://{job(tmp_path / 'b' / 'other.jaxprof.d', loop(), loop())}"
    shown = call("open", url)
    assert " ".join(shown.out.split()).startswith(f"{url} · 3 processes")
    assert f"{url}/process-00002.jaxprof is empty" in " ".join(shown.out.split())
    data = call("open", url, "--format", "json").data
    assert [data["folder"], *(each["path"] for each in data["processes"])] == [
        url, f"{url}/process-00000.jaxprof", f"{url}/process-00001.jaxprof",
    ]  # fmt: skip
    words = """open URL --format csv; open URL --compiles; explain URL; explain URL --format json; hlo URL;
    sessions rollup URL; explain URL --format markdown; compare URL OTHER; compare URL OTHER --format json;
    export URL; open --keep URL; compare URL OTHER --format markdown; query URL 'SELECT * FROM processes'"""
    for line in words.split(";"):
        said = call(*shlex.split(line.replace("URL", url).replace("OTHER", other)))
        assert "/fetched/" not in said.out + said.err, line


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
    return sorted(path.name for path in (state_home / "spool").rglob("*.jaxprof"))


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
