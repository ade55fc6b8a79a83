"""What of an answer in JSON its schema does not allow; `cli.calling` looks at every answer."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from jaxprof.cli.answer_schemas import answer_schema

Schema = dict[str, Any]
schema_of = cache(answer_schema)
"""The schema of a kind of answer. Raises KeyError."""


def hold(answer: dict[str, Any]) -> None:
    """Fails if the answer has what its schema has not, or lacks what that requires."""
    found = list(problems(answer, schema_of(answer["kind"])))
    assert not found, found


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """What of `value` the schema does not allow."""
    if "const" in schema and value != schema["const"]:
        yield f"{path} is {value!r}"
    kind = _type(value)
    allowed = schema.get("type", kind)
    if kind not in allowed and not (kind == "integer" and "number" in allowed):
        yield f"{path} is of type {kind}"
    if isinstance(value, dict):
        yield from (f"{path} has no {key}" for key in schema.get("required", ()) if key not in value)
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for key, inner in value.items():
            place = f"{path}/{key}" if key in known else f"{path}/*"
            if key in known or isinstance(others, dict):
                yield from problems(inner, known.get(key, others), place)
            elif others is False:
                yield f"{path}/{key} is not in the schema"
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for inner in value:
            yield from problems(inner, items, f"{path}[]")


def _type(value):
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return names.get(type(value), "object")
