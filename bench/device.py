"""How often jaxprof names why a device-bound program is slow: the cause first, its line, and what the change gains.

    python bench/device.py [--only NAME]... [--planted] [--healthy] [--texts] [--no-targets] [--try]
        [--folder DIR [--again]] [--json FILE] [--smoke]

A planted program is a file of `bench/device/`, written as its author would have written it, with its mended twin beside
it. Its first lines are comments that only this driver reads, one `key: value` each:

    about      what is planted, for the table
    cause      its class
    expect     codes of which one must be the first finding: alternatives with `|`
    allow      codes that are true of it besides
    run        the function that is measured; what it calls is made by the function of that name with `_inputs`
    mended     the twin
    differs    why the results of the two are not the same, if they are not
    trial      the change of `jaxprof compare --try` that is the twin's
    targets    devices that are not here, for which it is compiled too: the cause must be among the findings
    needs      packages without which it cannot run

Lines that are the cause carry the comment `# <- cause`. A program without `run` is a script; with the argument
`mended` it is its twin, and it prints its milliseconds a step. A file of `bench/device/healthy/` has several functions
with nothing planted in them, each with its inputs: every finding of 5 % of the call or more, or of unknown share, that
its header does not allow is a false one.

Each function is measured by `jaxprof run`, with its capture, and explained by `jaxprof explain`; what the machine
reaches is measured before. Function and twin are called in turns in one process of their own
(`programs/twin_turns.py`), which says what the change gains, whatever jaxprof says. With `--folder DIR --again` the
sessions in DIR are explained once more, and nothing is run. Exits 1 past `LIMITS`.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from case_files import marked_lines, read_header, split_words

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "device"
HEALTHY = PROGRAMS / "healthy"
KEYS = ("about", "cause", "expect", "allow", "run", "mended", "differs", "trial", "targets", "needs")
LIMITS = {"first": 0.8, "line": 1.0, "gain": 1.0, "trial": 1.0, "targets": 1.0, "false": 0}
"""The least shares of the planted programs: the cause first, of these its line right, of savings that are said and of
trials those near the measured gain, of compilations for other devices those with the cause; the most false findings."""
NEAR = 0.3
"""How far a saving or a trial may lie from the measured one, as a share of it."""
WORTH = 0.05
"""Share of a call from which a finding about a healthy program is a false one."""
SAME = 1e-3
"""Difference of two results, as a share of the largest number, up to which they are the same."""
MEASURED = ("--budget", "0.6", "--launches", "1")
TURN_SECONDS = 1.0
TIMEOUT_SECONDS = 300
SMOKE = ("word_embeddings", "lloyd")


@dataclass(frozen=True, slots=True)
class Program:
    """One function, and what must be said of it."""

    name: str
    path: Path
    about: str
    cause: str
    """Its class; empty: nothing is planted."""
    expected: tuple[str, ...]
    allowed: frozenset[str]
    function: str
    """Empty for a script."""
    mended: str
    differs: str
    trial: str
    targets: tuple[str, ...]
    needs: tuple[str, ...]
    lines: frozenset[int]


@dataclass(slots=True)
class Answer:
    """What was said of one program, and what is so."""

    name: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    """As `explain` has them, the first one first."""
    first: bool = False
    line: bool | None = None
    """Whether the line of the cause is right; None where it is not the first finding."""
    others: list[str] = field(default_factory=list)
    """Codes besides the cause; of a healthy program the false ones."""
    gain: float | None = None
    """Median of the function over that of its twin, by hand."""
    same: bool | None = None
    """Whether both have the same results."""
    saving: float | None = None
    """Share of a call that the first finding says it saves."""
    tried: float | None = None
    """How many times as fast `compare --try` says the twin's change is, 0 where it does not try it; None where it was
    not asked."""
    targets: dict[str, bool | None] = field(default_factory=dict)
    """For each device that is not here, whether the cause is among the findings."""
    seconds: float = 0.0
    failed: str = ""

    @property
    def is_near(self) -> bool | None:
        """Whether the saving that is said is the measured one; None where none is said."""
        if self.saving is None or self.gain is None or not self.first:
            return None
        measured = 1 - 1 / self.gain
        return abs(self.saving - measured) <= NEAR * measured

    @property
    def is_tried_near(self) -> bool | None:
        """Whether the trial gains what the twin does; None where nothing was tried."""
        if self.tried is None or self.gain is None:
            return None
        return abs(self.tried - self.gain) <= NEAR * self.gain


def planted(path: Path) -> Program:
    """The program in a file. Raises ValueError for a header that is not right."""
    text = path.read_text()
    head, _ = read_header(path.name, text, KEYS)
    if missing := [key for key in ("about", "cause", "expect") if not head.get(key)]:
        raise ValueError(f"{path.name}: it has no `{missing[0]}`")
    lines = marked_lines(text, "cause")
    if not lines:
        raise ValueError(f"{path.name}: no line carries the marker of its cause")
    return Program(
        name=path.stem,
        path=path,
        about=head["about"],
        cause=head["cause"],
        expected=split_words(head["expect"], "|"),
        allowed=frozenset(split_words(head.get("allow", ""))),
        function=head.get("run", ""),
        mended=head.get("mended", ""),
        differs=head.get("differs", ""),
        trial=head.get("trial", ""),
        targets=split_words(head.get("targets", "")),
        needs=split_words(head.get("needs", "")),
        lines=lines,
    )


def healthy(path: Path) -> list[Program]:
    """The functions of a file that have inputs, in its order."""
    text = path.read_text()
    head, _ = read_header(path.name, text, KEYS)
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [
        Program(
            name=name,
            path=path,
            about=head["about"],
            cause="",
            expected=(),
            allowed=frozenset(split_words(head.get("allow", ""))),
            function=name,
            mended="",
            differs="",
            trial="",
            targets=(),
            needs=split_words(head.get("needs", "")),
            lines=frozenset(),
        )
        for name in names
        if f"{name}_inputs" in names
    ]


def programs() -> list[Program]:
    """Every program: the planted ones by name, then the healthy ones."""
    sick = [planted(path) for path in sorted(PROGRAMS.glob("*.py"))]
    return [*sick, *(each for path in sorted(HEALTHY.glob("*.py")) for each in healthy(path))]


def ask(program: Program, folder: Path, *, again: bool = False, tried: bool = False) -> Answer:
    """Measure the function, have it explained, and call it in turns with its twin; `again`: only explain it."""
    answer, began = Answer(program.name), time.monotonic()
    session = folder / f"{program.name}.jaxprof"
    target = f"{program.path}:{program.function}"
    words = ["script", "--plain", "--force", "--out", str(session), str(program.path)]
    if program.function:
        words = ["run", target, "--variant", "jit", *MEASURED, "--force", "--out", str(session)]
    try:
        if not again:
            run_python("-m", "jaxprof", *words, folder=folder)
        said = run_python("-m", "jaxprof", "explain", str(session), "--full", "--format", "json", folder=folder)
        answer.findings = json.loads(said)["data"]["findings"]
        judge(program, answer)
        if program.cause and not again:
            take_turns(program, answer, folder)
        if program.trial and tried and not again:
            answer.tried = try_change(program, target, folder)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        answer.failed = str(error)
    answer.seconds = time.monotonic() - began
    return answer


def try_change(program: Program, target: str, folder: Path) -> float:
    """How many times as fast `compare --try` says the twin's change is; 0 where it does not try it."""
    words = ("compare", target, "--try", *MEASURED, "--format", "json")
    try:
        data = json.loads(run_python("-m", "jaxprof", *words, folder=folder))["data"]
    except RuntimeError as error:
        if "can be tried" in str(error):
            return 0.0
        raise
    sides = {side["side"] for side in data["sides"] if side.get("trial") == program.trial}
    return max((versus["speedup"] or 0.0 for versus in data["versus"] if versus["side"] in sides), default=0.0)


def judge(program: Program, answer: Answer) -> None:
    """Fill in what the findings are worth."""
    codes = [each["code"] for each in answer.findings]
    if not program.cause:
        shares = [each["cost"].get("share") for each in answer.findings]
        answer.others = [
            code
            for code, share in zip(codes, shares, strict=True)
            if code not in program.allowed and (share is None or share >= WORTH)
        ]
        return
    answer.others = [code for code in codes if code not in program.expected and code not in program.allowed]
    answer.first = codes[:1] != [] and codes[0] in program.expected
    if answer.first:
        file, _, line = (answer.findings[0]["evidence"].get("place") or "").rpartition(":")
        answer.line = file.endswith(program.path.name) and int(line) in program.lines
        cost = answer.findings[0]["cost"]
        if cost.get("saves_seconds") and cost.get("seconds"):
            answer.saving = cost["share"] * cost["saves_seconds"] / cost["seconds"]


def take_turns(program: Program, answer: Answer, folder: Path) -> None:
    """Measure by hand what the twin gains, and whether its results are the same."""
    if not program.function:
        times = [_milliseconds(run_python(str(program.path), *more, folder=folder)) for more in ([], ["mended"])]
        answer.gain = times[0] / times[1]
        return
    words = (str(program.path), program.function, program.mended, str(TURN_SECONDS))
    data = json.loads(run_python(str(HERE / "programs" / "twin_turns.py"), *words, folder=folder))
    answer.gain = data["seconds"][0] / data["seconds"][1]
    answer.same = data["difference"] <= SAME


def _milliseconds(output: str) -> float:
    found = re.search(r"([\d.]+) ms a step", output)
    if found is None:
        raise RuntimeError("it does not print its milliseconds a step")
    return float(found[1])


def compile_elsewhere(program: Program, target: str, folder: Path) -> bool | None:
    """Whether the cause is among the findings of the module compiled for `target`; None without its compiler."""
    words = ("hlo", f"{program.path}:{program.function}", "--for", target, "--findings", "--format", "json")
    try:
        said = json.loads(run_python("-m", "jaxprof", *words, folder=folder))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        if "target install" not in str(error):
            print(f"{program.name} for {target}: {error}", file=sys.stderr)
        return None if "target install" in str(error) else False
    found = [each["code"] for module in said["data"]["programs"] for each in module["findings"]]
    return any(code in program.expected for code in found)


def run_python(*words: str, folder: Path) -> str:
    """What a process prints. Raises RuntimeError with its last lines if it failed."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, *words],
        env=variables | {"JAX_PLATFORMS": "cpu"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.strip().splitlines()[-3:]) or f"exit code {done.returncode}")
    return done.stdout


HEAD = (
    "| program | cause | first | line | gain | saving: said, measured | tried | elsewhere | said | s |\n"
    "|---|---|---|---|--:|---|--:|---|---|--:|"
)


def row(program: Program, answer: Answer) -> str:
    """One line of the table, in Markdown."""

    def mark(value: bool | None) -> str:
        return "-" if value is None else "yes" if value else "NO"

    codes = [f"{each['code']} {_share(each)}" for each in answer.findings]
    said = ", ".join(codes) or (f"failed: {answer.failed}" if answer.failed else "nothing")
    if not program.cause:
        return (
            f"| {program.name} | nothing | {mark(not answer.others)} | - | - | - | - | {said} | {answer.seconds:.0f} |"
        )
    gain = "-" if answer.gain is None else f"{answer.gain:.3g}x"
    if answer.same is False and not program.differs:
        gain += " NOT THE SAME"
    saving = "-"
    if answer.saving is not None and answer.gain is not None:
        saving = f"{answer.saving:.0%}, {1 - 1 / answer.gain:.0%}{'' if answer.is_near else ' NO'}"
    tried = "-" if answer.tried is None else f"{answer.tried:.3g}x{'' if answer.is_tried_near else ' NO'}"
    elsewhere = ", ".join(f"{target} {mark(found)}" for target, found in answer.targets.items()) or "-"
    cells = (program.name, program.cause, mark(answer.first), mark(answer.line), gain, saving, tried, elsewhere, said)
    return f"| {' | '.join(cells)} | {answer.seconds:.0f} |"


def _share(finding: dict[str, Any]) -> str:
    share = finding["cost"].get("share")
    return "" if share is None else f"{share:.0%}"


def counts(asked: list[tuple[Program, Answer]]) -> dict[str, tuple[int, int]]:
    """Of each kind of what can be right: how many, of how many; and how many false findings of healthy programs."""
    sick = [answer for program, answer in asked if program.cause]
    near = [answer.is_near for answer in sick if answer.is_near is not None]
    trials = [answer.is_tried_near for answer in sick if answer.is_tried_near is not None]
    elsewhere = [found for answer in sick for found in answer.targets.values() if found is not None]
    lines = [answer.line for answer in sick if answer.line is not None]
    well = [answer for program, answer in asked if not program.cause]
    return {
        "first": (sum(answer.first for answer in sick), len(sick)),
        "line": (sum(lines), len(lines)),
        "gain": (sum(near), len(near)),
        "trial": (sum(trials), len(trials)),
        "targets": (sum(elsewhere), len(elsewhere)),
        "false": (sum(len(answer.others) for answer in well), len(well)),
    }


def past_limits(asked: list[tuple[Program, Answer]]) -> list[str]:
    """What is past its limit, in words."""
    lines = [f"{answer.name} failed: {answer.failed}" for _, answer in asked if answer.failed]
    lines += [
        f"{program.name}: its twin has other results"
        for program, answer in asked
        if answer.same is False and not program.differs
    ]
    for name, (found, of) in counts(asked).items():
        if name == "false":
            lines += [f"false findings: {found}"] if found > LIMITS[name] else []
        elif of and found < LIMITS[name] * of:
            lines.append(f"{name}: {found} of {of}, limit {LIMITS[name]:.0%}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="this program; may be repeated")
    parser.add_argument("--planted", action="store_true", help="only the planted ones")
    parser.add_argument("--healthy", action="store_true", help="only the healthy ones")
    parser.add_argument("--texts", action="store_true", help="what was said, whole, below each row")
    parser.add_argument("--no-targets", action="store_true", help="compile for no device that is not here")
    parser.add_argument("--try", dest="tried", action="store_true", help="try the change of the twin, too")
    parser.add_argument("--folder", type=Path, help="where the sessions stay")
    parser.add_argument("--again", action="store_true", help="explain the sessions in --folder, and run nothing")
    parser.add_argument("--json", type=Path, help="every answer, in JSON")
    parser.add_argument(
        "--smoke", action="store_true", help="two small programs; the table has to come out, whatever its figures"
    )
    args = parser.parse_args()
    if args.smoke:
        args.only, args.no_targets = args.only or list(SMOKE), True
    every = programs()
    if unknown := set(args.only or ()) - {program.name for program in every}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    chosen = [program for program in every if not args.only or program.name in args.only]
    if args.planted != args.healthy:
        chosen = [program for program in chosen if bool(program.cause) == args.planted]
    left_out = [each.name for each in chosen if not all(map(importlib.util.find_spec, each.needs))]
    chosen = [program for program in chosen if program.name not in left_out]
    asked: list[tuple[Program, Answer]] = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not args.smoke and not args.again:
            run_python("-m", "jaxprof", "run", "triad", "gemm-peak", "--budget", "1", "--no-capture", folder=folder)
        for program in chosen:
            answer = ask(program, folder, again=args.again, tried=args.tried)
            if not args.no_targets:
                # Both at once, after everything that is timed.
                compiling = [pool.submit(compile_elsewhere, program, target, folder) for target in program.targets]
                answer.targets = {
                    target: future.result() for target, future in zip(program.targets, compiling, strict=True)
                }
            asked.append((program, answer))
            print(row(program, answer), flush=True)
            for finding in answer.findings if args.texts else []:
                print(f"    {finding['code']} at {finding['evidence'].get('place', '-')}: {finding['message']}")
                print(f"      {finding['fix']}")
    print("\n" + ", ".join(f"{name} {found}/{of}" for name, (found, of) in counts(asked).items()))
    if left_out:
        print(f"left out, for want of a package: {', '.join(left_out)}")
    if args.json:
        args.json.write_text(json.dumps([asdict(answer) for _, answer in asked], indent=1))
    failed = past_limits(asked)
    for text in failed:
        print(f"past the limit: {text}")
    return 1 if failed and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
