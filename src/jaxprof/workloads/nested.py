"""Arguments inside each other, as Python writes them: `{'w': f32[8,4], 'b': f32[4]}`, `(f32[3], 'relu')`, `x=f32[3]`.

A named tuple is `module:Name(field=f32[3])`. Nothing else is called or imported: a session file that somebody sent says
such arguments too, and no object of any other class is made of its words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from jaxprof.errors import UsageError
from jaxprof.workloads.specs import Spec, cannot_read, parse_leaf

_KEYWORD: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_LEAF: Final = re.compile(
    r"\s*(?:key(?:<\w+>)?(?:\s*\[[^\[\]]*\])?|\w+\s*\[[^\[\]]*\]|[+-]?[\w.]+(?:(?<=[eE])[+-]\d+)?)\s*(?=[,)\]}]|$)"
)
_STRING: Final = re.compile(r"""\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")\s*""")
_NAMED: Final = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_][\w.]*)\s*\(")
_DEEPEST: Final = 100


def parse_argument(text: str) -> Spec:
    """The spec of one argument. Raises UsageError showing how one is written."""
    keyword = _KEYWORD.match(text)
    reader = _Reader(text, keyword.end() if keyword else 0)
    spec = reader.value(0)
    reader.must_end()
    return replace(spec, text=text.strip(), keyword=keyword[1]) if keyword else spec


def put_together(spec: Spec, parts: Sequence[tuple[str | int, Any]]) -> Any:
    """The container that `spec` says, of values that were made. Raises UsageError for a class that cannot be found."""
    values = [value for _, value in parts]
    if spec.container == "tuple":
        return tuple(values)
    if spec.container == "list":
        return values
    if spec.container == "dict":
        return dict(parts)
    made = named_tuple(spec.container)
    try:
        return made(**{str(label): value for label, value in parts})
    except TypeError as error:
        raise UsageError(f"{spec.container} cannot be made: {error}", "Its fields have changed since.") from None


def named_tuple(path: str) -> type[Any]:
    """The class at `module:Name`. Raises UsageError where there is none, or it is no named tuple."""
    from importlib import import_module

    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"there is no class {path}: {error}", "An inputs function can make any argument.") from None
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise UsageError(f"{path} is not a named tuple", "An inputs function can make any argument.")
    return found


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    def value(self, depth: int) -> Spec:
        """The spec that begins here."""
        if depth > _DEEPEST:
            raise cannot_read(self._text[:60])
        began = self._at
        if string := self._take(_STRING):
            return Spec(text=string[1], kind="word", word=str(ast.literal_eval(string[1])))
        if named := self._take(_NAMED):
            parts = self._items(")", lambda: self._field(depth))
            return self._nested(began, named[1], parts)
        if self._takes("("):
            return self._in_parentheses(began, depth)
        if self._takes("["):
            listed = self._items("]", lambda: self.value(depth + 1))
            return self._nested(began, "list", list(enumerate(listed)))
        if self._takes("{"):
            return self._nested(began, "dict", self._items("}", lambda: self._entry(depth)))
        if leaf := self._take(_LEAF):
            return parse_leaf(leaf[0])
        raise cannot_read(self._text)

    def must_end(self) -> None:
        """Raises UsageError where something is left."""
        if self._text[self._at :].strip():
            raise cannot_read(self._text)

    def _in_parentheses(self, began: int, depth: int) -> Spec:
        """A tuple; `(x)` is `x`, as in Python."""
        values: list[Spec] = self._items(")", lambda: self.value(depth + 1))
        if len(values) == 1 and not re.search(r",\s*\)\s*$", self._text[began : self._at]):
            return values[0]
        return self._nested(began, "tuple", list(enumerate(values)))

    def _field(self, depth: int) -> tuple[str | int, Spec]:
        name = self._take(_KEYWORD)
        if name is None:
            raise cannot_read(self._text)
        return name[1], self.value(depth + 1)

    def _entry(self, depth: int) -> tuple[str | int, Spec]:
        if string := self._take(_STRING):
            key: str | int = str(ast.literal_eval(string[1]))
        elif word := self._take(re.compile(r"\s*(-?\d+|[A-Za-z_]\w*)\s*")):
            key = int(word[1]) if word[1].lstrip("-").isdigit() else word[1]
        else:
            raise cannot_read(self._text)
        if not self._takes(":"):
            raise cannot_read(self._text)
        return key, self.value(depth + 1)

    def _items(self, closing: str, item: Callable[[], Any]) -> list[Any]:
        """What stands between here and `closing`, with commas between; one at the end is allowed."""
        items: list[Any] = []
        while not self._takes(closing):
            items.append(item())
            if self._takes(closing):
                break
            if not self._takes(","):
                raise cannot_read(self._text)
        return items

    def _nested(self, began: int, container: str, parts: Sequence[tuple[str | int, Spec]]) -> Spec:
        text = self._text[began : self._at].strip()
        return Spec(text=text, kind="nested", container=container, parts=tuple(parts))

    def _takes(self, sign: str) -> bool:
        return self._take(re.compile(rf"\s*{re.escape(sign)}\s*")) is not None

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match
