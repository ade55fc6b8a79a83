"""From what somebody typed to a workload: a built-in name, `path/to/file.py:function`, `package.module:function`.

Importing a user's file runs it. So this is done in the engine's process only, and never in the one that draws the
screen. What goes wrong there is the user's to mend: every error says where, and what to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxprof.errors import UsageError, unknown_name
from jaxprof.workloads import built_in, names
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import Workload
from jaxprof.workloads.user import declaration_of

COMPANION = "_inputs"
"""The function whose name ends so, `step_inputs` for `step`, makes the arguments of the one beside it."""
_OFFERED = 12


def find(target: str, arguments: Sequence[str] = ()) -> Workload:
    """The workload at `target`; `arguments` are specs for a user's own function, and mean nothing to a built-in one.

    Raises UsageError naming what is wrong, and what is near.
    """
    if target in names():
        return built_in(target)
    place, _, wanted = target.rpartition(":") if ":" in target else (target, "", "")
    if not place or not _is_place(place):
        raise unknown_name("workload", target, names())
    module = _load(place)
    if not wanted:
        raise UsageError(f"{place} is a file or module, not a function", _offer(place, module))
    return _workload(module, place, wanted, arguments)


def find_all(target: str, arguments: Sequence[str] = ()) -> list[Workload]:
    """As `find`; a file or module without a function gives all its functions that are ready to be run.

    Those are the declared ones, and the ones that have an inputs function beside them. Raises UsageError, listing the
    functions, where there is none of either.
    """
    if target in names() or ":" in target or not _is_place(target):
        return [find(target, arguments)]
    module = _load(target)
    ready = [name for name in functions_in(module) if _is_ready(module, name)]
    if not ready:
        raise UsageError(f"{target} declares no workload", _offer(target, module))
    return [_workload(module, target, name, arguments) for name in ready]


def functions_in(module: ModuleType) -> list[str]:
    """Names of the functions that `module` itself defines, the declared ones first; no inputs functions, no classes."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type) and _is_own(module, value)
    ]
    shown = [name for name in own if not (name.endswith(COMPANION) and name.removesuffix(COMPANION) in own)]
    return sorted(shown, key=lambda name: declaration_of(vars(module)[name]) is None)


def _is_ready(module: ModuleType, name: str) -> bool:
    return declaration_of(vars(module)[name]) is not None or _companion(module, name) is not None


def _is_own(module: ModuleType, value: object) -> bool:
    """Whether it was made in `module`: a function says so itself; a partial does not, and counts if declared."""
    maker = getattr(value, "__module__", None)
    return maker == module.__name__ or (maker == "functools" and declaration_of(value) is not None)


def _workload(module: ModuleType, place: str, wanted: str, arguments: Sequence[str]) -> Workload:
    function = _attribute(module, place, wanted)
    short = Path(place).name if place.endswith(".py") else place
    workload = workload_of(
        function,
        origin=f"{place}:{wanted}",
        name=f"{short}:{wanted}",
        companion=_companion(module, wanted),
        arguments=arguments,
    )
    if workload.name in names():
        raise UsageError(
            f"{place}:{wanted} is named {workload.name!r}, like a built-in workload", "Give it another name=."
        )
    return workload


def _attribute(module: ModuleType, place: str, wanted: str) -> Callable[..., Any]:
    """The function `wanted` (dots allowed), or the one that was declared under that name. Raises UsageError."""
    value: Any = module
    try:
        for part in wanted.split("."):
            value = getattr(value, part)
    except AttributeError:
        for name in functions_in(module):
            declared = declaration_of(vars(module)[name])
            if declared is not None and declared.name == wanted:
                function: Callable[..., Any] = vars(module)[name]
                return function
        known = functions_in(module)
        near = get_close_matches(wanted, known, n=3, cutoff=0.5)
        mend = f"Did you mean {', '.join(near)}?" if near else _offer(place, module)
        raise UsageError(f"{place} has no function {wanted!r}", mend) from None
    if not callable(value):
        raise UsageError(
            f"{place}:{wanted} is not a function (its type is {type(value).__name__})", _offer(place, module)
        )
    called: Callable[..., Any] = value
    return called


def _companion(module: ModuleType, name: str) -> Callable[..., Any] | None:
    companion = vars(module).get(name + COMPANION)
    return companion if callable(companion) else None


def _offer(place: str, module: ModuleType) -> str:
    """What there is in `module`, as an advice."""
    known = functions_in(module)
    if not known:
        return "It defines no function."
    more = f" and {len(known) - _OFFERED} more" if len(known) > _OFFERED else ""
    return "It has: " + ", ".join(f"{place}:{name}" for name in known[:_OFFERED]) + more + "."


def _is_place(text: str) -> bool:
    """Whether `text` can be a file or a module, rather than the mistyped name of a workload."""
    if _is_file(text):
        return True
    return all(part.isidentifier() for part in text.split(".")) and ("." in text or _module_exists(text))


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or Path(place).is_file()


def _module_exists(name: str) -> bool:
    _first_on_path(Path.cwd())
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _load(place: str) -> ModuleType:
    """The module at `place`, a file or a dotted name. Raises UsageError: missing, broken, or failing when imported."""
    if _is_file(place):
        return _load_file(place)
    _first_on_path(Path.cwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {error.name!r}",
                "Run jaxprof from the folder that holds it, give the file instead (path/to/file.py:function), or name "
                "the interpreter that has it with --python.",
            ) from None
        raise _broken(place, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(place, error) from error


def _load_file(place: str) -> ModuleType:
    path = Path(place).expanduser().resolve()
    if not path.exists():
        near = get_close_matches(path.name, [sibling.name for sibling in path.parent.glob("*.py")], n=3, cutoff=0.5)
        mend = f"In that folder there is: {', '.join(near)}." if near else f"The folder is {path.parent}."
        raise UsageError(f"there is no file {place}", mend)
    if path.is_dir() or path.suffix != ".py":
        raise UsageError(f"{place} is not a Python file", "Give path/to/file.py:function.")
    dotted, root = dotted_name(path)
    _first_on_path(root)
    try:
        found = importlib.util.find_spec(dotted)
        if found is not None and found.origin is not None and Path(found.origin).resolve() == path:
            return importlib.import_module(dotted)
        return _load_apart(path)
    except (Exception, SystemExit) as error:
        raise _broken(place, error, path) from error


def dotted_name(path: Path) -> tuple[str, Path]:
    """The file's name as a module, with the packages around it, and the folder from which it is imported."""
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _load_apart(path: Path) -> ModuleType:
    """The file under a name of its own, because another module has its name already."""
    name = f"jaxprof_target_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _first_on_path(folder: Path) -> None:
    """`folder` where Python looks first, as it does for a script: the file's neighbours can be imported."""
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)


def _broken(place: str, error: BaseException, path: Path | None = None) -> UsageError:
    """The error for a file that is there and cannot be imported: what, on which line, and what that line says."""
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        return UsageError(
            f"{error.filename or place}, line {error.lineno}: {error.msg}", f"The line is: {line}" if line else ""
        )
    if isinstance(error, SystemExit):
        return UsageError(
            f"{place} ended the program while it was imported (exit {error.code})",
            'Put what it does as a script under if __name__ == "__main__":.',
        )
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is not None and frame.filename == str(path)] or frames[-1:]
    where = f", line {own[-1].lineno}" if own else ""
    what = f"importing {place} failed{where}: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        return UsageError(what, "Install it where the engine runs, or name the interpreter that has it with --python.")
    return UsageError(what, f"The line is: {own[-1].line}" if own and own[-1].line else "")
