"""Find the workload of a target: a built-in name, `path/to/file.py:function`, `package.module:function`.

Importing a user's file runs it, so this happens only in the engine's process, never in the one that draws the screen.
Only the user can fix what fails there: every error says where it happened, and what to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxprof.base.errors import UsageError, missing_file, unknown_name
from jaxprof.base.files import with_home
from jaxprof.base.units import and_more
from jaxprof.workloads import load_built_in, names
from jaxprof.workloads.decorator import declaration_of
from jaxprof.workloads.function import INPUTS, SHARDINGS, beside, workload_of
from jaxprof.workloads.model import Workload


def find(target: str, arguments: Sequence[str] = (), argv: Sequence[str] = (), inputs_from: str = "") -> Workload:
    """Return the workload at `target`. `arguments`: specs for a user's own function, ignored for a built-in one.
    `argv`: the value of `sys.argv` while the user's file is imported; by default the file alone, as with `python FILE`.
    `inputs_from`: the target whose inputs it takes, if nothing says what its own are.

    Raises UsageError with the reason, and with similar names.
    """
    if target in names():
        return load_built_in(target)
    location, _, wanted = target.rpartition(":") if ":" in target else (target, "", "")
    if not location or not _is_location(location):
        raise unknown_name("workload", target, names())
    module = _load(location, argv)
    if not wanted:
        raise UsageError(f"{location} is a file or module, not a function", _hint(location, module))
    return _workload(module, location, wanted, arguments, inputs_from)


def find_all(target: str, arguments: Sequence[str] = (), inputs_from: str = "") -> list[Workload]:
    """Return what `find` returns; for a file or module without a function, all its functions that are ready to run.

    Those are the declared ones, and the ones with an inputs function; with `arguments`, those of them (or, if there are
    none, of all functions) that can be called with these. If no function is ready and `inputs_from` lends its inputs,
    the function of that name is taken, or all are. Raises UsageError, listing the functions, if there are none.
    """
    if target in names() or ":" in target or not _is_location(target):
        return [find(target, arguments, inputs_from=inputs_from)]
    module = _load(target)
    defined = functions_in(module)
    ready = [
        name
        for name in defined
        if declaration_of(vars(module)[name]) is not None or _companion(module, name) is not None
    ]
    if not arguments:
        if not ready and inputs_from and defined:
            namesake = inputs_from.rpartition(":")[2]
            borrowing = [namesake] if namesake in defined else defined
            return [_workload(module, target, name, (), inputs_from) for name in borrowing]
        if not ready:
            raise UsageError(f"{target} declares no workload", _hint(target, module))
        return [_workload(module, target, name) for name in ready]
    fitting = _fitting(module, target, ready, arguments) or _fitting(module, target, defined, arguments)
    if not fitting:
        raise UsageError(f"no function of {target} can be called with {', '.join(arguments)}", _hint(target, module))
    return fitting


def _fitting(module: ModuleType, location: str, wanted: Sequence[str], arguments: Sequence[str]) -> list[Workload]:
    fitting: list[Workload] = []
    for name in wanted:
        with suppress(UsageError):
            fitting.append(_workload(module, location, name, arguments))
    return fitting


def functions_in(module: ModuleType) -> list[str]:
    """Return the names of a module's own functions, declared ones first, without inputs functions and classes."""
    own = []
    for name, value in vars(module).items():
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            continue
        # A partial does not say where it was defined, and counts if it is declared.
        maker = getattr(value, "__module__", None)
        if maker == module.__name__ or (maker == "functools" and declaration_of(value) is not None):
            own.append(name)
    belonging = {name + ending for name in own for ending in (INPUTS, SHARDINGS)}
    shown = [name for name in own if name not in belonging]
    return sorted(shown, key=lambda name: declaration_of(vars(module)[name]) is None)


def _workload(
    module: ModuleType,
    location: str,
    wanted: str,
    arguments: Sequence[str] = (),
    inputs_from: str = "",
) -> Workload:
    """Return the workload `wanted` of a module. Raises UsageError. `location`: the module's name in a target."""
    function = _attribute(module, location, wanted)
    if declaration_of(function) is None and not inputs_from:
        _refuse_without_object(module, location, wanted)
    short = Path(location).name if location.endswith(".py") else location
    # A function `NAME_shardings`, or the list under that name with an entry for each argument.
    written = vars(module).get(beside(wanted, SHARDINGS))
    workload = workload_of(
        function,
        origin=f"{location}:{wanted}",
        name=f"{short}:{wanted}",
        companion=_companion(module, wanted),
        shardings=written if callable(written) or isinstance(written, list | tuple) else None,
        arguments=arguments,
        # Found after the workload that takes the inputs, which may share the name of the one that lends them.
        lend=(lambda: find(inputs_from)) if inputs_from else None,
    )
    if workload.name in names():
        raise UsageError(
            f"{location}:{wanted} is named {workload.name!r}, like a built-in workload", "Choose another name=."
        )
    return workload


def _attribute(module: ModuleType, location: str, wanted: str) -> Callable[..., Any]:
    """Return the function `wanted` (dots allowed), or the one declared under that name. Raises UsageError."""
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
        near = get_close_matches(wanted, functions_in(module), n=3, cutoff=0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else _hint(location, module)
        raise UsageError(f"{location} has no function {wanted!r}", hint) from None
    if not callable(value):
        raise UsageError(
            f"{location}:{wanted} is not a function (its type is {type(value).__name__})", _hint(location, module)
        )
    called: Callable[..., Any] = value
    return called


def _refuse_without_object(module: ModuleType, location: str, wanted: str) -> None:
    """Raises UsageError for the method of a class, of which nothing says what object it is called with."""
    path, _, name = wanted.rpartition(".")
    owner = attrgetter(path)(module) if path else module
    method = inspect.getattr_static(owner, name)
    if not isinstance(owner, type) or isinstance(method, staticmethod | classmethod) or not hasattr(method, "__get__"):
        return
    objects = [key for key, value in vars(module).items() if isinstance(value, owner)]
    object_name = owner.__name__.lower()
    raise UsageError(
        f"{location}:{wanted} is a method of a class, and needs an object of it",
        f"Give that of one in the file: {and_more([f'{location}:{key}.{name}' for key in objects], 12)}."
        if objects
        else f"Make one in the file, {object_name} = {path}(...), and give {location}:{object_name}.{name}.",
    )


def _companion(module: ModuleType, name: str) -> Callable[..., Any] | None:
    companion = vars(module).get(beside(name, INPUTS))
    return companion if callable(companion) else None


def _hint(location: str, module: ModuleType) -> str:
    defined = functions_in(module)
    if not defined:
        return "It defines no function."
    return f"It has: {and_more([f'{location}:{name}' for name in defined], 12)}."


def _is_location(text: str) -> bool:
    """Return whether `text` can be a file or a module, rather than the mistyped name of a workload."""
    if _is_file(text):
        return True
    if not all(part.isidentifier() for part in text.split(".")):
        return False
    if "." in text:
        return True
    _put_first_on_path(Path.cwd())
    try:
        return importlib.util.find_spec(text) is not None
    except (ImportError, ValueError):
        return False


def _is_file(location: str) -> bool:
    return location.endswith(".py") or "/" in location or Path(location).is_file()


@contextmanager
def _argv_of_user(file: str, argv: Sequence[str]) -> Iterator[None]:
    """Set `sys.argv` to the user's: many files parse it when they are imported, and would fail on ours. `-m NAME ARGS`
    becomes FILE ARGS, as Python does it."""
    former, sys.argv = sys.argv, [file, *argv[2:]] if argv[:1] == ["-m"] else list(argv) or [file]
    try:
        yield
    finally:
        sys.argv = former


def _load(location: str, argv: Sequence[str] = ()) -> ModuleType:
    """Import `location`, a file or a dotted name. Raises UsageError if it is missing or cannot be imported."""
    if _is_file(location):
        with _argv_of_user(location, argv):
            path = with_home(location).resolve()
            if not path.exists():
                raise missing_file(location)
            if path.is_dir() or path.suffix != ".py":
                raise UsageError(f"{location} is not a Python file", "Give path/to/file.py:function.")
            dotted, root = module_name_of(path)
            _put_first_on_path(root)
            try:
                spec = importlib.util.find_spec(dotted)
                if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path:
                    return importlib.import_module(dotted)
                # Import the file under another name, because its own is taken by another module.
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
            except (Exception, SystemExit) as error:
                raise _broken(location, error, path) from error
    _put_first_on_path(Path.cwd())
    try:
        spec = importlib.util.find_spec(location)
        with _argv_of_user(spec.origin if spec is not None and spec.origin else location, argv):
            return importlib.import_module(location)
    except ModuleNotFoundError as error:
        if error.name and (location == error.name or location.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {error.name!r}",
                "Run jaxprof from the folder that holds it, give the file instead (path/to/file.py:function), or name "
                "the interpreter that has it with --python.",
            ) from None
        raise _broken(location, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(location, error) from error


def module_name_of(path: Path) -> tuple[str, Path]:
    """Return the file's name as a module, with the packages around it, and the folder from which it is imported."""
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _put_first_on_path(folder: Path) -> None:
    """Put `folder` first on the path, as Python does for a script, so that the file can import its neighbours."""
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)


def _broken(location: str, error: BaseException, path: Path | None = None) -> UsageError:
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        return UsageError(
            f"{error.filename or location}, line {error.lineno}: {error.msg}", f"The line is: {line}" if line else ""
        )
    if isinstance(error, SystemExit):
        return UsageError(
            f"{location} ended the program while it was imported (exit {error.code})",
            'Put what it does as a script under if __name__ == "__main__":.',
        )
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is not None and frame.filename == str(path)] or frames[-1:]
    where = f", line {own[-1].lineno}" if own else ""
    what = f"importing {location} failed{where}: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        return UsageError(what, "Install it where the engine runs, or name the interpreter that has it with --python.")
    return UsageError(what, f"The line is: {own[-1].line}" if own and own[-1].line else "")
