"""End our engines when we are killed ourselves, by means of a small process that needs nothing of theirs.

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

from jaxprof.base.errors import StorageError, system_words
from jaxprof.base.operating_system import can_run

GRACE_SECONDS = 1
"""Seconds that engines have to end by themselves after this process has ended."""
_SCRIPT = """
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
    """The reaper process, started with the first engine. Without a shell there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[int | str, str] = {}
        self._kept = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def add(self, group: int | str, folder: str) -> None:
        """From now on, end the process group `group` when this process ends, frozen or not, and remove `folder`."""
        if "\n" in folder:  # a line of the pipe would end there, and another folder be removed
            return
        with self._lock:
            self._folders[group] = folder
            if not self._send(f"add {group} {folder}"):
                # Start the reaper, and register again what was registered with an earlier one.
                if not can_run():  # Windows: no shell, and no process groups
                    return
                self._close_pipe()
                read, self._pipe = os.pipe()
                try:
                    self._process = subprocess.Popen(
                        ["/bin/sh", "-c", _SCRIPT, "jaxprof-reaper", str(GRACE_SECONDS)],
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
                    self._send(f"add {group} {folder}")

    def add_folder(self, folder: str) -> str:
        """Remove `folder`, which belongs to no process of its own, when this process ends. Return what `drop` takes."""
        name = f"folder{next(self._kept)}"
        self.add(name, folder)
        return name

    def drop(self, group: int | str) -> None:
        """Forget a group that has ended, or a folder that is gone."""
        with self._lock:
            if self._folders.pop(group, None) is not None:
                self._send(f"drop {group}")

    def close(self) -> None:
        """Close the pipe at our own end: the reaper kills what is still registered."""
        with self._lock:
            self._close_pipe()

    def _send(self, line: str) -> bool:
        try:
            os.write(self._pipe, os.fsencode(f"{line}\n"))
        except OSError:  # it has not started yet, or somebody has killed it
            return False
        return True

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1


REAPER = _Reaper()
atexit.register(REAPER.close)


class TemporaryFolder:
    """A folder that does not outlast this process, whatever ends it. As a context manager it returns its path."""

    def __init__(self, name: str) -> None:
        """Make `jaxprof-NAME-*` in the folder for temporary files. Raises StorageError."""
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
        """Remove the folder with all that is in it. May be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        REAPER.drop(self._registered)
