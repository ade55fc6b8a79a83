"""Counts, totals and self times of each op, beside what the xprof package answers for the same profiles.

Skipped unless JAXPROF_REAL_PROFILES names a folder with `xplane/NAME.xplane.pb` and `reference/NAME/hlo_stats.json`.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_profile

REAL = Path(os.environ.get("JAXPROF_REAL_PROFILES", "/nowhere"))


@pytest.mark.parametrize("name", sorted(path.name for path in (REAL / "reference").glob("*")) or [None])
def test_totals_agree_with_the_recorded_answers(name):
    """xprof's rows are sums over the devices; its IDLE rows are no ops."""
    if name is None:
        pytest.skip("JAXPROF_REAL_PROFILES names no folder with profiles and what xprof says of them")
    answer = json.loads((REAL / "reference" / name / "hlo_stats.json").read_text())
    columns = [column["id"] for column in answer["cols"]]
    rows = [dict(zip(columns, [cell.get("v") for cell in row["c"]], strict=True)) for row in answer["rows"]]
    theirs = {
        (row["program_id"], row["hlo_op_name"]): [row["occurrences"], row["total_time"], row["total_self_time"]]
        for row in rows
        if row["category"] != "IDLE"
    }
    ours = defaultdict(lambda: [0, 0.0, 0.0])
    for one in op_times(read_profile(REAL / "xplane" / f"{name}.xplane.pb")):
        figures = ours[str(one.op.program), one.op.name]
        for at, value in enumerate((one.count, one.total_seconds * 1e6, one.self_seconds * 1e6)):
            figures[at] += value
    assert set(ours) == set(theirs)
    for key, values in theirs.items():
        assert ours[key] == pytest.approx(values, rel=1e-6)
