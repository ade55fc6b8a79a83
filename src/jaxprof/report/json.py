"""Write a session as JSON, with the keys that `docs/json.md` promises."""

from __future__ import annotations

from typing import Any

from jaxprof.facts import Facts, optional, recorder, session_tree
from jaxprof.facts.session_tree import SessionTree
from jaxprof.facts.units import ROWS
from jaxprof.report.sides import KEPT
from jaxprof.session import Session

SESSION: Facts[SessionTree] = (
    *session_tree.SESSION,
    optional("comparisons", ROWS, "Measured comparisons that it holds", inside=KEPT),
)


def to_dict(session: Session) -> dict[str, Any]:
    """Return the documented form as plain dicts, lists, texts and numbers."""
    return recorder(SESSION)(SessionTree(session))
