"""The JSON schema of every kind of answer, made of the facts of its data.

python -m jaxprof.cli.answer_schemas KIND       prints the schema (draft 2020-12) of the answers of a kind
"""

from __future__ import annotations

import sys
from typing import Any

from jaxprof.cli.options import VIEWS
from jaxprof.facts import json_schema
from jaxprof.facts.answers import ERROR, facts_of_answer

KINDS = (
    *("ab", "catalogue", "comparison", "config", "devices", "explanation", "finding", "gate"),
    *("hlo", "hlo-kernels", "hlo-findings", "hlo-barriers", "hlo-memory", "hlo-diff", "hlo-stage"),
    *("job", "query", "query-schema", "rollup", "session", *(f"session-{view}" for view in VIEWS)),
    *("sessions", "targets", "workload", "workloads"),
)
_COUNTS = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "What was left out of data: path of a key, and how many rows of it",
}
_NEXT = {"type": "array", "items": {"type": "string"}, "description": "Commands that say more"}


def answer_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of the answers of a kind. Raises KeyError for an unknown kind."""
    from jaxprof.report.envelope import SCHEMA, may_lack

    error = kind == "error"
    data = json_schema(ERROR if error else facts_of_answer(kind))
    if not error:
        may_lack(kind, data)
    properties: dict[str, Any] = {
        "schema": {"const": SCHEMA, "description": "Version of the envelope and of the keys in data"},
        "kind": {"const": kind, "description": "Which keys data has"},
        **({"error": data} if error else {"data": data, "truncated": _COUNTS, "next": _NEXT}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaxprof: {kind}",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(properties),
    }


if __name__ == "__main__":
    from jaxprof.base.text import json_text
    from jaxprof.cli.output import print_data

    names = sorted([*KINDS, "error"])
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(f"python -m jaxprof.cli.answer_schemas KIND: one of {', '.join(names)}")
    print_data([json_text(answer_schema(sys.argv[1])), "\n"])
