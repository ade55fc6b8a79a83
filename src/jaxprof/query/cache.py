"""Tables of sessions that were made before, as Arrow files in our own state folder. A copy that is stale or damaged is
as good as none; a folder that cannot be written costs nothing but the time to make them again."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from jaxprof.facts import Relation
from jaxprof.query.columnar import arrow_schema
from jaxprof.session.log.state import derived_folder, make_derived_folder
from jaxprof.text import json_text
from jaxprof.version import __version__

_FORMAT: Final = 6
"""Counted up whenever a table is derived otherwise than before."""


def stamp(path: Path, table: Relation, *, live: bool) -> dict[str, Any]:
    """What a table depends on: equal stamps have equal tables. Raises OSError if the session is not there."""
    from jaxprof.analysis.ceilings import kept_at

    status = path.stat()
    schema = repr([(fact.key, fact.unit.sql) for fact in table.facts])
    return {
        "format": _FORMAT,
        "jaxprof": __version__,
        "table": hashlib.sha256(f"{table.name}{schema}".encode()).hexdigest(),
        "size_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "live": live,
        "ceilings_ns": kept_at(),
    }


def read_cached(path: Path, table: Relation, wanted: dict[str, Any]) -> tuple[Any, list[str]] | None:
    """The table with this stamp, and the notices of the session; None if there is no such copy."""
    try:
        with (derived_folder(path) / f"{table.name}.arrow").open("rb") as file:
            head, body = json.loads(file.readline()), file.read()
        if head["stamp"] != wanted or head["crc32"] != zlib.crc32(body):
            return None
        found = pa.ipc.open_stream(body).read_all()
        return (found, list(map(str, head["notices"]))) if found.schema.equals(arrow_schema(table)) else None
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
        return None


def write_cached(path: Path, table: Relation, made: Any, wanted: dict[str, Any], notices: list[str]) -> None:
    """Keep a copy, whole or not at all."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    body = sink.getvalue().to_pybytes()
    head = json_text({"stamp": wanted, "crc32": zlib.crc32(body), "notices": notices})
    with suppress(OSError):
        partial = make_derived_folder(path) / f".{table.name}.{os.getpid()}"
        try:
            partial.write_bytes(head.encode() + b"\n" + body)
            partial.replace(partial.with_name(f"{table.name}.arrow"))
        finally:
            partial.unlink(missing_ok=True)
