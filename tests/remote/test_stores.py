"""The copy of a folder in a store: of stores that work, are slow, break and change."""

import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import flaky_store
import jaxprof
from flaky_store import FlakyFileSystem as Flaky
from golden import cases, held_cases
from jaxprof.base.errors import FileRefusedError, UsageError
from jaxprof.base.files import private_folder
from jaxprof.remote import RemoteUrl, is_url, path_here
from jaxprof.remote.mirror import Mirror, forget_old
from jaxprof.session import Session
from jaxprof.session.files import copies_folder, url_of
from jaxprof.session.lines import is_live, load
from job_folders import job, loop


@pytest.fixture(autouse=True)
def as_if_nothing_had_happened():
    flaky_store.register()


@pytest.fixture
def folder(tmp_path):
    return job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3))


def mirror_of(folder, scheme="flaky"):
    return Mirror(RemoteUrl(f"{scheme}://{folder}"))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_fetched_whole_and_only_for_its_owner(folder):
    (folder / "rollup" / "steps").mkdir(parents=True)
    (folder / "rollup" / "steps" / "process-00000.parquet").write_bytes(b"x")
    mirror = mirror_of(folder)
    private_folder(mirror.path)
    half = mirror.path / ".process-00000.jaxprof.0f0f0f0f.partial"
    half.write_text("half fetched by a process that was killed")
    os.utime(half, (1, 1))
    assert mirror.refresh() == ""
    assert names(mirror.path) == names(folder)
    assert all((mirror.path / name).read_bytes() == (folder / name).read_bytes() for name in names(folder))
    kept = [mirror.path.parent, *mirror.path.parent.rglob("*")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    assert url_of(mirror.path / "process-00000.jaxprof") == f"flaky://{folder}/process-00000.jaxprof"
    assert url_of(folder) is None
    Flaky.reads.clear()
    mirror_of(folder).refresh()
    assert Flaky.reads == [], "what has not changed is not fetched again"
    os.utime(folder / "process-00001.jaxprof", (1, 1))
    mirror_of(folder).refresh()
    assert Flaky.reads == ["process-00001.jaxprof"]
    Flaky.error = ConnectionError("no route to host")
    said = mirror_of(folder).refresh()
    assert "no route to host" in said
    assert ": the copy of " in said, "what was fetched is there"


def test_the_network_may_go_in_the_middle(folder, monkeypatch):
    def cut(self, path, target, *rest, **more):
        if "00001" in path:
            Path(target).write_bytes(b"half")
            raise ConnectionResetError("connection reset")
        Path(target).write_bytes(Path(path).read_bytes())

    monkeypatch.setattr(Flaky, "get_file", cut)
    mirror = mirror_of(folder)
    assert "1 of 2 files: " in (said := mirror.refresh())
    assert "connection reset" in said
    assert names(mirror.path) == ["process-00000.jaxprof"], "no half file"
    monkeypatch.setattr(Flaky, "get_file", lambda self, path, target, **more: Path(target).write_bytes(b"half"))
    assert "only 4 of " in mirror.refresh()
    monkeypatch.setattr(Flaky, "get_file", lambda self, path, target, **more: Path(f"{path}-gone").read_bytes())
    assert mirror.refresh() == ""
    assert names(mirror.path) == ["process-00000.jaxprof"], "the other has gone since the listing"


def test_what_was_never_fetched_whole_is_forgotten_too(folder):
    Flaky.error = ConnectionError("no route to host")
    mirror = mirror_of(folder)
    with pytest.raises(FileRefusedError):
        mirror.refresh()
    kept = mirror.path.parent
    forget_old(time.time())
    assert kept.exists()
    forget_old(time.time() + 31 * 86_400)
    assert not kept.exists()


@pytest.mark.parametrize(
    ("error", "word", "hint"),
    [
        (PermissionError("Access Denied"), "cannot be read: Access Denied", "permission to read"),
        (FileNotFoundError("x"), "there is nothing", "last folder"),
        (RuntimeError("an odd library"), "cannot be read: an odd library", "network"),
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
    assert [file.name for file in mirror_of(folder).files()] == ["good"]


def test_session_that_grows_in_the_store_is_live(folder):
    path = folder / "process-00000.jaxprof"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'{"type":"session_closed"')])
    mirror = mirror_of(folder)
    mirror.refresh()
    assert is_live(mirror.path / path.name)
    assert not load(mirror.path / path.name, Session).deserted
    os.utime(path, (1, 1))
    mirror.refresh()
    assert not is_live(mirror.path / path.name), "it has not changed for a while"
    path.write_bytes(whole)
    mirror.refresh()
    assert load(mirror.path / path.name, Session).deserted, "it has an end"


class LyingServer(BaseHTTPRequestHandler):
    """Sends more than it tells, or nothing, or a byte at a time, by the path."""

    def drip(self):
        """Header fields, or a text, without end."""
        with suppress(OSError):
            while not self.server.ended.wait(0.02):
                self.wfile.write(b"x" if "body" in self.path else b"X: y\r\n")

    def do_HEAD(self):
        if "header" in self.path:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            self.drip()
        self.send_response(200)
        self.send_header("Content-Length", str(10**15 if "huge" in self.path else 1000))
        self.end_headers()

    def do_GET(self):
        with suppress(OSError):
            self.send_response(200)
            self.end_headers()
            if "drip" in self.path:
                self.drip()
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
        ("silent/a.jaxprof", "cannot be read: "),
        ("known/run.jaxprof.d", "a web server lists no folders"),
        ("header-drip/silent/a.jaxprof", "less than 1.00 KiB came in 0.5 seconds"),
        ("body-drip/silent/a.jaxprof", "less than 1.00 KiB came in 0.5 seconds"),
        ("header-drip/a.jaxprof", "it took more than 1 seconds"),
    ],
)
def test_endless_or_silent_web_server_is_given_up(liar, place, what, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("JAXPROF_LIMITS", f"fetched=1MiB,fetch_time={1 if place == 'header-drip/a.jaxprof' else 3600}")
    monkeypatch.setattr("jaxprof.remote.mirror._SILENT_SECONDS", 0.5 if "silent" in place else 20.0)
    with pytest.raises((FileRefusedError, UsageError)) as refused:
        Mirror(RemoteUrl(f"{liar}/{place}")).refresh()
    assert what in refused.value.what
    assert not list(copies_folder().rglob("*.partial"))
    assert not list(copies_folder().rglob("*.jaxprof"))


def test_a_web_server_that_takes_no_connection_is_given_up(monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr("jaxprof.remote.mirror._SILENT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(4):
            waiting.enter_context(one := socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        # The system itself would try for two minutes, beyond the time of a test.
        with pytest.raises(FileRefusedError, match="cannot be read"):
            Mirror(RemoteUrl(f"http://127.0.0.1:{full.getsockname()[1]}/a.jaxprof")).refresh()


def test_silent_store_is_given_up_at_the_limit(folder, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "fetch_time=1")
    answer = threading.Event()
    monkeypatch.setattr(Flaky, "info", lambda self, path, **more: answer.wait(30))
    with pytest.raises(FileRefusedError, match="it took more than 1 second"):
        mirror_of(folder).refresh()
    answer.set()


def test_all_of_it_takes_no_longer_than_the_limit(folder, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "fetch_time=0")
    with pytest.raises(FileRefusedError, match="it took more than 0 seconds"):
        mirror_of(folder).refresh()


def test_a_process_that_is_kept_from_urls_takes_none(folder, monkeypatch):
    monkeypatch.setenv("JAXPROF_URLS", "refused")
    with pytest.raises(UsageError, match="URLs are not allowed here"):
        mirror_of(folder)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_local_pipes_and_devices_are_not_copied(tmp_path, make):
    path = tmp_path / "a.jaxprof"
    make(path)
    with pytest.raises(FileRefusedError, match="there is nothing"):
        mirror_of(path, "file").refresh()


@pytest.mark.parametrize("url", ["simplecache::file:///x", "reference://x", "zip://a::https://host/x", "cached://x"])
def test_unbounded_file_systems_are_no_stores(url):
    with pytest.raises(UsageError, match="is not a store"):
        Mirror(RemoteUrl(url))


def told(word):
    """Whether it is a URL of a store; what is shown of it; and the name of its copy here, which stays in its folder."""
    if not is_url(word):
        return "  no URL\n"
    place = RemoteUrl(word)
    assert not any(secret in place.shown for secret in ("hunter", "token", "abcd"))
    assert "/" not in place.name
    return f"  shown {place.shown}, named {place.name}\n"


def test_what_is_a_url_of_a_store_and_what_is_shown_of_it():
    held_cases("urls.txt", {word: told(word) for word in cases("urls.txt")})


def test_error_of_a_library_hides_secrets():
    place = RemoteUrl("https://alice:hunter22@host/run?sig=abcd%2Fefgh&v=2")
    said = place.clean("401 for url https://host/run?sig=abcd%2Fefgh&v=2: hunter22, abcd/efgh")
    assert "hunter22" not in said
    assert "abcd" not in said
    assert said.startswith("401 for url https://host/run")


def test_a_url_is_no_path_of_this_machine():
    assert path_here("~/run.jaxprof", "no") == Path.home() / "run.jaxprof"
    assert path_here(Path("run.jaxprof"), "no") == Path("run.jaxprof")
    with pytest.raises(UsageError) as refused:
        path_here("s3://key:hunter22@bucket/run.jaxprof", "Copy it.")
    assert refused.value.what.startswith("s3://key:[redacted]@bucket/run.jaxprof is a URL")
    assert refused.value.hint == "Copy it."


@pytest.mark.parametrize("call", [jaxprof.load, jaxprof.record])
def test_the_api_takes_no_url(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a URL"):
        call("gs://bucket/run.jaxprof")
    assert not list(tmp_path.iterdir())
