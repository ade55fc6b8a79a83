"""URLs where commands take a path, and one where they do not."""

import re
import shlex
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import flaky_store
from jaxprof.analysis import target
from job_folders import job, loop


@pytest.fixture(autouse=True)
def _nothing_fetched(monkeypatch):
    monkeypatch.setattr(target, "_fetched_paths", {})


@pytest.fixture
def folder(tmp_path):
    return job(tmp_path / "store" / "run.jaxprof.d", loop(), loop(data=0.3), loop())


@pytest.fixture
def address(folder):
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
    assert gone.code == 2
    assert f"there is nothing at {address}/nothing.jaxprof" in gone.err


def test_failure_of_a_store_is_reported(call, folder, monkeypatch):
    flaky = flaky_store.register()
    normal = flaky.get_file

    def broken(self, path, *rest, **more):
        if "00002" in path:
            raise ConnectionResetError("connection reset by peer")
        return normal(self, path, *rest, **more)

    monkeypatch.setattr(flaky, "get_file", broken)
    said = call("open", f"flaky://{folder}")
    assert said.code == 0
    assert "1 of 3 files: " in said.err
    assert "connection reset by peer" in said.err
    assert "1 of 3 processes have no session here: 2" in said.out


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [
        "open", "open --format json", "open --compiles", "explain", "export", "hlo", "open --keep", "compare URL",
        "run", "sessions rollup", "gate --fail-on flops",
        "open --seconds 2", "script", "compare", "devices", "sessions delete",
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
    assert " ".join(shown.out.split()).startswith(f"{url} · ended well · 3 processes")
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


def test_a_program_is_recorded_into_a_folder_of_this_machine(call):
    said = call("script", "--out", "gs://bucket/run.jaxprof", "train.py")
    assert said.code == 2
    assert "gs://bucket/run.jaxprof is a URL, and a file on this machine" in said.err
