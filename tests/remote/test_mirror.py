"""The copy of a folder in a store, on stores that work, break and change."""

import os
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import flaky_store
from flaky_store import FlakyFileSystem as Flaky
from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.remote.mirror import Mirror
from jaxprof.remote.place import RemotePlace
from jaxprof.remote.store import StoredFile, StoreFailure
from jaxprof.session.log.reader import is_live
from jaxprof.session.log.state import url_of
from job_folders import job, loop


@pytest.fixture(autouse=True)
def as_if_nothing_had_happened():
    flaky_store.register()


@pytest.fixture
def folder(tmp_path):
    return job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3))


def mirror_of(folder, scheme="flaky"):
    return Mirror(RemotePlace(f"{scheme}://{folder}"))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_fetched_whole_and_only_for_its_owner(folder):
    (folder / "rollup" / "steps").mkdir(parents=True)
    (folder / "rollup" / "steps" / "process-00000.parquet").write_bytes(b"x")
    mirror = mirror_of(folder)
    mirror.path.mkdir(parents=True)
    (mirror.path / ".process-00000.jaxprof.partial").write_text("half fetched by a process that was killed")
    assert mirror.refresh() == []
    assert names(mirror.path) == names(folder)
    assert all((mirror.path / name).read_bytes() == (folder / name).read_bytes() for name in names(folder))
    assert (mirror.path / "process-00000.jaxprof").stat().st_mode & 0o077 == 0
    assert url_of(mirror.path / "process-00000.jaxprof") == f"flaky://{folder}/process-00000.jaxprof"
    assert url_of(folder) is None
    Flaky.reads.clear()
    mirror_of(folder).refresh()
    assert Flaky.reads == [], "what has not changed is not fetched again"
    os.utime(folder / "process-00001.jaxprof", (1, 1))
    mirror_of(folder).refresh()
    assert Flaky.reads == [("process-00001.jaxprof", 0)]
    Flaky.error = ConnectionError("no route to host")
    (said,) = mirror_of(folder).refresh()
    assert "no route to host" in said
    assert ": the copy of " in said, "what was fetched is there"


def test_of_a_session_that_grew_the_rest_is_fetched_and_appended(folder):
    path = folder / "process-00000.jaxprof"
    whole = path.read_bytes()
    path.write_bytes(whole[:-500])
    mirror = mirror_of(folder)
    mirror.refresh()
    Flaky.reads.clear()
    copy = mirror.path / path.name
    with copy.open("rb") as follower:
        follower.read()
        path.write_bytes(whole)
        mirror.refresh()
        assert follower.read() == whole[-500:], "whoever follows it reads on in the same file"
    assert copy.read_bytes() == whole
    assert Flaky.reads == [(path.name, len(whole) - 500 - 256)]
    path.write_bytes(b'{"other": 1}\n' * 1000 + whole)
    mirror.refresh()
    assert copy.read_bytes() == path.read_bytes(), "another session, which is longer"


def test_the_network_may_go_in_the_middle(folder, monkeypatch):
    def cut(self, path, target, *rest, **more):
        if "00001" in path:
            Path(target).write_bytes(b"half")
            raise ConnectionResetError("connection reset")
        Path(target).write_bytes(Path(path).read_bytes())

    monkeypatch.setattr(Flaky, "get_file", cut)
    mirror = mirror_of(folder)
    (said,) = mirror.refresh()
    assert "1 of 2 files could not be fetched (process-00001.jaxprof: connection reset)" in said
    assert names(mirror.path) == ["process-00000.jaxprof"], "no half file"
    monkeypatch.setattr(Flaky, "get_file", lambda self, path, target, **more: Path(target).write_bytes(b"half"))
    (said,) = mirror.refresh()
    assert "only 4 of " in said


@pytest.mark.parametrize(
    ("error", "word", "hint"),
    [
        (PermissionError("Access Denied"), "refuses access", "permission to read and write"),
        (RuntimeError("NoCredentialsError: Unable to locate credentials"), "refuses access", "Check your credentials"),
        (FileNotFoundError("x"), "there is nothing", "last folder"),
        (RuntimeError("an odd library"), "cannot be reached: an odd library", "network"),
        ("fetched_files=1", "more than 1 files", ""),
        ("fetched=100", "more than 100 B", ""),
    ],
)
def test_each_refusal_has_its_words(folder, error, word, hint, monkeypatch):
    if isinstance(error, str):
        monkeypatch.setenv("JAXPROF_LIMITS", error)
    else:
        Flaky.error = error
    with pytest.raises(FileRefusedError) as refused:
        mirror_of(folder).refresh()
    assert word in refused.value.what
    assert hint in refused.value.hint


def test_a_name_that_leads_out_of_the_folder_is_left_out(folder, monkeypatch):
    listed = [
        {"name": f"{folder}/{name}", "size": 1, "type": "file", "mtime": 1.0}
        for name in ("../../evil", ".hidden", "a\\b", "a\nb", "good")
    ]
    monkeypatch.setattr(Flaky, "ls", lambda self, path, detail: listed)
    assert [file.name for file in mirror_of(folder).store.files()] == ["good"]


def test_a_session_that_is_being_written_in_the_store_is_live_here(folder):
    path = folder / "process-00000.jaxprof"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'{"type":"session_closed"')])
    mirror = mirror_of(folder)
    mirror.refresh()
    assert is_live(mirror.path / path.name)
    assert not is_live(mirror.path / "process-00001.jaxprof"), "it has an end"
    path.write_bytes(whole)
    mirror.refresh()
    assert not is_live(mirror.path / path.name)


class LyingServer(BaseHTTPRequestHandler):
    """Sends more than it tells, or nothing, by the path."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(10**15 if "huge" in self.path else 1000))
        self.end_headers()

    def do_GET(self):
        with suppress(OSError):
            self.send_response(206 if "Range" in self.headers else 200)
            self.end_headers()
            self.wfile.write(b"x" * 10)
            if "silent" in self.path:
                self.server.ended.wait(30)
            while not self.server.ended.is_set():
                self.wfile.write(b"<a href='process-00000.jaxprof'>" * 1000)

    def log_message(self, *words):
        pass


@pytest.fixture
def liar():
    with ThreadingHTTPServer(("127.0.0.1", 0), LyingServer) as server:
        server.ended = threading.Event()
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.ended.set()
        server.shutdown()


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("known/a.jaxprof", "sends is more than 1.00 MiB"),
        ("huge/a.jaxprof", "holds more than 1.00 MiB"),
        ("silent/a.jaxprof", "no answer within"),
        ("known/run.jaxprof.d", "more than 64 MiB of a listing"),
    ],
)
def test_a_web_server_that_sends_without_end_or_nothing_is_given_up(liar, place, what, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("JAXPROF_LIMITS", "fetched=1MiB")
    monkeypatch.setattr("jaxprof.remote.store._SILENT_SECONDS", 0.5 if "silent" in place else 20.0)
    mirror = Mirror(RemotePlace(f"{liar}/{place}"))
    if place == "known/a.jaxprof":
        with pytest.raises(StoreFailure, match="more than was requested"):  # of what it has grown by
            mirror.store.read(StoredFile("", f"{liar}/{place}", 1000, "", None), 500)
    with pytest.raises(FileRefusedError) as refused:
        mirror.refresh()
    assert what in refused.value.what
    assert not list(mirror.path.parent.glob("**/*.partial"))
    assert not mirror.path.is_file()


def test_all_of_it_takes_no_longer_than_the_limit(folder, monkeypatch):
    mirror = mirror_of(folder)
    monkeypatch.setenv("JAXPROF_LIMITS", "fetch_time=0")
    Flaky.seconds = 0.05  # a call that ends at once is not waited for, and so never too late
    with pytest.raises(FileRefusedError, match="it took more than 0 seconds"):
        mirror.refresh()


def test_a_process_that_is_kept_from_urls_takes_none(folder, monkeypatch):
    monkeypatch.setenv("JAXPROF_URLS", "refused")
    with pytest.raises(UsageError, match="URLs are not allowed here"):
        mirror_of(folder)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_file_on_this_machine_is_neither_waited_for_nor_copied(tmp_path, make):
    path = tmp_path / "a.jaxprof"
    make(path)
    with pytest.raises(FileRefusedError, match="not a regular file"):
        mirror_of(path, "file").refresh()


@pytest.mark.parametrize("layer", ["simplecache", "filecache", "reference", "zip://a::simplecache"])
def test_what_copies_without_a_bound_or_names_further_files_is_no_store(layer):
    with pytest.raises(UsageError, match="no store"):
        Mirror(RemotePlace(f"{layer}::file:///dev/zero"))
