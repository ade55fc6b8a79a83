"""A file system that is full or read-only, a real one: what was measured is printed and kept elsewhere, what was there
stays, and what failed is one line with a hint.

A mount of our own needs a user namespace; where the machine allows none, only the limit on the size of a file is left.
"""

import functools
import os
import resource
import shutil
import subprocess
import sys

import pytest

from cli.calling import Said, environment
from cli.test_kills import plan
from jaxprof.cli.output import ExitCode
from jaxprof.session import Session, load
from mutated import originals
from pythons import stand_in

pytestmark = pytest.mark.process

WAYS = {
    "full": ('dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null', "No space left on device"),
    "almost full": (
        'dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null; truncate -s -4k "$0/filler"', "No space left on device",
    ),
    # Only the mount is ours, if we are not root: the file system behind it may not be changed.
    "read-only": ('mount -o remount,bind,ro "$0" || exit 99', "Read-only file"),
}  # fmt: skip
"""What makes it so, and the words of the system for it. 99 is a machine that does not allow it."""
SCRIPT = """
mount -t tmpfs -o size=1m tmpfs "$0" || exit 99
cp -r "$0.before/." "$0" || exit 99
{way}
"$@"
code=$?
cp -r "$0/." "$0.after"
exit $code
"""


@functools.cache
def can_mount():
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return shutil.which("unshare") is not None and subprocess.run(words, capture_output=True).returncode == 0


needs_a_mount = pytest.mark.skipif("not can_mount()", reason="this machine allows no namespace of our own")


class Disk:
    """A small file system at `place`, with what is in `place.before`; `place.after` has what was in it at the end."""

    def __init__(self, folder):
        self.place = folder / "disk"
        self.before, self.after, self.work = folder / "disk.before", folder / "disk.after", folder / "work"
        for each in (self.place, self.before, self.after, self.work):
            each.mkdir()

    def call(self, way, *words):
        """`jaxprof WORDS`, whose working folder is elsewhere."""
        given = [sys.executable, "-m", "jaxprof", *map(str, words)]
        ran = subprocess.run(
            ["unshare", "-rm", "sh", "-c", SCRIPT.format(way=WAYS[way][0]), str(self.place), *given],
            cwd=self.work, env=environment() | {"JAXPROF_HOME": str(self.place)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
        )  # fmt: skip
        if ran.returncode == 99:
            pytest.skip(f"this machine allows no such mount: {ran.stderr}")
        assert "Traceback" not in ran.stderr
        return Said(ran.returncode, ran.stdout, ran.stderr)

    def new_sessions(self):
        return [load(path, Session) for path in self.work.glob("jaxprof-*.jaxprof")]


@pytest.fixture
def disk(tmp_path):
    made = Disk(tmp_path)
    path = made.before / "sessions/kept.jaxprof"
    path.parent.mkdir()
    path.write_bytes(originals("session")[-1])
    (made.before / "old.html").write_text("mine")
    (made.work / "s.jaxprof").write_bytes(originals("session")[-1])
    (made.work / "host.xplane.pb").write_bytes(originals("profile")[0])
    (made.work / "hello.py").touch()
    return made


@needs_a_mount
def test_a_run_is_printed_and_kept_elsewhere(disk):
    said = disk.call("almost full", "run", "--from", plan(disk.work, "numpy"), "--budget", "0.05")
    assert said.code == ExitCode.FAILED, said.err
    assert said.err.count(f"the session cannot be written to {disk.place}") == 2, "at once, and where it is at the end"
    assert WAYS["almost full"][1] in said.err
    assert "--out FILE names another place" in said.err
    assert "selu" in said.out
    (session,) = disk.new_sessions()
    assert session.complete is True
    assert session.notices == []
    assert [run.status for run in session.runs.values()] == ["ok"]


@needs_a_mount
def test_a_program_is_recorded_elsewhere(disk):
    said = disk.call("full", "script", "--plain", "--python", stand_in(disk.work, "echo hello"), "hello.py")
    assert (said.code, said.out) == (ExitCode.OK, "hello\n"), said.err
    assert [session.complete for session in disk.new_sessions()] == [True], said.err
    at_once, _, at_the_end = said.err.partition("jaxprof: hello.py")
    for text in (at_once, at_the_end):
        assert text.count(f"the session cannot be written to {disk.place}") == 1, said.err
    assert WAYS["full"][1] in at_once
    assert [path.name for path in disk.after.rglob("*.jaxprof")] == ["kept.jaxprof"], "an empty one would be the last"


@needs_a_mount
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("almost full", "export s.jaxprof -o PLACE/old.html --force --format html"),
        ("read-only", "open --keep host.xplane.pb -o PLACE/x.jaxprof"),
    ],
)
def test_failed_write_is_one_line_and_keeps_the_old_file(way, words, disk):
    said = disk.call(way, *words.replace("PLACE", str(disk.place)).split())
    assert said.code == ExitCode.USAGE, said
    first, *more = said.err.splitlines()
    assert first.startswith("jaxprof: "), said.err
    assert len(more) < 2, said.err
    assert WAYS[way][1] in said.err, said.err
    names = {str(path.relative_to(disk.after)) for path in disk.after.rglob("*") if path.is_file()} - {"filler"}
    assert names == {"sessions/kept.jaxprof", "old.html"}
    for each in names:
        assert (disk.after / each).read_bytes() == (disk.before / each).read_bytes()


def test_file_size_limit_loses_no_output(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    words = ["run", "--from", plan(tmp_path, "numpy"), "--budget", "0.05"]
    ran = subprocess.run(
        [sys.executable, "-m", "jaxprof", *words],
        cwd=tmp_path, env=environment() | {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": os.fspath(tmp_path)},
        preexec_fn=limit, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == ExitCode.FAILED, ran.stderr
    assert "File too large" in ran.stderr
    assert "the session could not be kept" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "selu" in ran.stdout
