"""A store that is slow, refuses or breaks as a test says: fsspec's protocol `flaky`, on folders of this machine."""

import os
import time
from pathlib import Path
from typing import ClassVar

from fsspec import register_implementation
from fsspec.implementations.local import LocalFileSystem


class FlakyFileSystem(LocalFileSystem):
    """What each call does first is said by the class."""

    protocol = ("flaky",)
    error = None
    seconds = 0.0
    reads: ClassVar = []

    @classmethod
    def _strip_protocol(cls, path):
        text = os.fspath(path)
        return super()._strip_protocol(text.removeprefix("flaky://") if isinstance(text, str) else text)

    def _trouble(self):
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error

    def ls(self, path, detail=False, **more):
        self._trouble()
        return super().ls(path, detail=detail, **more)

    def info(self, path, **more):
        self._trouble()
        return super().info(path, **more)

    def get_file(self, path, target, *rest, **more):
        self._trouble()
        self.reads.append(Path(path).name)
        return super().get_file(path, target, *rest, **more)


def register():
    """The class, as if nothing had happened yet."""
    register_implementation("flaky", FlakyFileSystem, clobber=True)
    FlakyFileSystem.error, FlakyFileSystem.seconds, FlakyFileSystem.reads = None, 0.0, []
    return FlakyFileSystem
