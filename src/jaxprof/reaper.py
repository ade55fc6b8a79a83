"""Ends our engines when we are killed ourselves: a small process of its own, which needs nothing of theirs.

An engine ends by itself when its control pipe closes, but not while native code holds the interpreter's lock. The
kernel's `PR_SET_PDEATHSIG` would not do: it follows the thread that started a child, not the process. This process (a
shell, about 1 MB) reads a pipe that only we hold; at its end, whatever ended us, it kills the process groups that are
still registered and removes their folders, and those that we registered alone.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Final

from jaxprof.errors import StorageError, system_words
from jaxprof.operating_system import can_run

GRACE_SECONDS: Final = 1
"""How long engines may take to end by themselves once we have gone."""
_SHELL: Final = "/bin/sh"
_SCRIPT: Final = """
trap '' INT TERM HUP QUIT
groups=' '
while read -r word group folder; do
    case $word in
        add) groups="$groups$group "; eval "folder_$group=\\$folder" ;;
        drop) case $groups in *" $group "*) groups="${groups%% "$group" *} ${groups#* "$group" }" ;; esac ;;
    esac
done
[ -n "${groups# }" ] || exit 0
for group in $groups; do
    case $group in folder*) ;; *) kill -CONT "-$group" ;; esac
done
sleep "$1"
for group in $groups; do
    case $group in folder*) ;; *) kill -9 "-$group" ;; esac
    eval "folder=\\$folder_$group"
    [ -z "$folder" ] || rm -rf -- "$folder"
done
"""


class _Reaper:
    """The process, started with the first engine. Without a shell there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[int | str, str] = {}
        self._kept = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def add(self, group: int, folder: str) -> None:
        """From now on the process group `group` ends with us, frozen or not, and `folder` goes with it."""
        self._add(group, folder)

    def add_folder(self, folder: str) -> str:
        """From now on `folder`, which no process of its own goes with, does not outlast us; returns what `drop`
        takes."""
        name = f"folder{next(self._kept)}"
        self._add(name, folder)
        return name

    def _add(self, group: int | str, folder: str) -> None:
        if "\n" in folder:  # a line of what it reads ends there: it would remove another folder
            return
        with self._lock:
            self._folders[group] = folder
            if not self._tell(f"add {group} {folder}"):
                self._start()

    def drop(self, group: int | str) -> None:
        """The group has ended, if it is one, and its folder is gone."""
        with self._lock:
            if self._folders.pop(group, None) is not None:
                self._tell(f"drop {group}")

    def close(self) -> None:
        """At our own end: it kills what is still there."""
        with self._lock:
            self._close_pipe()

    def _tell(self, line: str) -> bool:
        try:
            os.write(self._pipe, os.fsencode(f"{line}\n"))
        except OSError:  # it is not there yet, or somebody has killed it
            return False
        return True

    def _start(self) -> None:
        if not can_run():  # Windows: no shell, and no process groups
            return
        self._close_pipe()
        read, self._pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT, "jaxprof-reaper", str(GRACE_SECONDS)],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._close_pipe()
            return
        finally:
            os.close(read)
        for group, folder in self._folders.items():
            self._tell(f"add {group} {folder}")

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1


REAPER: Final = _Reaper()
atexit.register(REAPER.close)


class TemporaryFolder:
    """A folder that does not outlast this process, whatever ends it. As a context manager it gives its path."""

    def __init__(self, name: str) -> None:
        """Makes `jaxprof-NAME-*` where temporary files go. Raises StorageError."""
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"jaxprof-{name}-"))
        except OSError as error:
            raise StorageError(
                f"no temporary folder can be made: {system_words(error)}",
                "TMPDIR names the folder for temporary files.",
            ) from error
        self._registered = REAPER.add_folder(str(self.path))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes it, with what is in it. May be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        REAPER.drop(self._registered)
