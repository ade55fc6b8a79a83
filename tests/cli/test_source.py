"""URLs where commands take a path."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import flaky_store
from cli.calling import Caller
from jaxprof.cli import source
from job_folders import job, loop


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing on stderr."""

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture(autouse=True)
def _nothing_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_mirrors", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return job(tmp_path / "store" / "run.jaxprof.d", loop(), loop(data=0.3), loop())


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """Of a web server on the folder's folder."""
    pytest.importorskip("aiohttp")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder.parent))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_each_command_takes_a_url_where_it_takes_a_path(call: Caller, folder: Path) -> None:
    url = f"file://{folder}"
    assert "process 1 on node1 is late" in call("show", url).out
    of_one = f"{url}/process-00001.jaxprof"
    assert "data_waits" in call("explain", of_one).out
    assert "node1, process 1 of 3" in call("show", of_one).out
    assert call("query", url, "select count(*) as n from runs").out.split() == ["n", "3"]
    assert call("compare", of_one, f"{url}/process-00000.jaxprof").code == 0
    assert call("compare", f"{of_one}:r1", f"{url}/process-00000.jaxprof:r1").code == 0
    assert call("export", of_one, "--format", "speedscope").code == 0
    assert "node1, process 1 of 3" in call(of_one).out, "without a terminal a file alone is shown"


def test_an_answer_names_the_url_to_ask_on(call: Caller, folder: Path) -> None:
    said = call("explain", f"file://{folder}/process-00001.jaxprof", "--format", "json")
    assert f"file://{folder}/process-00001.jaxprof" in said.out
    assert "fetched" not in said.out


def test_a_web_server_is_read_as_any_store(call: Caller, address: str) -> None:
    assert "process 1 on node1 is late" in call("show", f"{address}/run.jaxprof.d").out
    assert "node2, process 2 of 3" in call("show", f"{address}/run.jaxprof.d/process-00002.jaxprof").out
    gone = call("show", f"{address}/nothing.jaxprof")
    assert (gone.code, gone.out) == (2, "")
    assert f"there is nothing at {address}/nothing.jaxprof" in gone.err


def test_a_web_server_that_is_not_there_cannot_be_reached(call: Caller, address: str) -> None:
    said = call("show", "http://127.0.0.1:9/run.jaxprof.d")
    assert said.code == 2
    assert "http://127.0.0.1:9/run.jaxprof.d cannot be reached" in said.err


def test_what_a_store_fails_to_give_is_said_and_the_rest_is_shown(
    call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaky = flaky_store.register()
    normal = flaky.get_file

    def broken(self: flaky_store.FlakyFileSystem, path: str, *rest: object, **more: object) -> object:
        if "00002" in path:
            raise ConnectionResetError("connection reset by peer")
        return normal(self, path, *rest, **more)

    monkeypatch.setattr(flaky, "get_file", broken)
    said = call("show", f"flaky://{folder}")
    assert said.code == 0
    assert "1 of 3 files could not be fetched (process-00002.jaxprof: connection reset by peer)" in said.err
    assert "1 of 3 processes have no session here: 2" in said.out


def test_no_secret_of_a_url_is_said(call: Caller, folder: Path) -> None:
    said = call("show", "http://alice:hunter22@127.0.0.1:9/run.jaxprof?sig=s3cr3tvalue", "--format", "json")
    assert said.code == 2
    assert "hunter22" not in said.out + said.err
    assert "s3cr3tvalue" not in said.out + said.err


def test_a_program_at_a_url_is_not_run(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    said = call(f"file://{tmp_path}/evil.py")
    assert said.code == 2
    assert not (tmp_path / "ran").exists()


def test_sql_with_a_url_in_it_is_sql(call: Caller, folder: Path) -> None:
    asked = "select 'gs://a/b' as place"
    assert call("query", f"file://{folder}", asked).out.split() == ["place", "gs://a/b"]
