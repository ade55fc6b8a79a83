"""How fast a job of a thousand processes opens, in seconds and megabytes, and whether the answers are right.

    python bench/job_scale.py [--processes 1000] [--steps 10000] [--folder DIR] [--smoke]

Roll-ups of synthetic processes are written: one is late by its input from step 60 % on, one compiles its step again and
again, one is missing. The three kinds go through the same code as recorded sessions; the others of a kind differ by
noise. A fresh process then reads the rank table, the findings and a heat map of 100 columns. The floor is what DuckDB
itself takes, in a fresh process, to read the same columns of the same files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

STEP_SECONDS = 0.1
LATE, AGAIN = 417, 803
"""Of 1 000 processes; of fewer, the same share."""
OPEN = """
import json, resource, sys, time
began = time.perf_counter()
from pathlib import Path
from jaxprof.jobs.job import read_job_files
from jaxprof.jobs.job import JobSteps
files = read_job_files(Path(sys.argv[1]))
job = files.job_figures()
table = time.perf_counter()
grid = JobSteps(files).grid(100)
done = time.perf_counter()
import numpy as np
rows = list(grid.processes)
print(json.dumps({
    "seconds": done - began, "processor_seconds": time.process_time(),
    "table_seconds": table - began, "grid_seconds": done - table,
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "processes": len(job.processes), "notices": job.notices,
    "findings": [[finding.code, finding.index, finding.part] for finding in job.findings],
    "late": [[rows[row], int(grid.first_steps[column])] for row, column in zip(*np.where(grid.ratio > 1.2))],
}))
"""
READ = """
import json, resource, sys, time
began = time.perf_counter()
import duckdb
def files(table):
    return f"FROM '{sys.argv[1]}/rollup/{table}/*.parquet'"
database = duckdb.connect()
database.execute("SET enable_progress_bar = false")
database.execute(f"SELECT process, figures {files('processes')}").fetchall()
database.execute(f"SELECT process, count(*), sum(seconds), sum(host_seconds) {files('parts')} GROUP BY ALL").fetchall()
database.execute(f"SELECT process, sum(seconds), sum(count), max(begins) {files('steps')} GROUP BY ALL").fetchall()
took = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": took, "processor_seconds": time.process_time(), "peak_bytes": peak}))
"""


def main() -> None:
    """Makes the job, opens it a few times, and prints what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3, help="How often it is opened.")
    parser.add_argument("--folder", type=Path, help="Where the job is, or is made; kept.")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="a job of 20 processes with 1 000 steps, opened once; the table has to come out, whatever its figures",
    )
    given = parser.parse_args()
    if given.smoke:
        given.processes, given.steps, given.times = 20, 1000, 1
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "scale.jaxprof.d"
        if not folder.exists():
            began = time.perf_counter()
            make(folder, given.processes, given.steps)
            print(f"made in {time.perf_counter() - began:.0f} s")
        sizes = [path.stat().st_size for path in folder.glob("rollup/*/*.parquet")]
        each = sum(sizes) / max(1, given.processes - 1)
        print(f"{given.processes} processes, {given.steps} steps: {len(sizes)} files, {each / 1e3:.1f} KB a process")
        for number in range(2 * given.times):
            if number == given.times:
                subprocess.run([sys.executable, "-m", "jaxprof", "sessions", "rollup", str(folder)], check=True)
            floor, found = _fresh(READ, folder), _fresh(OPEN, folder)
            times = found["seconds"] / floor["seconds"]
            print(
                f"opened in {found['seconds']:.2f} s ({found['processor_seconds']:.2f} s of processors; "
                f"table and findings {found['table_seconds']:.2f}, heat map {found['grid_seconds']:.2f}), "
                f"{found['peak_bytes'] / 1e6:.0f} MB; DuckDB alone {floor['seconds']:.2f} s "
                f"({floor['processor_seconds']:.2f}), {floor['peak_bytes'] / 1e6:.0f} MB: {times:.1f} times"
            )
        for line in wrong(found, given.processes, given.steps):
            print("WRONG", line)


def wrong(found: dict[str, Any], processes: int, steps: int) -> Iterator[str]:
    """What is not as it was made."""
    late, again = LATE * processes // 1000, AGAIN * processes // 1000
    expected = {("straggler", late, "data"), ("recompiles_alone", again, "compile")}
    seen = {tuple(finding) for finding in found["findings"]}
    if {(code, index) for code, index, _ in expected} != {(code, index) for code, index, _ in seen}:
        yield f"findings: {sorted(seen)}"
    if found["processes"] != processes - 1:
        yield f"{found['processes']} processes"
    if not any(f"1 of {processes} processes have no session" in notice for notice in found["notices"]):
        yield f"notices: {found['notices']}"
    cells = {(index, step) for index, step in found["late"]}
    since = 0.6 * steps
    expected_cells = {step for index, step in cells if index == late}
    if not expected_cells or min(expected_cells) < since - steps / 100 or len(expected_cells) < 38:
        yield f"the late process is seen in {len(expected_cells)} columns"
    if {index for index, _ in cells} - {late, again}:
        yield f"others are conspicuous: {sorted({index for index, _ in cells})}"


def _fresh(script: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def make(folder: Path, processes: int, steps: int) -> None:
    """The roll-ups of a job of which the last but one process is missing."""
    from jaxprof.rollup.making import write

    folder.mkdir(parents=True)
    late, again = LATE * processes // 1000, AGAIN * processes // 1000
    tables = {kind: _tables(kind, processes, steps) for kind in ("usual", "late", "again")}
    for index in range(processes):
        if index != processes - 2:
            kind = "late" if index == late else "again" if index == again else "usual"
            write(folder, index, _of(index, tables[kind], folder))


def _of(index: int, tables: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of one process: its own index, host, session and noise."""
    import pyarrow as pa

    rng = np.random.default_rng(index)
    made = {}
    for name, table in tables.items():
        count = len(table)
        columns = {"process": pa.array(np.full(count, index), pa.int64())}
        if name in ("steps", "overview"):
            columns["seconds"] = _noisy(table["seconds"], 0.01, rng)
        if name in ("overview", "parts"):
            for part in ("host_seconds", "data_seconds", "device_seconds", "dispatch_seconds"):
                columns[part] = _noisy(table[part], 0.02, rng)
        elif name == "processes":
            session = f"process-{index:05}.jaxprof"
            figures = json.loads(table["figures"][0].as_py()) | {"index": index, "host": f"node{index // 8}"}
            columns["figures"] = pa.array([json.dumps(figures)])
            columns["host"], columns["path"] = pa.array([f"node{index // 8}"]), pa.array([session])
            columns["session_id"] = pa.array([f"{index:08x}"])
            with (folder / session).open("wb") as file:  # so that the roll-up is compared with its session
                file.truncate(table["session_bytes"][0].as_py())
        for column, values in columns.items():
            table = table.set_column(table.schema.get_field_index(column), column, values)
        made[name] = table
    return made


def _noisy(values: Any, share: float, rng: np.random.Generator) -> Any:
    import pyarrow as pa

    from jaxprof.rollup.making import round_values

    array = values.to_numpy()
    return pa.array(round_values(array * (1 + share * rng.standard_normal(len(array)))))


def _tables(kind: str, processes: int, steps: int) -> dict[str, Any]:
    """The roll-up of a synthetic session."""
    from jaxprof import events as e
    from jaxprof.jobs.job import ProcessFile
    from jaxprof.rollup.making import build
    from jaxprof.session import Session

    header = e.Header(
        jaxprof="0", session="0", created="2026-11-21T04:05:06Z", host="node", command=["train.py"],
        wall_seconds=1.7e9, monotonic_seconds=0.0, process_index=0, process_count=processes, job="scale",
    )  # fmt: skip
    session = Session(header)
    session.extend(_events(kind, steps))
    path = Path("process-00000.jaxprof")
    return build(ProcessFile(path, session, 0, bytes=40 * steps, modified_ns=1))


def _events(kind: str, steps: int) -> Iterator[Any]:
    from jaxprof import events as e

    wall = steps * STEP_SECONDS
    run = {"run": "r1"}
    where = e.SourceLocation("/train.py", 85, "main")
    yield e.RunPlanned(**run, spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host"))
    yield e.WorkerStarted(**run, pid=1, python="python3", monotonic_seconds=1.0)
    yield e.ProgramStarted(**run, argv=["train.py"], how="script", monotonic_seconds=1.0)
    site = e.LoopSite(file="/train.py", function="main", loop_line=85, last_line=99, line=88, call="step")
    for second in range(round(wall)):
        data = 0.4 if kind == "late" and second >= 0.6 * wall else 0.02
        shares = {
            "data": (86, "data", data),
            "device_busy": (88, "compiled", 0.95 - data),
            "host_busy": (91, "host", 0.05),
        }
        yield e.ProgramSampled(
            **run, began_seconds=1.0 + second, monotonic_seconds=2.0 + second, samples=100,
            states={state: share for state, (_, _, share) in shares.items()},
            lines=[
                e.SampledLine(
                    file="/train.py", line=line, function="main", state=state, seconds=share, kind=work, sites=[number]
                )
                for number, (state, (line, work, share)) in enumerate(shares.items())
            ],
            sites=[replace(site, line=line) for line, _, _ in shares.values()],
        )  # fmt: skip
    for number in range(30 if kind == "again" else 1):
        yield e.Compiled(
            **run, function="step", began_seconds=1.0 + number, monotonic_seconds=1.5 + number, compile_seconds=0.3,
            called_from=replace(where, line=88), defined_at=e.SourceLocation("/train.py", 20, ""),
            reason_code="shape" if number else "first",
            reasons=[e.CompileReason(kind="shape", name="x", before="f32[9]", now=f"f32[{number}]")] * bool(number),
        )  # fmt: skip
    yield e.StepsTaken(
        **run, where=where, found_by="monitoring", first=0, numbered_by="step", began_seconds=1.0,
        seconds=(STEP_SECONDS * (1 + 0.03 * np.random.default_rng(0).standard_normal(steps))).tolist(),
    )  # fmt: skip
    at = {"monotonic_seconds": 1.0 + wall}
    yield e.ProgramEnded(**run, exit_code=0, wall_seconds=wall, **at)
    yield e.RunFinished(**run, status="ok", **at)
    yield e.RunClosed(
        **run, workload="train.py", variant="program", device="host", status="ok", wall_seconds=wall, **at
    )
    yield e.SessionClosed(**at)


def growing(began: float) -> Iterator[Any]:
    """The events of a program that began at this monotonic time, and a sample window for each of its seconds."""
    *start, window = islice(_events("usual", 10), 4)
    yield from (replace(event, monotonic_seconds=began) for event in start)
    for second in count():
        yield replace(window, began_seconds=began + second, monotonic_seconds=began + second + 1.0)


if __name__ == "__main__":
    main()
