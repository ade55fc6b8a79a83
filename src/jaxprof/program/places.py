"""Whose code a frame is: the user's, a library's, the standard library's, JAX's or our own; and where a call came from.

It reads no locals: only code objects and line numbers, so that looking at the user's frames changes nothing there.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

USER, LIBRARY, STDLIB, JAX, OWN = "user", "library", "stdlib", "jax", "own"

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB_FOLDER = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGE_FOLDERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_FILES_REMEMBERED = 20_000
_FRAMES_LOOKED_AT = 2_000

_kinds: dict[str, str] = {}


def file_kind(file: str) -> str:
    """Whose file it is; remembered by name."""
    kind = _kinds.get(file)
    if kind is None:
        if len(_kinds) >= _FILES_REMEMBERED:
            _kinds.clear()
        kind = _kinds[file] = _judge(file)
    return kind


def _judge(file: str) -> str:
    if file.startswith("<"):
        # What `exec` made has no place; a prompt, a cell and `python -c` are the user's.
        return USER if file.startswith(("<stdin>", "<ipython", "<string>")) else STDLIB
    if file.startswith(_jax_folders()):
        return JAX
    if file.startswith(_OWN_FOLDER):
        return OWN
    if any(folder in file for folder in _PACKAGE_FOLDERS):
        return LIBRARY
    return STDLIB if file.startswith(_STDLIB_FOLDER) else USER


def _jax_folders() -> tuple[str, ...]:
    modules = (sys.modules.get("jax"), sys.modules.get("jaxlib"))
    files = [getattr(module, "__file__", None) for module in modules]
    return tuple(os.path.dirname(file) + os.sep for file in files if file)


def frame_kind(frame: FrameType) -> str:
    """Whose code a frame runs."""
    code = frame.f_code
    kind = file_kind(code.co_filename)
    if kind == USER and code.co_filename == "<string>" and frame.f_globals.get("__name__") != "__main__":
        return STDLIB  # the generated methods of dataclasses and named tuples
    return kind


def called_from(frame: FrameType | None) -> dict[str, Any]:
    """The user's innermost place at or above `frame`: file, line, function; else the innermost outside JAX; else {}."""
    fallback: dict[str, Any] = {}
    looked_at = 0
    while frame is not None and looked_at < _FRAMES_LOOKED_AT:
        kind = _kinds.get(frame.f_code.co_filename)
        if kind is None or kind == USER:
            kind = frame_kind(frame)
        if kind == USER:
            return _place(frame)
        if not fallback and kind in (LIBRARY, STDLIB):
            fallback = _place(frame)
        frame = frame.f_back
        looked_at += 1
    return fallback


def _place(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    return {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}


def definition(code: CodeType | None) -> dict[str, Any]:
    """Where a function is defined: file, line; {} where it cannot be known."""
    return {} if code is None else {"file": code.co_filename, "line": code.co_firstlineno}


def short(place: dict[str, Any]) -> str:
    """A place in words: `train.py:88`."""
    return f"{os.path.basename(place['file'])}:{place['line']}" if place else "an unknown line"
