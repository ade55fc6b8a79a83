"""The schemas of answers in JSON (`docs/schema`): what an answer has that its schema has not, and the other way round.

Each answer that a test of the command line prints is held to its schema (`cli.calling`). With `UPDATE_SCHEMA=1` the
schemas learn what they do not have from these answers; look at the difference before you keep it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jaxprof.facts import json_schema
from jaxprof.facts.processes import FIGURES

MEANINGS: Final = Path(__file__).with_name("schema_meanings.txt")
"""`key: meaning`, and `parent.key: meaning` where the same word means something else there, a line each."""
FOLDER: Final = Path(__file__).parents[1] / "docs" / "schema"
UPDATING: Final = bool(os.environ.get("UPDATE_SCHEMA"))
_MAPS: Final = frozenset({
    "parameters", "settings", "machine", "presets", "unattributed_seconds", "facts", "opcodes", "left_out", "notices",
    "variables", "device_peak_bytes", "phases", "memory.parts", "verdict.parts", "environment.devices[]",
    "data.rows[]",
})  # fmt: skip
"""Objects whose keys are data, by the end of their path."""
_ANY: Final = frozenset({"settings", "machine", "presets", "environment.devices[]", "data.rows[]"})
"""Of these, those whose values are of any kind."""
_SHARED: Final = frozenset({"program", "compiles[]", "compile_passes", "children[]"})
"""What stands at several places is described once: in `$defs`, under the name without brackets."""
_OF_FACTS: Final = {("job", "data.processes[]"): FIGURES}
"""By kind of answer and place: what is described by facts, and not learned."""
_NUMBERS: Final = re.compile(
    r"(seconds|bytes|share|watts|celsius|hertz|low|high|growth|ratio|margin|half_width|of_peak|of_bandwidth|maximum|minimum"
    r"|launches_to_decide|mfu|hfu|roofline|recomputed_flops|peak_flops_per_second)$"
)
"""Keys whose values are numbers, even if only whole ones or null were seen."""

Schema = dict[str, Any]


def schema_of(kind: str) -> Schema:
    """The published schema of a kind of answer. Raises FileNotFoundError."""
    found: Schema = json.loads((FOLDER / f"{kind}.json").read_text())
    return found


def hold(answer: dict[str, Any]) -> None:
    """Fails if the answer has what its schema has not."""
    if UPDATING:
        _learn_answer(answer)
    schema = schema_of(answer["kind"])
    found = list(problems(answer, schema, schema))
    assert not found, found


def problems(
    value: Any, schema: Schema, whole: Schema, path: str = "", seen: set[str] | None = None, place: str = ""
) -> Iterator[str]:
    """What of `value` the schema does not allow. `seen` takes the places of all keys in the schema that occur; with
    it, what is required has to be there."""
    if "$ref" in schema:
        place = schema["$ref"].removeprefix("#/")
        schema = whole["$defs"][place.rpartition("/")[2]]
    if "const" in schema and value != schema["const"]:
        yield f"{path} is {value!r}"
    kind = _type(value)
    allowed = schema.get("type", kind)
    if kind not in allowed and not (kind == "integer" and "number" in allowed):
        yield f"{path} is of type {kind}"
    if isinstance(value, dict):
        if seen is not None:
            yield from (f"{path} has no {key}" for key in schema.get("required", ()) if key not in value)
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key, inner in value.items():
            if key in known:
                if seen is not None:
                    seen.add(f"{place}/{key}")
                yield from problems(inner, known[key], whole, f"{path}.{key}", seen, f"{place}/{key}")
            elif others is False:
                yield f"{path}.{key} is not documented"
            elif others is not True:
                yield from problems(inner, others, whole, f"{path}.*", seen, f"{place}/*")
    elif isinstance(value, list):
        for inner in value:
            yield from problems(inner, schema.get("items", {}), whole, f"{path}[]", seen, f"{place}[]")


def keys_of(schema: Schema, place: str = "") -> Iterator[str]:
    """The places of all keys of a schema, as `problems` names them."""
    for key, inner in schema.get("properties", {}).items():
        yield f"{place}/{key}"
        yield from keys_of(inner, f"{place}/{key}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from keys_of(schema["additionalProperties"], f"{place}/*")
    if "items" in schema:
        yield from keys_of(schema["items"], f"{place}[]")
    for name, inner in schema.get("$defs", {}).items():
        yield from keys_of(inner, f"$defs/{name}")


def _type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return names.get(type(value), "object")


def _learn_answer(answer: dict[str, Any]) -> None:
    kind = answer["kind"]
    path = FOLDER / f"{kind}.json"
    schema: Schema = schema_of(kind) if path.exists() else {}
    before = json.dumps(schema)
    defs = schema.pop("$defs", {})
    _learn(answer, schema, defs, "")
    properties = schema["properties"]
    properties["schema"], properties["kind"] = {"const": answer["schema"]}, {"const": kind}
    if "truncated" in properties:
        properties["truncated"] = {"type": "object", "additionalProperties": {"type": "integer"}}
        properties["next"] = {"type": "array", "items": {"type": "string"}}
    _describe(schema | {"$defs": defs})
    for (of_kind, place), facts in _OF_FACTS.items():
        if of_kind == kind:
            rows = _at(schema, place)
            rows.clear()
            rows |= json_schema(facts)
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"jaxprof: {kind}"}
    schema = first | schema | {"required": list(properties)} | ({"$defs": defs} if defs else {})
    _settle(schema, "")
    if json.dumps(schema) != before:
        path.write_text(json.dumps(schema, indent=1) + "\n")


def _learn(value: Any, schema: Schema, defs: dict[str, Schema], path: str) -> None:
    """Add to the schema what `value` has."""
    shared = next((name for name in _SHARED if f".{path}".endswith(f".{name}")), "")
    if shared and value is not None:
        name = {"children": "compile_passes"}.get(shared.removesuffix("[]"), shared.removesuffix("[]"))
        schema.clear()
        schema["$ref"] = f"#/$defs/{name}"
        schema = defs.setdefault(name, {})
    elif "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    types = schema.get("type", [])
    types = set([types] if isinstance(types, str) else types) | {_type(value)}
    if types & {"integer", "number"} and _NUMBERS.search(path):
        types.add("number")
    if "number" in types:
        types.discard("integer")
    schema["type"] = types.pop() if len(types) == 1 else sorted(types, key=lambda name: (name == "null", name))
    if isinstance(value, dict):
        new = "properties" not in schema
        ends = {end for end in _MAPS if f".{path}".endswith(f".{end}")}
        if ends & _ANY:
            schema["additionalProperties"] = True
        elif ends:
            for inner in value.values():
                _learn(inner, schema.setdefault("additionalProperties", {}), defs, f"{path}.*")
        else:
            schema["additionalProperties"] = False
            always = set(value) if new else set(value) & set(schema.pop("required", ()))
            if required := [key for key in dict.fromkeys((*schema.get("properties", {}), *value)) if key in always]:
                schema["required"] = required
            for key, inner in value.items():
                place = f"{path}.{key}" if path else str(key)
                _learn(inner, schema.setdefault("properties", {}).setdefault(key, {}), defs, place)
    elif isinstance(value, list):
        for inner in value:
            _learn(inner, schema.setdefault("items", {}), defs, f"{path}[]")


def _at(schema: Schema, place: str) -> Schema:
    """The schema of what is at a place."""
    for key in place.replace("[]", ".[]").split("."):
        schema = schema["items"] if key == "[]" else schema["properties"][key]
    return schema


def meanings() -> dict[str, str]:
    """What the keys mean, as the schemas describe them."""
    lines = MEANINGS.read_text("utf-8").splitlines()
    return {key: meaning for key, _, meaning in (line.partition(": ") for line in lines)}


_ENVELOPE: Final = {
    "schema": "major.minor of the envelope and of the keys in data",
    "kind": "Which keys data has",
    "data": "The answer",
    "truncated": "What was left out of data: path of a key, and how many rows of it",
    "next": "Commands that say more",
    "error": "Why there is no answer",
}


def _describe(schema: Schema) -> None:
    """Say of each key what it means."""
    known = meanings()

    def visit(inner: Schema, parent: str) -> None:
        for key, of_key in inner.get("properties", {}).items():
            meaning = known.get(f"{parent}.{key}") or known.get(key)
            if meaning:
                of_key["description"] = meaning
            visit(of_key, key)
        for part in (inner.get("items"), inner.get("additionalProperties")):
            if isinstance(part, dict):
                visit(part, parent)

    kind = schema["properties"].get("kind", {}).get("const", "")
    for key, of_key in schema["properties"].items():
        visit(of_key, kind)
        of_key["description"] = _ENVELOPE[key]
    for name, inner in schema["$defs"].items():
        visit(inner, name)


def _settle(schema: Schema, key: str) -> None:
    """Give a type to what was only null or an empty list: a number or a text, by its name. Each figure and each
    interval may be null: unknown where it could not be measured, and no test measures everything on every machine.
    """
    if schema.get("type") == "null":
        of_name = "boolean" if key == "dirty" else "number" if _NUMBERS.search(key) else "string"
        schema["type"] = [of_name, "null"]
    if schema.get("type") in ("integer", "number") or _is_interval(schema):
        schema["type"] = [schema["type"], "null"]
    if schema.get("type") == "array" and "items" not in schema:
        schema["items"] = {"type": "string"}
    for name, inner in (*schema.get("properties", {}).items(), *schema.get("$defs", {}).items()):
        _settle(inner, name)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            _settle(inner, key)


def _is_interval(schema: Schema) -> bool:
    """Whether it is a list of figures."""
    figures = schema.get("items", {}).get("type", ())
    return schema.get("type") == "array" and bool(
        {"integer", "number"} & set([figures] if isinstance(figures, str) else figures)
    )
