"""Whose code a frame runs (the user's, a library's, the standard library's, JAX's or our own), and where a call comes
from.

It reads only code objects and line numbers, no locals, so it changes nothing in the user's frames.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from types import CodeType, FrameType, ModuleType

from jaxprof.events import NOWHERE, SourceLocation

USER, LIBRARY, STDLIB, JAX, OWN = "user", "library", "stdlib", "jax", "own"

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB_FOLDER = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGE_FOLDERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_FRAMES_LOOKED_AT = 2_000
_FRAMES_OF_A_CALL = 200

_GENERATED = re.compile(r"<(@|frozen |.*(generated|\bgen\b|internals|template))")
"""Matches the names of code that libraries generate: beartype's, attrs', sympy's, NumPy's, those of `decorator`."""


@lru_cache(maxsize=20_000)
def file_kind(file: str) -> str:
    """Return whose code is in the file: `USER`, `LIBRARY`, `STDLIB`, `JAX` or `OWN` (jaxprof's)."""
    if file.startswith("<"):
        return STDLIB if _GENERATED.match(file) else USER  # a prompt, a cell, `python -c`
    modules = (sys.modules.get("jax"), sys.modules.get("jaxlib"))
    folders = (getattr(module, "__file__", None) for module in modules)
    if file.startswith(tuple(os.path.dirname(folder) + os.sep for folder in folders if folder)):
        return JAX
    if file.startswith(_OWN_FOLDER):
        return OWN
    if any(folder in file for folder in _PACKAGE_FOLDERS):
        return LIBRARY
    return STDLIB if file.startswith(_STDLIB_FOLDER) else USER


def package_of(file: str) -> str:
    """Return the package of a library's file: `equinox`, `flax.nnx`, `jaxopt` for what is in `jaxopt/_src`; empty for
    a file outside the package folders."""
    for folder in _PACKAGE_FOLDERS:
        if folder in file:
            names = file.rpartition(folder)[2].split(os.sep)[:-1][:2]
            return ".".join(name for name in names if not name.startswith("_"))
    return ""


def frame_kind(frame: FrameType) -> str:
    """Return whose code a frame runs."""
    file = frame.f_code.co_filename
    kind = file_kind(file)
    is_unnamed = kind == USER and file.startswith("<") and not file.startswith(("<stdin>", "<ipython"))
    if is_unnamed and frame.f_globals.get("__name__") != "__main__":
        return STDLIB  # made by `exec`, such as the methods of dataclasses and named tuples
    return kind


def outwards(frame: FrameType | None, most: int = _FRAMES_OF_A_CALL) -> Iterator[FrameType]:
    """Yield a frame and those around it, innermost first, up to a limit."""
    for _ in range(most):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def user_location(frame: FrameType | None) -> SourceLocation:
    """Return the user's innermost location at or above `frame`; else the innermost outside JAX, or `NOWHERE`."""
    return user_call(frame)[0]


def user_call(frame: FrameType | None) -> tuple[SourceLocation, str]:
    """Return `user_location`, and the library that is called there, if its code is between the two."""
    fallback, library = NOWHERE, ""
    for caller in outwards(frame, _FRAMES_LOOKED_AT):
        kind = file_kind(caller.f_code.co_filename)
        if kind == USER:
            kind = frame_kind(caller)
        if kind == USER:
            return _location(caller), package_of(library)
        if not fallback and kind in (LIBRARY, STDLIB):
            fallback = _location(caller)
        if kind == LIBRARY:
            library = caller.f_code.co_filename
    return fallback, package_of(library)


def error_location(error: BaseException) -> SourceLocation:
    """Return the line of a syntax error; of another exception the user's innermost line that it went through, otherwise
    the innermost line of all; `NOWHERE` if it has no traceback."""
    if isinstance(error, SyntaxError) and error.filename and os.path.isfile(error.filename):
        return SourceLocation(os.path.abspath(error.filename), error.lineno)
    users, innermost, step = NOWHERE, NOWHERE, error.__traceback__
    while step is not None:
        innermost = _location(step.tb_frame, step.tb_lineno)
        if frame_kind(step.tb_frame) == USER:
            users = innermost
        step = step.tb_next
    return users or innermost


def shadowing_file(error: BaseException) -> SourceLocation:
    """Return the user's file that was imported under the name of a module of the standard library or of a package;
    `NOWHERE` unless `error` passed through that import by code of others, or names the file as what lacks something."""
    outermost = error.__traceback__
    main = os.path.abspath(outermost.tb_frame.f_code.co_filename) if outermost is not None else ""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        candidates: list[tuple[object, object]] = []
        if isinstance(cause, ImportError) and cause.name:
            module = sys.modules.get(cause.name.partition(".")[0])
            candidates.append((cause.name.partition(".")[0], cause.path or getattr(module, "__file__", None)))
        elif type(cause) is ImportError:  # of C code: "numpy._core.multiarray failed to import"
            candidates.append((str(cause).partition(".")[0], main))
        elif isinstance(cause, AttributeError) and isinstance(cause.obj, ModuleType):
            candidates.append((cause.obj.__name__, getattr(cause.obj, "__file__", None)))
        importer, step = "", cause.__traceback__
        while step is not None:
            code, names = step.tb_frame.f_code, step.tb_frame.f_globals
            mains = os.path.abspath(code.co_filename) == main
            if code.co_name == "<module>" and (mains or not _is_users(importer)):
                candidates.append((names.get("__name__"), code.co_filename))
            importer = importer if code.co_filename.startswith("<frozen ") else code.co_filename
            step = step.tb_next
        for name, file in candidates:
            path = os.path.abspath(file) if isinstance(file, str) else ""
            if isinstance(name, str) and _shadows(name, path):
                return SourceLocation(path)
        cause = cause.__cause__ or cause.__context__
    return NOWHERE


def _is_users(file: str) -> bool:
    """Whether a file is neither the standard library's nor a package's, where `file_kind` is misled by a `jax.py`."""
    return not file.startswith(_STDLIB_FOLDER) and not any(folder in file for folder in _PACKAGE_FOLDERS)


def _shadows(name: str, file: str) -> bool:
    """Whether a user's file is the module `name`, and another module of that name would be found without it."""
    if not _is_users(file) or not file.endswith((f"{os.sep}{name}.py", f"{os.sep}{name}{os.sep}__init__.py")):
        return False
    if name in sys.stdlib_module_names:
        return True
    folder = os.path.dirname(file.removesuffix(f"{os.sep}__init__.py"))
    spec = PathFinder.find_spec(name, [path for path in sys.path if os.path.abspath(path) != folder])
    return spec is not None and spec.has_location


def _location(frame: FrameType, line: int | None = None) -> SourceLocation:
    code = frame.f_code
    return SourceLocation(code.co_filename, frame.f_lineno if line is None else line, code.co_name)


def definition(code: CodeType | None) -> SourceLocation:
    """Return where a function is defined; `NOWHERE` if unknown."""
    return NOWHERE if code is None else SourceLocation(code.co_filename, code.co_firstlineno)
