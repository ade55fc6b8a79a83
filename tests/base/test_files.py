"""Regular files only, whatever a name promises; and no more of them than the limits allow."""

import gzip
import os
import re
import socket
import stat
import sys
import zlib
from pathlib import Path

import pytest

import jaxprof
from folding import written
from jaxprof.base import limits
from jaxprof.base.errors import FileRefusedError, UsageError
from jaxprof.base.files import PRIVATE, open_regular, private_folder, read_whole, replace_file, unpack, with_home
from jaxprof.cli.output import ExitCode
from jaxprof.session import Library
from jaxprof.trace.xspace import parse_xspace
from report import sessions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither pipes nor sockets in folders")


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


SPECIAL = {
    "a named pipe": os.mkfifo,
    "a socket": a_socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a directory": os.mkdir,
}
COMMANDS = """open; hlo; open --keep; compare good.jaxprof; export; open last; sessions; sessions prune --keep 0;
sessions rename strange other"""


@pytest.mark.parametrize("kind", SPECIAL)
def test_only_regular_files_are_opened(kind, tmp_path):
    path = tmp_path / "strange.jaxprof"
    SPECIAL[kind](path)
    with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
        open_regular(path)
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with open_regular(tmp_path / "b") as file:
        assert file.read() == b"content"
        assert os.get_inheritable(file.fileno()) is False


@pytest.mark.process
@pytest.mark.parametrize("kind", ["a named pipe", "a device"])
def test_no_command_waits_for_a_special_file(kind, call, tmp_path, monkeypatch):
    """The limit of every test ends one that waits."""
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path))
    path, good = (tmp_path / "sessions" / f"{name}.jaxprof" for name in ("strange", "good"))
    written(good, sessions.events(), sessions.HEADER)
    SPECIAL[kind](path)
    for line in COMMANDS.split(";"):
        words = line.split()
        takes_a_file = words[0] != "sessions" and words[-1] != "last"
        said = call(*(good if word == good.name else word for word in words), *([path] if takes_a_file else []))
        if takes_a_file:
            assert said.code == 2, words
            assert str(path) in said.err, words
        elif words == ["open", "last"]:
            assert "selu" in said.out
        assert path.is_fifo() or path.is_symlink()
    assert [path.name for path in Library().paths()] == ["good.jaxprof"]


@pytest.mark.process
@pytest.mark.parametrize("kind", ["a named pipe", "a device"])
def test_target_config_of_a_dump_may_be_no_file(kind, call, tmp_path):
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0001.jit_f.sm_90a_gpu_after_optimizations.txt").write_text(sessions.HLO)
    SPECIAL[kind](dump / "module_0001.jit_f.gpu_target_config.pbtxt")
    assert call("hlo", dump).code == 0


def test_unpacking_yields_what_precedes_the_damage():
    packed = gzip.compress(os.urandom(200_000))
    pieces = unpack(packed[:100_000], "it")
    assert 90_000 < len(next(pieces)) < 200_000
    with pytest.raises(EOFError):
        next(pieces)
    with pytest.raises(zlib.error):
        list(unpack(b"no gzip", "it"))


@pytest.mark.process
def test_error_of_a_large_file_names_its_limit(call, tmp_path, monkeypatch):
    """HLO and the texts of a session: `test_memory_of_readers.py`."""
    monkeypatch.setenv(limits.VARIABLE, "unpacked=100KiB")
    (tmp_path / "a.xplane.pb.gz").write_bytes(gzip.compress(b" " * (1 << 20)))
    said = call("open", tmp_path / "a.xplane.pb.gz")
    assert said.code == 2
    assert "more than 100 KiB" in said.err
    assert "JAXPROF_LIMITS=unpacked=" in said.err


@pytest.mark.parametrize(
    ("limit", "data"),
    [
        ("planes", b"\x0a\x00" * 1000),
        ("lines", b"\x0a\xd4\x0f\x12\x04/cpu" + b"\x1a\x00" * 1003),
        ("names", b"\x0a\xd4\x0f\x12\x04/cpu" + b"\x22\x00" * 1003),
    ],
)
def test_a_profile_of_empty_records_is_refused(limit, data, monkeypatch):
    monkeypatch.setenv(limits.VARIABLE, f"{limit}=900")
    with pytest.raises(FileRefusedError, match="more than 900") as caught:
        parse_xspace(data, "made by hand")
    assert f"JAXPROF_LIMITS={limit}=3600" in caught.value.hint


def test_a_file_has_a_limit(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(bytes(1000))
    monkeypatch.setenv(limits.VARIABLE, "file=999")
    with pytest.raises(FileRefusedError, match="more than 999 B"):
        read_whole(tmp_path / "a")
    monkeypatch.setenv(limits.VARIABLE, "file=1000")
    assert len(read_whole(tmp_path / "a")) == 1000


def test_limits_that_cannot_be_read_are_refused(call, monkeypatch):
    for text, said in (
        ("unpacked=lots", "is not a limit"), ("hope=3", "is not a limit"), ("unpacked", "is not a limit"),
        ("planes=-1", "is not a limit"), ("file=99999999999999999999", "is too high"), ("depth=1001", "is too high"),
        (f"names={'9' * 400}", "is too high"),
    ):  # fmt: skip
        monkeypatch.setenv(limits.VARIABLE, text)
        with pytest.raises(UsageError, match=said):
            limits.check()
    assert call("sessions").code == 2
    monkeypatch.setenv(limits.VARIABLE, "unpacked=1.5GiB, planes=7,line=2k")
    assert (limits.UNPACKED.most, limits.PLANES.most, limits.LINE.most) == (3 << 29, 7, 2048)
    assert limits.NAMES.most == limits.NAMES.default


def test_home_of_an_unknown_user_is_a_missing_file(call):
    """`Path.expanduser` raises a RuntimeError, wherever somebody types such a path."""
    assert with_home("~nobody-has-this-name/x") == Path("~nobody-has-this-name/x")
    assert with_home("~/x") == Path.home() / "x"
    for words in (["open"], ["hlo"], ["open", "--keep"], ["run", "selu", "--python"]):
        assert call(*words, "~nobody-has-this-name/x").code == ExitCode.USAGE


def test_no_file_calls_path_expanduser():
    source = Path(jaxprof.__file__).parent
    assert [path for path in source.rglob("*.py") if re.search(r"(?<!os\.path)\.expanduser\(", path.read_text())] == []


def test_atomic_write_uses_a_new_private_file(tmp_path):
    before = os.umask(0)
    try:
        with replace_file(tmp_path / "a", PRIVATE) as fresh:
            assert fresh.name != ".a.partial"
            assert stat.S_IMODE(fresh.stat().st_mode) == 0o600
            fresh.write_text("x")
        private_folder(tmp_path / "x" / "y")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "x", "x/y")] == [0o600, 0o700, 0o700]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "x"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a named pipe"), replace_file(tmp_path / "pipe", only_regular=True):
        pass


def test_atomic_write_replaces_a_link(tmp_path):
    (tmp_path / "mine").write_text("precious")
    place = tmp_path / "process-00000.parquet"
    place.symlink_to(tmp_path / "mine")
    with replace_file(place, only_regular=True) as fresh:
        fresh.write_text("a roll-up")
    assert (tmp_path / "mine").read_text() == "precious"
    assert place.read_text() == "a roll-up"
    assert not place.is_symlink()
