"""Regular files only, whatever a name promises; and no more of them than the limits allow."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import stat
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import jaxprof
from cli.calling import Caller
from jaxprof import limits
from jaxprof.cli.output import ExitCode
from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.files import PRIVATE, open_regular, private_folder, read_whole, taking_place, unpacked, with_home
from jaxprof.session import Session
from jaxprof.session.log import Library, load
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.session.texts import split
from jaxprof.trace.xspace import parse_xspace
from jaxprof.tui.kit.script_dialog import suggestion
from report import sessions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither pipes nor sockets in folders")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_folder(path: Path) -> None:
    path.mkdir()


SPECIAL = {"a named pipe": a_pipe, "a socket": a_socket, "a device": a_device, "a directory": a_folder}
COMMANDS = (
    ["show"], ["show", "--format", "json"], ["hlo"], ["import"], ["compare", "good.jaxprof"], ["export"], ["open"],
    ["show", "last"], ["sessions"], ["sessions", "prune", "--keep", "0"], ["sessions", "rename", "strange", "other"],
)  # fmt: skip


@pytest.mark.parametrize("kind", SPECIAL)
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.jaxprof"
    SPECIAL[kind](path)
    with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
        open_regular(path)


def test_a_regular_file_is_opened_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with open_regular(tmp_path / "b") as file:
        assert file.read() == b"content"
        assert os.get_inheritable(file.fileno()) is False


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(capsys)


@pytest.fixture
def impatient() -> Iterator[None]:
    """Ends a test that waits: an open that blocks ends with the exception of the signal's handler."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits for what never comes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.process
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["a named pipe", "a device"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_waits_for_what_is_no_file(
    kind: str, words: list[str], call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path))
    kept = tmp_path / "sessions"
    kept.mkdir()
    path = kept / "strange.jaxprof"
    SPECIAL[kind](path)
    good = kept / "good.jaxprof"
    good.write_bytes(encode_header(sessions.HEADER) + b"".join(map(encode_line, sessions.events())))
    takes_a_file = words[0] != "sessions" and words[-1] != "last"
    said = call(*[str(good) if word == "good.jaxprof" else word for word in words], *([path] if takes_a_file else []))
    if takes_a_file:
        assert said.code == 2
        assert str(path) in said.err
    elif words == ["show", "last"]:
        assert "selu" in said.out
    assert path.is_fifo() or path.is_symlink()


def test_a_pipe_is_no_session(tmp_path: Path) -> None:
    """Neither for the listing, `last` and prune, nor for shell completion."""
    os.mkfifo(tmp_path / "strange.jaxprof")
    (tmp_path / "good.jaxprof").write_bytes(encode_header(sessions.HEADER))
    assert [path.name for path in Library(tmp_path).paths()] == ["good.jaxprof"]


# -- limits ---------------------------------------------------------------------------------------------------------


def bomb(size: int) -> bytes:
    return gzip.compress(bytes(size))


def most_bytes(work: Callable[[], object]) -> int:
    """The most that Python held at once while it worked."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "unpacked=1MiB")
    data = bomb(64 << 20)

    def unpack() -> None:
        with pytest.raises(FileRefusedError, match=r"it unpacks to more than 1\.00 MiB") as caught:
            b"".join(unpacked(data, "it"))
        assert "JAXPROF_LIMITS=unpacked=" in caught.value.hint

    assert most_bytes(unpack) < 4 << 20
    monkeypatch.setenv(limits.VARIABLE, "unpacked=64MiB")
    assert sum(map(len, unpacked(data, "it"))) == 64 << 20


def test_what_can_be_unpacked_comes_before_the_damage() -> None:
    packed = gzip.compress(os.urandom(200_000))
    pieces = unpacked(packed[:100_000], "it")
    assert 90_000 < len(next(pieces)) < 200_000
    with pytest.raises(EOFError):
        next(pieces)
    with pytest.raises(zlib.error):
        list(unpacked(b"no gzip", "it"))


@pytest.mark.process
@pytest.mark.parametrize("name", ["a.hlo.gz", "a.xplane.pb.gz"])
def test_the_file_names_the_limit_that_it_exceeds(
    name: str, call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(gzip.compress((b"HloModule m\n" if "hlo" in name else b'{"a":') + b" " * (1 << 20)))
    monkeypatch.setenv(limits.VARIABLE, "unpacked=100KiB")
    said = call("hlo" if "hlo" in name else "show", tmp_path / name)
    assert said.code == 2
    assert "more than 100 KiB" in said.err
    assert "JAXPROF_LIMITS=unpacked=" in said.err


def test_a_text_of_a_session_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(sessions.HEADER)
    session.extend(sessions.jit_run("r2", "r1"))
    session.extend(split("hlo", "x" * (4 << 20), "r2"))
    monkeypatch.setenv(limits.VARIABLE, "unpacked=1MiB")
    with pytest.raises(FileRefusedError, match=r"more than 1\.00 MiB"):
        session.text("r2", "hlo")
    monkeypatch.setenv(limits.VARIABLE, "unpacked=5MiB")
    assert session.text("r2", "hlo") == "x" * (4 << 20)


@pytest.mark.parametrize(
    ("limit", "data"),
    [
        ("planes", b"\x0a\x00" * 1000),
        ("lines", b"\x0a\xd4\x0f\x12\x04/cpu" + b"\x1a\x00" * 1003),
        ("names", b"\x0a\xd4\x0f\x12\x04/cpu" + b"\x22\x00" * 1003),
        ("names", b"\x0a\xd4\x0f\x12\x04/cpu" + b"\x2a\x00" * 1003),
    ],
)
def test_a_profile_of_empty_records_is_refused(limit: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, f"{limit}=900")
    with pytest.raises(FileRefusedError, match="more than 900") as caught:
        parse_xspace(data, "made by hand")
    assert f"JAXPROF_LIMITS={limit}=3600" in caught.value.hint
    monkeypatch.setenv(limits.VARIABLE, f"{limit}=2000")
    if limit != "planes":
        assert parse_xspace(data, "made by hand").planes


def test_a_line_has_a_limit_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jaxprof"
    log = sessions.e.LogLine(run="r1", stream="stderr", text="x" * 200_000)
    before, *rest = map(encode_line, sessions.events())
    path.write_bytes(encode_header(sessions.HEADER) + before + encode_line(log) + b"".join(rest))
    monkeypatch.setenv(limits.VARIABLE, "line=100KiB")
    session = load(path, Session)
    assert session.complete
    assert any("lines of more than 100 KiB were left out" in notice for notice in session.notices)
    monkeypatch.setenv(limits.VARIABLE, "line=1MiB")
    assert load(path, Session).notices == []


def test_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(bytes(1000))
    monkeypatch.setenv(limits.VARIABLE, "file=999")
    with pytest.raises(FileRefusedError, match="more than 999 B"):
        read_whole(tmp_path / "a")
    monkeypatch.setenv(limits.VARIABLE, "file=1000")
    assert len(read_whole(tmp_path / "a")) == 1000


def test_the_variable_names_what_it_does_not_know(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("unpacked=lots", "hope=3", "unpacked", "planes=-1"):
        monkeypatch.setenv(limits.VARIABLE, text)
        with pytest.raises(UsageError, match="is no limit"):
            limits.check()
    for text in ("file=99999999999999999999", "query_time=1000000000000", "depth=1001", f"names={'9' * 400}"):
        monkeypatch.setenv(limits.VARIABLE, text)
        with pytest.raises(UsageError, match="is too high"):
            limits.check()
    monkeypatch.setenv(limits.VARIABLE, "planes=-1")
    said = call("sessions")
    assert (said.code, "JAXPROF_LIMITS: 'planes=-1' is no limit" in said.err) == (2, True)
    monkeypatch.setenv(limits.VARIABLE, "unpacked=1.5GiB, planes=7,line=2k")
    assert (limits.UNPACKED.most, limits.PLANES.most, limits.LINE.most) == (3 << 29, 7, 2048)
    assert limits.NAMES.most == limits.NAMES.default


def test_a_home_that_nobody_has_is_a_file_that_is_not_there(call: Caller) -> None:
    """`Path.expanduser` raises a RuntimeError, wherever somebody types such a path."""
    assert with_home("~nobody-has-this-name/x") == Path("~nobody-has-this-name/x")
    assert with_home("~/x") == Path.home() / "x"
    assert suggestion("~nobody-has-this-name/x", Path.cwd()) is None
    for words in (["show"], ["hlo"], ["import"], ["run", "selu", "--python"]):
        said = call(*words, "~nobody-has-this-name/x")
        assert said.code == ExitCode.USAGE
    source = Path(jaxprof.__file__).parent
    assert [path for path in source.rglob("*.py") if re.search(r"(?<!os\.path)\.expanduser\(", path.read_text())] == []


def test_a_new_file_takes_a_name_that_nobody_had_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with taking_place(tmp_path / "a", PRIVATE) as fresh:
            assert fresh.name != ".a.partial"
            assert stat.S_IMODE(fresh.stat().st_mode) == 0o600
            fresh.write_text("x")
        private_folder(tmp_path / "x" / "y")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "x", "x/y")] == [0o600, 0o700, 0o700]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "x"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a named pipe"), taking_place(tmp_path / "pipe", only_regular=True):
        pass


def test_in_a_folder_that_others_fill_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    place = tmp_path / "process-00000.parquet"
    place.symlink_to(tmp_path / "mine")
    with taking_place(place, only_regular=True) as fresh:
        fresh.write_text("a roll-up")
    assert (tmp_path / "mine").read_text() == "precious"
    assert (place.read_text(), place.is_symlink()) == ("a roll-up", False)


@pytest.mark.process
@pytest.mark.usefixtures("impatient")
def test_a_dump_in_which_a_pipe_has_the_name_of_a_device_is_read(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.sm_90a_gpu_after_optimizations.txt").write_text(sessions.HLO)
    os.mkfifo(tmp_path / "module_0001.jit_f.gpu_target_config.pbtxt")
    assert call("hlo", tmp_path).code == 0
