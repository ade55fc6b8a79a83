"""A folder as somebody might send it: whatever could be taken for something to start, or to import, leaves a mark."""

import os
from pathlib import Path

NAMES = ("hlo", "open", "explain", "run", "script")
MODULES = (
    "click", "json", "pip", "jaxprof", "msgspec", "numpy", "jax", "textual", "psutil", "typing", "random", "duckdb",
    "sitecustomize", "usercustomize", "conftest", "setup", "noxfile", "last", "selu", "train",
)  # fmt: skip
PROGRAMS = ("git", "sh", "python", "python3", "ps", "nvidia-smi", "less", "xdg-open")
HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman")
SETTINGS = """
[tool.jaxprof]
budget = 1
[build-system]
requires = []
build-backend = "setup"
backend-path = ["."]
"""


class Baits:
    """Fills folders, and knows which of the baits were taken."""

    def __init__(self, marks: Path) -> None:
        """`marks`: a folder that is not there yet, for the marks."""
        self.marks = marks
        marks.mkdir()

    @property
    def taken(self) -> list[str]:
        return sorted(mark.name for mark in self.marks.iterdir())

    def code(self, name: str) -> str:
        """Python that leaves the mark `name`."""
        return f"open({str(self.marks / name)!r}, 'w').close()\ndef r1(x): return x\ndef jit(x): return x\n"

    def put(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        packages = ("__main__", "__init__", *MODULES, *NAMES)
        files = {f"{name}.py": self.code(name) for name in packages if name not in ("jaxprof", "pip")}
        files |= {f"{name}/__init__.py": self.code(name) for name in ("jaxprof", "pip", "a")}
        files |= {"a/jaxprof.py": self.code("a.jaxprof"), "selu:/x.py": self.code("selu:"), "selu:jit.py": ""}
        files |= {"x.pth": f"import os; {self.code('pth').splitlines()[0]}", "pyproject.toml": SETTINGS}
        files |= {".git/config": f"[core]\nfsmonitor={folder}/bin/sh\nhooksPath={folder}/bin\n", ".git/HEAD": "x"}
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                path.write_text(text)
        for name in (*(f"{at}/{name}" for at in ("bin", ".venv/bin", "venv/bin") for name in PROGRAMS),
                     *(f".git/hooks/{name}" for name in HOOKS)):  # fmt: skip
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n: > '{self.marks / name.replace('/', '-')}'\n")
            os.chmod(path, 0o755)
        return folder
