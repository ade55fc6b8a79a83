"""Write answers in JSON: all have the form `{schema, kind, data, truncated, next}` and a bounded amount of data.

An answer is small unless more is requested, because its reader is often a program that pays for each character. What is
left out is counted in `truncated` by the path of its key; nothing is left out silently. `docs/json.md` documents it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jaxprof.base.text import json_text
from jaxprof.facts import Records

SCHEMA = "1.0"
"""Version of the envelope and of the keys in `data`. A session file has a schema version of its own."""
ROWS = 50
"""Most rows of a list, unless `_KEPT` has another number for it."""
_NUMBERS = 50
"""Most entries of a list of numbers, such as an interval, whatever the limit of rows."""
_DIGITS = 9
"""Significant digits of a number in a bounded answer: nanoseconds of a second, with two thirds of the characters."""
_DIGITS_OF = {"query": 0, "explanation": 4}
"""Digits of kinds that have others. 0: numbers are not rounded, because the user's request computed them."""

_COMPARED: Mapping[str, int] = {
    "kernels": 10,
    "collectives": 10,
    "findings": 10,
    "buffers": 5,
    "compile_stages": 10,
    "program.functions": 10,
}
_KERNEL = (
    "name", "kind", "count", "flops", "bytes", "bound", "least_seconds", "file", "line",
    "self_seconds", "share", "flops_per_second", "bytes_per_second",
)  # fmt: skip
_TRANSFER = ("seconds", "bytes", "zero_copy", "bytes_per_second")


_KEPT: Mapping[str, Mapping[str, int | tuple[str, ...] | Callable[[dict[str, Any]], bool]]] = {
    "session": {
        "environment.settings": 0,
        "environment.devices.*": ("id", "platform", "kind", "memory_limit_bytes"),
        "environment.machine.*": ("cpu_model", "cores", "memory_bytes", "gpus", "container"),
        "runs": 20,
        "runs.samples_seconds": 0,
        "runs.settings": 0,
        "runs.kernels": 10,
        "runs.kernels.*": _KERNEL,
        "runs.memory.buffers": 0,
        "runs.memory.live_bytes": 0,
        "runs.memory.peak_at.alive": 0,
        "runs.phases.transfer_in.*": _TRANSFER,
        "runs.phases.transfer_out.*": _TRANSFER,
        "runs.captures": 0,
        "runs.device_steps.*": ("device", "count", "median_seconds", "idle_share"),
        "runs.trust": lambda check: check.get("verdict") != "good",
        "runs.trust.*": ("kind", "code", "verdict"),
        "runs.copies": 10,
        "program.functions": 10,
        "program.functions.stages": 0,
        "program.functions.reasons": 3,
        "program.lines": 10,
        "program.loops": 5,
        "program.arrays.counts": 0,
        "compiles": 0,
        "findings": 10,
        "transfers": 10,
    },
    "session-kernels": {"runs.kernels": 20},
    "session-compile": {"runs.compile": 20},
    "session-steps": {"runs.steps": 20},
    "hlo-diff": {"computations": 20, "computations.lines": 20, "kernels": 20},
    "session-memory": {"runs.memory.live_bytes": 0},
    "hlo-memory": {"programs.memory.live_bytes": 0},
    "session-compiles": {"compiles.signature": 10},
    "comparison": {
        "comparisons.runs": 20,
        "comparisons.environment": lambda row: row.get("differs") is not False,
        "comparisons.before.comparisons": 0,
        "comparisons.after.comparisons": 0,
        **{f"comparisons.runs.{key}": most for key, most in _COMPARED.items()},
    },
    "ab": {**{f"versus.{key}": most for key, most in _COMPARED.items()}},
    "catalogue": {"findings": 1000},
    "query-schema": {"tables.columns.*": ("name", "type")},
    "sessions": {"sessions.runs": 10},
    "workloads": {
        "workloads.description": 0,
        "workloads.parameters.*": ("name", "kind"),
        "workloads.presets": 0,
        "workloads.variants.*": ("name", "how"),
    },
    "hlo": {
        "programs.kernels": 20,
        "programs.kernels.*": _KERNEL,
        "programs.barriers": 10,
        "programs.findings": 20,
        "programs.findings.kernels": 10,
    },
    "hlo-kernels": {"programs.kernels.sources": 0},
}
"""What a bounded answer of each kind keeps, by the path of a key. A number is the most rows of a list; 0 leaves the key
out. A function selects rows. A path that ends in `.*` has the keys that the objects at that path keep."""


def may_lack(kind: str, schema: dict[str, Any], path: str = "") -> None:
    """Remove from the required keys of a JSON schema those that a bounded answer of the kind leaves out, in place."""
    kept = _KEPT.get(kind, {})
    wanted = kept.get(f"{path}.*")
    prefix = f"{path}." if path else ""
    required = schema.get("required", [])
    if required:
        schema["required"] = [
            key for key in required
            if kept.get(f"{prefix}{key}") != 0 and (not isinstance(wanted, tuple) or key in wanted)
        ]  # fmt: skip
    for key, inner in schema.get("properties", {}).items():
        may_lack(kind, inner, f"{prefix}{key}")
    if isinstance(items := schema.get("items"), dict):
        may_lack(kind, items, path)
    named = schema.get("additionalProperties")
    if isinstance(named, dict):
        for key in [key for key in kept if key.startswith(prefix) and key.endswith(".*")]:
            may_lack(kind, named, key.removesuffix(".*"))


class Bounds:
    """Cuts an answer to its size, and counts what it leaves out."""

    def __init__(self, kind: str, limit: int | None, outermost: int = 0) -> None:
        """`limit`: most rows of each list, in place of the limits of the kind; 0 for the whole answer. `outermost`:
        most rows of a list that is in no other, in place of `limit`."""
        self.left_out: dict[str, int] = {}
        """Number of rows or objects that were left out, by the path of their key. The entry `PATH.*` counts the objects
        that lost keys."""
        self._limit, self._outermost = limit, outermost
        self._kept = _KEPT.get(kind, {})
        self._digits = _DIGITS_OF.get(kind, _DIGITS)

    def cut(self, data: Any) -> Any:
        """Return the data, bounded. An iterator stays an iterator, whose rows are counted as they are taken."""
        return data if self._limit == 0 else self._value(data, "")

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            wanted = self._kept.get(f"{path}.*")
            if isinstance(wanted, tuple) and not value.keys() <= set(wanted):
                value = {key: inner for key, inner in value.items() if key in wanted}
                self._leave(f"{path}.*", 1)
            kept = {}
            for key, inner in value.items():
                inside = f"{path}.{key}" if path else str(key)
                if self._kept.get(inside) == 0 and (size := _size(inner)):
                    self._leave(inside, size)
                else:
                    kept[key] = self._value(inner, inside)
            return kept
        if isinstance(value, Iterator):
            return self._rows(value, path)
        if isinstance(value, list | tuple):
            numbers = bool(value) and all(isinstance(each, int | float) for each in value)
            which = self._kept.get(path)
            rows = list(filter(which, value)) if callable(which) else value
            rows = rows[: _NUMBERS if numbers else self._most(path)]
            self._leave(path, len(value) - len(rows))
            return [self._value(each, path) for each in rows]
        # Larger numbers, such as times of day, FLOPs and rates, are not rounded.
        if isinstance(value, float) and abs(value) < 1e6 and self._digits:
            return float(f"{value:.{self._digits}g}")
        return value

    def _most(self, path: str) -> int:
        if self._outermost and "." not in path:
            return self._outermost
        kept = self._kept.get(path)
        return self._limit or (kept if isinstance(kept, int) and kept else ROWS)

    def _rows(self, values: Iterator[Any], path: str) -> Iterator[Any]:
        for value in islice(values, self._most(path)):
            yield self._value(value, path)
        self._leave(path, sum(1 for _ in (values.rows if isinstance(values, Records) else values)))

    def _leave(self, path: str, count: int) -> None:
        if count > 0:
            self.left_out[path] = self.left_out.get(path, 0) + count


def _size(value: Any) -> int:
    """Return the number of rows of a list; 1 for any other value, 0 for an empty one."""
    if isinstance(value, Iterator):
        return sum(1 for _ in value)
    if isinstance(value, list | tuple):
        return len(value)
    return 0 if value is None or value in ("", {}) else 1


def answer_pieces(kind: str, data: Any, next_commands: Sequence[str], limit: int | None) -> Iterator[str]:
    """Yield the answer as compact JSON on one line, in pieces. An iterator in `data` becomes a list whose items are
    written as they arrive. NaN and infinity, which JSON does not have, become null: unknown. `next_commands`: commands
    worth running next. `limit`: most rows of each list, in place of the limits of the kind; 0 for the whole answer."""
    bounds = Bounds(kind, limit)
    yield f'{{"schema":{json_text(SCHEMA)},"kind":{json_text(kind)},"data":'
    yield from json_pieces(bounds.cut(data))
    truncated, commands = (json_text(part, compact=True) for part in (bounds.left_out, list(next_commands)))
    yield f',"truncated":{truncated},"next":{commands}}}\n'


def error_text(code: str, message: str, hint: str) -> str:
    """Return the JSON that replaces an answer that cannot be given."""
    error = {"code": code, "message": message, "hint": hint or None}
    return json_text({"schema": SCHEMA, "kind": "error", "error": error}, compact=True)


def json_pieces(data: Any) -> Iterator[str]:
    """Yield `data` as compact JSON, in pieces; an iterator in it becomes a list."""
    if isinstance(data, Iterator):
        separator = "["
        for value in data:
            yield separator
            yield from json_pieces(value)
            separator = ","
        yield "]" if separator == "," else "[]"
    elif isinstance(data, dict) and _has_iterator(data):
        separator = "{"
        for key, value in data.items():
            yield f"{separator}{json_text(str(key))}:"
            yield from json_pieces(value)
            separator = ","
        yield "}"
    else:
        yield encode_json(data)


def _has_iterator(data: dict[Any, Any]) -> bool:
    """Return whether a value inside is an iterator, so that the object cannot be encoded in one call."""
    return any(
        isinstance(value, Iterator) or (isinstance(value, dict) and _has_iterator(value)) for value in data.values()
    )


def encode_json(value: Any) -> str:
    """Return `value` as compact JSON, with null for NaN and infinity; only values with these are searched."""
    try:
        return json_text(value, compact=True)
    except ValueError:
        return json_text(_finite(value), compact=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
