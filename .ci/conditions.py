"""The tests of the README's second command on machines that are unlike this one: in a fresh clone for each condition.

    conditions.py [--pytest ARGUMENTS] [NAME]...    all conditions, or those with these names

What is committed here is cloned, and its environment is made before its condition begins, so that neither pip nor the
network decides. The last lines are one for each run, with its counts and seconds, or why this machine cannot make its
condition; then their sum. Exits 1 when a test failed. A condition that cannot be made is no failure.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import closing

ROOT = Path(__file__).resolve().parents[1]
LONGEST_SECONDS = 2 * 3600
"""Longest run of the tests: at `nice 19` beside two busy processes a machine with two cores has little left."""
BUSY = "while :; do :; done"
IS_ROOT = os.geteuid() == 0
UNSHARE = ["unshare"] if IS_ROOT else ["unshare", "--map-root-user"]
NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY.pw_uid), "--regid", str(NOBODY.pw_gid), "--clear-groups"]
OURS = ("JAXPROF_", "PYTHON")
"""Beginnings of variables that a newcomer does not have: of the checks, and of this machine (`PYTHONUNBUFFERED`)."""


@dataclass(frozen=True)
class Condition:
    """What differs from the machine as it is."""

    before: list[str] = field(default_factory=list)
    """Words that start the tests. `{a_minute}` are the seconds that bring the uptime to 60."""
    environment: dict[str, str | None] = field(default_factory=dict)
    """Variables that are set, or unset."""
    arguments: list[str] = field(default_factory=list)
    """Arguments of pytest."""
    times: int = 1
    busy: int = 0
    """Number of processes beside the tests that compute all the time."""
    oldest: bool = False
    """Whether the tests have the oldest Python; else the newest one that can be started under this condition."""
    owner: str = ""
    """User who owns the clone, and has a home beside it."""


CONDITIONS = {
    "just-booted": Condition([*UNSHARE, "--time", "--monotonic", "{a_minute}", "--boottime", "{a_minute}"]),
    "one-core": Condition(["taskset", "-c", str(min(os.sched_getaffinity(0)))]),
    "nice-19": Condition(["nice", "-n", "19"], busy=2),
    "TZ=Asia/Kolkata": Condition(environment={"TZ": "Asia/Kolkata"}),
    "LANG=C": Condition(environment={"LANG": "C", "LC_ALL": None, "LC_CTYPE": None}),
    "no-HOME": Condition(environment={"HOME": None}),
    "not-root": Condition(AS_NOBODY, owner=NOBODY.pw_name) if IS_ROOT else Condition(),
    # No terminal either: a session of its own has none.
    "no-network": Condition(
        ["setsid", "--wait", *UNSHARE, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    ),
    "oldest-Python": Condition(oldest=True),
    "three-times": Condition(times=3),
    "no-process": Condition(arguments=["-m", "not process"]),
}


def show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@cache
def pythons() -> list[str]:
    """Return the Pythons that the checks use, oldest first."""
    listed = subprocess.run([ROOT / ".ci" / "run", "--pythons"], check=True, capture_output=True, text=True).stdout
    supported = (ROOT / "pyproject.toml").read_text()
    return [
        path
        for version, _, path in (line.partition(" ") for line in listed.splitlines())
        if f'Python :: {version.rpartition(".")[0]}"' in supported
    ]


def started(condition: Condition, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the words before a command, and its environment."""
    to_a_minute = f"{60 - time.clock_gettime(time.CLOCK_BOOTTIME):.0f}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    home = {"HOME": str(folder / "home")} if condition.owner else {}
    return (
        [word.replace("{a_minute}", to_a_minute) for word in condition.before],
        {name: value for name, value in (environment | home | condition.environment).items() if value is not None},
    )


def usable_python(condition: Condition, folder: Path) -> tuple[str, str]:
    """Return the Python for the tests; none, and the reason, if the condition cannot be made."""
    words, environment = started(condition, folder)
    reason = "there is no Python"
    for python in pythons()[:1] if condition.oldest else reversed(pythons()):
        try:
            probe = subprocess.run([*words, python, "-c", ""], env=environment, capture_output=True, text=True)
        except OSError as error:
            return "", str(error)
        if probe.returncode == 0:
            return python, ""
        reason = (probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"])[-1]
    return "", reason


def make_environment(python: str, clone: Path) -> None:
    """Make `.venv` of the clone, as the README's command does; with uv where it is there."""
    if shutil.which("uv"):
        subprocess.run(["uv", "venv", "--quiet", "--seed", "--python", python, ".venv"], cwd=clone, check=True)
        # Copies: links would give the files of its cache to the owner of the clone.
        install = ["uv", "pip", "install", "--link-mode", "copy", "--python", ".venv/bin/python"]
    else:
        subprocess.run([python, "-m", "venv", ".venv"], cwd=clone, check=True)
        install = [".venv/bin/pip", "install"]
    subprocess.run([*install, "--quiet", "-e", ".[dev]"], cwd=clone, check=True)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run processes that compute all the time, in the session of the tests: Linux balances sessions before niceness."""
    processes = [subprocess.Popen(["sh", "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(name: str, folder: Path, arguments: list[str]) -> list[str]:
    """Run the tests under a condition, and return the arguments of `closing.py` for them."""
    condition = CONDITIONS[name]
    folder.mkdir()
    python, reason = usable_python(condition, folder)
    if not python:
        return ["--also", f"{name}: not tried, this machine cannot make it: {reason}"]
    clone = folder / "jaxprof"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    make_environment(python, clone)
    if condition.owner:
        (folder / "home").mkdir()
        subprocess.run(["chown", "-R", condition.owner, folder], check=True)
    version = subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.strip()
    lines = []
    for number in range(condition.times):
        words, environment = started(condition, folder)
        title = f"{name}{f' {number + 1}' if condition.times > 1 else ''}, {version}"
        show(f"\n== {title}")
        log = folder.with_name(f"{folder.name}-{number}.log")
        with busy(condition.busy), log.open("w") as output:
            command = [*words, ".venv/bin/python", "-m", "pytest", *condition.arguments, *arguments]
            tests = subprocess.Popen(
                command, cwd=clone, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            try:
                code: int | None = tests.wait(LONGEST_SECONDS)
            except subprocess.TimeoutExpired:
                tests.terminate()
                code = tests.wait()
        written = log.read_text(errors="replace").splitlines()
        show("\n".join(written[-1:] if code == 0 else written[-200:]))
        lines += ["--run", title, str(log)]
    shutil.rmtree(folder, ignore_errors=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pytest", default="", metavar="ARGUMENTS", help="further arguments of pytest, in one word")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CONDITIONS)}")
    options = parser.parse_args()
    if unknown := {*options.names} - {*CONDITIONS}:
        parser.error(f"no condition is called {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="conditions-", ignore_cleanup_errors=True) as work:
        os.chmod(work, 0o755)  # the clone of another user is in it
        lines: list[str] = []
        for number, name in enumerate(options.names or CONDITIONS):
            lines += run(name, Path(work, str(number)), options.pytest.split())
        show("\n== conditions")
        return closing.main(lines)


if __name__ == "__main__":
    sys.exit(main())
