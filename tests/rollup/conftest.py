"""These tests need the extra `query`."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
