"""A store that is slow, refuses or breaks as a test says: fsspec's protocol `flaky`, on folders of this machine."""

import json
import os
import time
from pathlib import Path
from typing import ClassVar

from fsspec import register_implementation
from fsspec.implementations.local import LocalFileSystem

VARIABLE = "FLAKY_STORE"
"""In other processes: the settings below, as JSON."""


class FlakyFileSystem(LocalFileSystem):
    """What each call does first is said by the class: for the tests of this process, and by the variable."""

    protocol = ("flaky",)
    error = None
    seconds = 0.0
    only = ""
    """The call that fails or is slow; empty for all."""
    puts: ClassVar = []
    reads: ClassVar = []

    @classmethod
    def _strip_protocol(cls, path):
        text = os.fspath(path)
        return super()._strip_protocol(text.removeprefix("flaky://") if isinstance(text, str) else text)

    def _trouble(self, call):
        told = json.loads(os.environ.get(VARIABLE, "{}"))
        if told.get("only", self.only) in ("", call):
            time.sleep(told.get("seconds", self.seconds))
            if told.get("missing"):
                raise FileNotFoundError("The specified bucket does not exist")
            if "error" in told:
                raise OSError(told["error"])
            if self.error is not None:
                raise self.error

    def ls(self, path, detail=False, **more):
        self._trouble("ls")
        return super().ls(path, detail=detail, **more)

    def info(self, path, **more):
        self._trouble("info")
        return super().info(path, **more)

    def get_file(self, path, target, *rest, **more):
        self._trouble("get")
        self.reads.append(Path(path).name)
        return super().get_file(path, target, *rest, **more)

    def pipe_file(self, path, value, *rest, **more):
        self._trouble("put")
        return super().pipe_file(path, value, *rest, **more)

    def put_file(self, source, path, *rest, **more):
        self._trouble("put")
        self.puts.append((Path(path).name, Path(source).stat().st_size))
        return super().put_file(source, path, *rest, **more)


def register():
    """The class, as if nothing had happened yet."""
    register_implementation("flaky", FlakyFileSystem, clobber=True)
    FlakyFileSystem.error, FlakyFileSystem.seconds, FlakyFileSystem.only = None, 0.0, ""
    FlakyFileSystem.puts, FlakyFileSystem.reads = [], []
    return FlakyFileSystem


def install(folder):
    """So that processes with the folder in PYTHONPATH find the protocol as that of an installed package."""
    told = folder / "flaky_store-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: flaky-store\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[fsspec.specs]\nflaky = flaky_store:FlakyFileSystem\n")
    (folder / "flaky_store.py").write_text(Path(__file__).read_text())
