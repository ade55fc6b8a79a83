"""Facts are described well enough for the documents that are made of them (`tests/test_documents.py`)."""

from __future__ import annotations

from jaxprof.facts.processes import PROCESSES


def test_every_fact_has_a_meaning_of_its_own():
    keys = [fact.key for fact in PROCESSES.facts]
    assert len(set(keys)) == len(keys)
    assert [fact.key for fact in PROCESSES.facts if len(fact.meaning) < 3 or fact.meaning.endswith(".")] == []
