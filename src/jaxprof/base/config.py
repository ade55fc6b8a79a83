"""What a user sets once: in a file of theirs, in a project's `[tool.jaxprof]`, and in variables of the environment.

An option on the command line takes precedence over a variable, a variable over the user's file, and that over the
project's: what a project proposes does not change the keys or the devices of whoever has chosen their own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from jaxprof.base.errors import FileRefusedError, UsageError, unknown_name
from jaxprof.base.files import PRIVATE, open_regular, private_folder, replace_file
from jaxprof.base.units import bytes_
from jaxprof.base.values import frozen

FILE_VARIABLE = "JAXPROF_CONFIG"
PRESETS = ("quick", "published")
KEYS = "keys"
"""Name of the table of the user's keys, by the id of an action (docs/keys.md)."""

_LARGEST = 1 << 17
"""Bytes of a file of settings: each command reads those of its folder."""
_DEEPEST = 16
_DEEP_KEY = rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_DEEPEST}}}"""
"""A dotted key for which Python's reader takes time by the square of its parts: 12 s for 60 KB."""

Value = str | float | tuple[str, ...]
T = TypeVar("T")


@frozen
class Setting:
    name: str
    means: str
    read: Callable[[Any], Value | None]
    """Converts what a file or a variable has to a value; returns None if it is none."""
    wants: str
    """What a value must be, for the error."""

    @property
    def variable(self) -> str:
        """Name of the environment variable: `JAXPROF_THEME`."""
        return f"JAXPROF_{self.name.upper()}"


def _words(value: Any) -> Value | None:
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        return None
    return tuple(dict.fromkeys(words))


def share_of(value: str | float) -> float | None:
    """Return the share that is written as `2%` or `0.02`; None for anything else, and outside of 0 to 1."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if 0 < number < 1 else None


def _seconds(value: Any) -> Value | None:
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
    except ValueError:
        return None
    return found if 0.0 < found < float("inf") else None


SETTINGS = (
    Setting("theme", "the colours of the app",
            lambda value: value.strip() or None if isinstance(value, str) else None,
            "auto, dark, light, or the name of a theme: textual-dark"),
    Setting("preset", "the sizes of a run; the app keeps the last one",
            lambda value: value if value in PRESETS else None, "quick or published"),
    Setting("devices", "where to run; `compare`, `gate` and `hlo` take the first that is there", _words,
            'devices: ["cuda:0", "cpu:0"]'),
    Setting("budget", "seconds of sampling for each run", _seconds, "a number of seconds above 0"),
    Setting("comparison_budget", "total seconds of `compare`, and of `gate` for times", _seconds,
            "a number of seconds above 0"),
    Setting("margin", "smaller differences count as the same in `compare`",
            lambda value: str(value).strip() if share_of(value) is not None else None, "a share: 2% or 0.02"),
    Setting("fail_on", "the limits of `gate`", _words, 'limits: ["kernels", "run:5%"]'),
)  # fmt: skip
_BY_NAME = {setting.name: setting for setting in SETTINGS}
_OF_PROJECTS = {name: setting for name, setting in _BY_NAME.items() if name != "theme"}
"""The settings that a project may have. The app's theme and keys are not a project's business."""
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {"preset": "preset", "budget_seconds": "budget"},
    "compare": {"preset": "preset", "budget_seconds": "comparison_budget", "margin": "margin"},
    "hlo": {"preset": "preset"},
    "gate": {"budget_seconds": "comparison_budget", "limits": "fail_on"},
}
"""Command → parameter → the setting that is its default. Devices are chosen where it is known which there are."""


@frozen
class Config:
    """The settings in force; `values` has only what is set."""

    values: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action id → key, as Textual names it."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Setting → where its value is from: a variable, or a file."""

    def get(self, name: str, kind: type[T]) -> T | None:
        value = self.values.get(name)
        return value if isinstance(value, kind) else None

    def options(self, command: str) -> dict[str, Value]:
        """Return the settings that are defaults of a command's options, by the names of its parameters."""
        usual = _OPTIONS.get(command, {})
        return {option: self.values[name] for option, name in usual.items() if name in self.values}


def config_path() -> Path:
    """Return the user's file: `$JAXPROF_CONFIG`, or `config.toml` in the user's folder of settings."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_config_path

    return user_config_path("jaxprof") / "config.toml"


def project_path(folder: Path | None = None) -> Path | None:
    """Return the nearest `pyproject.toml`, from the folder upwards; None if there is none."""
    start = (folder or Path.cwd()).absolute()
    return next((path for at in (start, *start.parents) if (path := at / "pyproject.toml").is_file()), None)


def read_config(folder: Path | None = None) -> Config:
    """Return the settings in force in a folder. Raises UsageError for a bad value, FileRefusedError for a bad file."""
    values: dict[str, Value] = {}
    keys: dict[str, str] = {}
    sources: dict[str, str] = {}
    project, user_file = project_path(folder), config_path()
    user_table = _parse(_read(user_file), user_file) if user_file.is_file() else {}
    project_table: Any = {}
    # A project's file that is not TOML is for its other readers to report: measuring goes on. One that does not name
    # jaxprof is not parsed, which would delay each command.
    with suppress(FileRefusedError, AttributeError):
        if project is not None and "jaxprof" in (text := _read(project)):
            project_table = _parse(text, project).get("tool", {}).get("jaxprof", {})
    if not isinstance(project_table, dict):
        project_table = {}
    for path, table in ((project, project_table), (user_file, user_table)):
        for name, value in table.items():
            if name == KEYS and path == user_file:
                hint = 'A key is a text in the table [keys]: "results.compare" = "ctrl+k".'
                if not isinstance(value, dict):
                    raise UsageError(f"{user_file}: {KEYS} is {value!r}, not a table", hint)
                keys = {}
                for group, inner in value.items():
                    for action, key in inner.items() if isinstance(inner, dict) else [("", inner)]:
                        if not isinstance(key, str) or not key.strip():
                            raise UsageError(f"{user_file}: {KEYS}.{group} is {inner!r}", hint)
                        keys[f"{group}.{action}" if action else group] = key
                sources |= {f"{KEYS}.{action}": str(path) for action in keys}
            else:
                values[name] = setting_value(name, value, f"{path}", _OF_PROJECTS if path == project else _BY_NAME)
                sources[name] = str(path)
    for setting in SETTINGS:
        given = os.environ.get(setting.variable)
        if given:
            values[setting.name] = setting_value(setting.name, given, setting.variable)
            sources[setting.name] = setting.variable
    return Config(values, keys, sources)


def setting_value(name: str, value: Any, source: str, known: Mapping[str, Setting] = _BY_NAME) -> Value:
    """Return the value of a setting. Raises UsageError with its source if the name or the value is wrong."""
    if name not in known:
        error = unknown_name("setting", name, [*known, *([KEYS] if known is _BY_NAME else [])])
        raise UsageError(f"{source}: {error.what}", error.hint)
    found = _BY_NAME[name].read(value)
    if found is None:
        raise UsageError(f"{source}: {name} is {value!r}", f"It wants {_BY_NAME[name].wants}.")
    return found


def keep(name: str, value: Value | None) -> None:
    """Write one value into the user's file, or remove it if it is None; `keys.ID` is a key. All else stays as it is.

    Raises FileRefusedError for a file that cannot be read, UsageError if the value is not on a line of its own, and
    OSError."""
    path = config_path()
    table, _, key = name.partition(".") if name.startswith(f"{KEYS}.") else ("", "", name)
    text = _read(path) if path.is_file() else ""
    wanted = _parse(text, path)
    values = wanted.get(table, {}) if table else wanted
    values.pop(key, None)
    if value is not None:
        values[key] = list(value) if isinstance(value, tuple) else value
        wanted |= {table: values} if table else {}
    fresh = with_setting(text, table, key, value)
    if _parse(fresh, path) != wanted:
        raise UsageError(f"{path}: the line of {name} cannot be changed alone", "Change the file itself.")
    private_folder(path.parent)
    with replace_file(path, PRIVATE) as part:
        part.write_text(fresh, "utf-8")


def with_setting(text: str, table: str, key: str, value: Value | None) -> str:
    """Return TOML with one value set, or removed if it is None: its line is replaced, or added at its table's end."""
    text += "\n" if text and not text.endswith("\n") else ""
    name = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else literal(key)
    line = "" if value is None else f"{name} = {literal(value)}\n"
    head = re.search(rf"^[ \t]*\[\s*{re.escape(table)}\s*\].*\n", text, re.MULTILINE) if table else None
    if table and head is None:
        gap = "\n" if text else ""
        return f"{text}{gap}[{table}]\n{line}" if line else text
    start = head.end() if head is not None else 0
    following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, start)
    end = following.start() if following is not None else len(text)
    named = re.compile(rf"""^[ \t]*(["']?){re.escape(key)}\1[ \t]*=.*\n""", re.MULTILINE)
    inside, count = named.subn(lambda _: line, text[start:end], count=1)
    if not count:
        body = inside.rstrip()
        inside = f"{body}\n{line}{inside[len(body) + 1 :]}" if body else line + inside
    return text[:start] + inside + text[end:]


def literal(value: Value) -> str:
    """Return a value as TOML writes it: as JSON does, except that it has no raw DEL."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise FileRefusedError(f"{path} has more than {bytes_(_LARGEST)}", "No file of settings is that large.")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileRefusedError(f"{path} cannot be read", str(error)) from error


def _parse(text: str, path: Path) -> dict[str, Any]:
    if deep := re.search(_DEEP_KEY, text):
        line = text.count("\n", 0, deep.start()) + 1
        raise FileRefusedError(f"{path} has a key of more than {_DEEPEST} parts in line {line}", "Write a shorter key.")
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a ValueError
        raise FileRefusedError(f"{path} is not TOML: {error}", "`jaxprof config --help` says what it holds.") from error
