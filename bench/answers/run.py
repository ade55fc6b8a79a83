"""How often `jaxprof explain` names the cause first, of programs in which one thing, or nothing, was planted.

    python bench/answers/run.py [--only NAME]... [--texts] [--folder DIR] [--json FILE] [--smoke]

A program is a file of `programs/`, written as its author would have written it. Its first lines are comments that only
this driver reads, one `key: value` each:

    about      what is planted, for the table; nothing else in the program says it
    how        `script`, `run` or `compare` with its options, as typed: `@` is the program
    expect     the code of the cause, which must come first: alternatives with `|`; `-`: there is none
    allow      codes of what is true of the program besides: any other finding is a forbidden one
    devices    how many devices the CPU pretends to be
    set        `holdout`: explained for the first time when the findings were done, and counted apart

Each is recorded and explained in processes of their own, one program after the other. Exits 1 where a cause is missed
or something forbidden is said more often than `LIMITS` allows.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
KEYS = ("about", "how", "expect", "allow", "devices", "set")
LIMITS = {"missed": 0.1, "forbidden": 1}
"""The most of the planted causes that may not come first, as a share; the most findings that are forbidden."""
TIMEOUT_SECONDS = 300
SMOKE = ["pid_controller"]


@dataclass(frozen=True, slots=True)
class Program:
    """One program, and what must and may be said of it."""

    name: str
    path: Path
    about: str
    how: tuple[str, ...]
    expected: tuple[str, ...]
    """Alternatives; empty where no cause is planted."""
    allowed: frozenset[str]
    devices: int
    of: str

    @property
    def clean(self) -> bool:
        return not self.expected


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of one program."""

    name: str
    codes: tuple[str, ...]
    first: bool
    """Whether the cause came first; of a clean program, whether no cause was named."""
    forbidden: tuple[str, ...]
    seconds: float
    explained: dict[str, Any]
    failed: str = ""


def read_program(path: Path) -> Program:
    """The program in a file. Raises ValueError for a header that is not right."""
    head: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, colon, value = line[2:].partition(":")
        if not colon or key not in KEYS or key in head:
            raise ValueError(f"{path.name}: its header has a line that nobody reads: {line}")
        head[key] = value.strip()
    if missing := [key for key in ("about", "how", "expect") if not head.get(key)]:
        raise ValueError(f"{path.name}: it has no `{missing[0]}`")
    expected = [word.strip() for word in head["expect"].split("|")]
    allowed = [word.strip() for word in head.get("allow", "").split(",")]
    return Program(
        name=path.stem,
        path=path,
        about=head["about"],
        how=tuple(shlex.split(head["how"])),
        expected=tuple(word for word in expected if word != "-"),
        allowed=frozenset(word for word in allowed if word),
        devices=int(head.get("devices", 1)),
        of=head.get("set", "planted"),
    )


def programs() -> list[Program]:
    """Every program, by name."""
    return [read_program(path) for path in sorted(PROGRAMS.glob("*.py"))]


def asked(program: Program, folder: Path, *, record: bool = True) -> Answer:
    """Records the program, unless its session is in the folder already, and has it explained."""
    session = folder / f"{program.name}.jaxprof"
    began = time.monotonic()
    try:
        failed = recorded(program, session) if record else ""
        said = _jaxprof(["explain", str(session), "--format", "json"], program, folder)
    except subprocess.TimeoutExpired:
        return Answer(program.name, (), False, (), time.monotonic() - began, {}, "did not end")
    took = time.monotonic() - began
    if failed or said.returncode:
        return Answer(program.name, (), False, (), took, {}, failed or _last_lines(said))
    data = json.loads(said.stdout)["data"]
    codes = tuple(finding["code"] for finding in data["findings"])
    first, forbidden = judged(program, codes)
    return Answer(program.name, codes, first, forbidden, took, data)


def judged(program: Program, codes: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Whether the cause came first (of a clean program: whether none was named), and the codes that are forbidden."""
    forbidden = tuple(code for code in codes if code not in program.allowed and code not in program.expected)
    if program.clean:
        return not forbidden, forbidden
    return bool(codes) and codes[0] in program.expected, forbidden


def recorded(program: Program, session: Path) -> str:
    """Records the program; why that failed, empty if it did not."""
    session.unlink(missing_ok=True)
    verb, *options = (word.replace("@", str(program.path)) for word in program.how)
    told = ["--plain", *options, str(program.path)] if verb == "script" else options
    done = _jaxprof([verb, "--out", str(session), *told], program, session.parent)
    return _last_lines(done) if done.returncode else ""


def _jaxprof(words: list[str], program: Program, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))}
    variables["JAX_PLATFORMS"] = "cpu"
    if program.devices > 1:
        variables["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={program.devices}"
    return subprocess.run(
        [sys.executable, "-m", "jaxprof", *words],
        env=variables,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def _last_lines(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stderr.strip().splitlines()[-3:]) or f"exit code {done.returncode}"


def row(program: Program, answer: Answer) -> str:
    """One line of the table, in Markdown."""
    expected = " or ".join(program.expected) or "nothing"
    said = ", ".join(answer.codes) or (f"failed: {answer.failed}" if answer.failed else "nothing")
    cells = (program.name, program.how[0], expected, "yes" if answer.first else "NO", said)
    return f"| {' | '.join(cells)} | {', '.join(answer.forbidden) or '-'} | {answer.seconds:.0f} |"


HEAD = "| program | how | cause | first | said | forbidden | s |\n|---|---|---|---|---|---|--:|"


def summary(asked_of: list[tuple[Program, Answer]]) -> list[str]:
    """A line for each set of programs."""
    lines = []
    for of in dict.fromkeys(program.of for program, _ in asked_of):
        own = [(program, answer) for program, answer in asked_of if program.of == of]
        planted = [answer for program, answer in own if not program.clean]
        clean = [answer for program, answer in own if program.clean]
        forbidden = sum(len(answer.forbidden) for _, answer in own)
        lines.append(
            f"{of}: the cause first in {sum(answer.first for answer in planted)} of {len(planted)}, no cause named in "
            f"{sum(answer.first for answer in clean)} of {len(clean)} clean ones, {forbidden} forbidden findings in all"
        )
    return lines


def past_limits(asked_of: list[tuple[Program, Answer]]) -> bool:
    planted = [answer for program, answer in asked_of if not program.clean]
    missed = sum(not answer.first for answer in planted)
    forbidden = sum(len(answer.forbidden) for _, answer in asked_of)
    failed = any(answer.failed for _, answer in asked_of)
    return failed or missed > LIMITS["missed"] * len(planted) or forbidden > LIMITS["forbidden"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="this program; may be repeated")
    parser.add_argument("--set", dest="of", help="`planted` or `holdout`")
    parser.add_argument("--texts", action="store_true", help="what was said, whole, below each row")
    parser.add_argument("--folder", type=Path, help="where the sessions stay")
    parser.add_argument("--again", action="store_true", help="explain the sessions in --folder, and record nothing")
    parser.add_argument("--json", type=Path, help="every answer, in JSON")
    parser.add_argument(
        "--smoke", action="store_true", help="one small program; the table has to come out, whatever its figures"
    )
    args = parser.parse_args()
    if args.smoke:
        args.only = args.only or SMOKE
    every = programs()
    if unknown := set(args.only or ()) - {program.name for program in every}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    chosen = [
        program
        for program in every
        if (not args.only or program.name in args.only) and (not args.of or program.of == args.of)
    ]
    asked_of: list[tuple[Program, Answer]] = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for program in chosen:
            answer = asked(program, folder, record=not args.again)
            asked_of.append((program, answer))
            print(row(program, answer), flush=True)
            for finding in answer.explained.get("findings", []) if args.texts else []:
                evidence = finding["evidence"]
                print(f"    {finding['code']} at {evidence.get('place', '-')}: {finding['message']}")
                print(f"      {finding['fix']}")
    print("", *summary(asked_of), sep="\n")
    if args.json:
        args.json.write_text(json.dumps([asdict(answer) for _, answer in asked_of], indent=1))
    return 1 if past_limits(asked_of) and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
