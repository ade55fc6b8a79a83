"""How often `jaxprof script` is right about small programs in which one thing, or nothing, was planted.

    python bench/findings.py [NAME...] [--runs 3] [--forms short,long] [--python PYTHON] [--jobs 1]
        [--json FILE] [--smoke]

The programs are those of `bench/cases/`, each with what must and what must not be said of it in its header
(`bench/case_files.py` documents it). Each is run in a process of its own. The table has, over the runs: how
often the planted cause was the first finding, how often among the first three, how often a forbidden one was given, and
how often the verdict was right. A run whose loop waited for a processor for most of its time says nothing of causes,
and counts as one on a busy machine. Exits 1 where a share is past its limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from case_files import NONE, Case, Fault, Outcome, cases, judge, outcome_of  # noqa: E402
from recorder.running import client, environment  # noqa: E402

FORMS = {"short": 1.0, "long": 6.0}
"""The factor on the number of steps. The short form is one or two seconds of work on a slow machine."""
LEAST_SECONDS, WANTED_SECONDS = 2.0, 3.0
"""Work of the short form below which too few samples see it, and the work that it is scaled to then."""
LARGER = ("decoder_init", "decoder_init_jitted")
"""Cases that the factor makes larger, not longer: another program, so their short form stays as it is."""
TIMEOUT_SECONDS = 110
AMONG = 3
SMOKE = ["polynomial_degrees"]
LIMITS = {"first": 0.95, "among three": 1.0, "forbidden": 0.0, "verdict": 0.95}
"""The least share of the planted causes, and of all verdicts; the most of all programs where something forbidden is
said."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One run of one case."""

    case: Case
    form: str
    outcome: Outcome
    faults: list[Fault]

    @property
    def rank(self) -> int | None:
        """The place of the first expected finding among all, from 1; None where there is none."""
        wanted = self.case.expected[0] if self.case.expected else ()
        places = [at for at, one in enumerate(self.outcome.findings, 1) if one.code in wanted]
        return min(places, default=None)

    def has(self, *kinds: str) -> bool:
        return any(fault.kind in kinds for fault in self.faults)


def run_one(case: Case, form: str, python: str) -> Judged:
    """Runs the case and judges what was said. A short form that was over too soon is run again with more steps, at most
    those of the long form, whatever was said of it."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_case(case, Path(folder), python, FORMS[form])
        work = outcome.work_seconds
        if form == "short" and case.name not in LARGER and outcome.exit_code == 0 and work < LEAST_SECONDS:
            most = FORMS["long"]
            outcome = run_case(case, Path(folder), python, min(most, WANTED_SECONDS / work) if work else most)
    return Judged(case, form, outcome, judge(case, outcome))


def run_case(case: Case, folder: Path, python: str, factor: float) -> Outcome:
    """Runs the case once, in a process of its own, under `jaxprof script --plain --out`, and reads the session back."""
    out = folder / "s.jaxprof"
    variables = {"PYTHONPATH": str(case.path.parent / case.python_path)} if case.python_path else {}
    command = client("--python", python, str(case.path), f"{factor:g}")
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(JAX_PLATFORMS=os.environ.get("JAX_PLATFORMS", "cpu"), **variables),
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome((), NONE, 124, f"did not end in {TIMEOUT_SECONDS} s", time.monotonic() - began)
    took = time.monotonic() - began
    if not out.exists():
        return Outcome((), NONE, done.returncode or 1, done.stderr, took)
    return outcome_of(out, done.returncode, done.stderr, took)


def summary(judged: list[Judged]) -> dict[str, tuple[int, int]]:
    """Of each kind of what can be right or wrong: how many, of how many."""
    planted = [one for one in judged if one.case.expected and not one.outcome.busy]
    return {
        "first": (sum(one.rank == 1 for one in planted), len(planted)),
        "among three": (sum(one.rank is not None and one.rank <= AMONG for one in planted), len(planted)),
        "forbidden": (sum(one.has("forbidden", "advice") for one in judged), len(judged)),
        "verdict": (sum(not one.has("verdict", "run") for one in judged), len(judged)),
        "line": (
            sum(not one.has("line") for one in planted if one.case.lines),
            sum(bool(o.case.lines) for o in planted),
        ),
        "all right": (sum(not one.faults for one in judged), len(judged)),
        "on a busy machine": (sum(one.outcome.busy for one in judged), len(judged)),
    }


def past_limits(counts: dict[str, tuple[int, int]]) -> Iterable[str]:
    for name, limit in LIMITS.items():
        found, of = counts[name]
        share = found / of if of else limit
        if share > limit if name == "forbidden" else share < limit:
            yield f"{name}: {share:.0%}, limit {limit:.0%}"


def row(name: str, form: str, judged: list[Judged]) -> str:
    """One line of the table: a case in one form, over its runs."""
    counts = summary(judged)

    def cell(kind: str) -> str:
        found, of = counts[kind]
        return f"{found}/{of}" if of else "-"

    wall = max(one.outcome.wall_seconds for one in judged)
    verdicts = " ".join(dict.fromkeys(one.outcome.verdict for one in judged))
    codes = " | ".join(dict.fromkeys(", ".join(f.code for f in one.outcome.findings) or "nothing" for one in judged))
    kinds = " ".join(dict.fromkeys(fault.kind for one in judged for fault in one.faults))
    cells = "".join(f"{cell(kind):>7}" for kind in ("first", "among three", "forbidden", "verdict", "line"))
    return f"{name:<32}{form:<6}{cells}{wall:>7.1f}  {kinds or 'ok':<18} {verdicts}: {codes}"


def installed(case: Case, python: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {list(case.needs)!r})))"
    if python == sys.executable:
        return all(map(importlib.util.find_spec, case.needs))
    return not case.needs or subprocess.run([python, "-c", code], check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases; all where none is named")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--forms", default="short,long", type=lambda text: text.split(","))
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the programs")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--json", type=Path, help="what was said, whole")
    parser.add_argument("--faults", action="store_true", help="each fault in words below its row")
    parser.add_argument(
        "--smoke", action="store_true", help="one small program; the table has to come out, whatever its figures"
    )
    args = parser.parse_args()
    if args.smoke:
        args.names, args.forms, args.runs = args.names or SMOKE, ["short"], 1
    chosen = [case for case in cases() if not args.names or case.name in args.names]
    if unknown := set(args.names) - {case.name for case in chosen} or set(args.forms) - set(FORMS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    left_out = [case.name for case in chosen if not installed(case, args.python)]
    chosen = [case for case in chosen if case.name not in left_out]
    everything: list[Judged] = []
    head = "".join(f"{word:>7}" for word in ("first", "three", "forb.", "verd.", "line"))
    print(f"{'case':<32}{'form':<6}{head}{'wall s':>7}  {'faults':<18} verdict: findings", flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        work = {
            (case.name, form): [pool.submit(run_one, case, form, args.python) for _ in range(args.runs)]
            for case in chosen
            for form in args.forms
        }
        for (name, form), futures in work.items():
            judged = [future.result() for future in futures]
            everything += judged
            print(row(name, form, judged), flush=True)
            if args.faults:
                for text in dict.fromkeys(f"    {fault.kind}: {fault.text}" for one in judged for fault in one.faults):
                    print(text, flush=True)
    print()
    for form in args.forms:
        counts = summary([one for one in everything if one.form == form])
        print(f"{form}: " + ", ".join(f"{name} {found}/{of}" for name, (found, of) in counts.items()))
    if left_out:
        print(f"left out, for want of a package: {', '.join(left_out)}")
    if args.json:
        told = [
            {
                "case": o.case.name,
                "form": o.form,
                "faults": [f"{f.kind}: {f.text}" for f in o.faults],
                **o.outcome.session,
            }
            for o in everything
        ]
        args.json.write_text(json.dumps(told))
    failed = list(past_limits(summary(everything)))
    for text in failed:
        print(f"past the limit: {text}")
    return 1 if failed and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
