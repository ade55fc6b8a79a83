"""The last lines of a run of the checks: what was tried, and one closing line for all runs of the tests together.

    closing.py [--run TITLE LOG]... [--also TITLE]...

Each LOG is what a pytest wrote. The closing line of each LOG stands beside its title, and their sum is printed last, in
pytest's own words. Exits 1 when a test failed, or a log has no closing line because its pytest never came to an end.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

CLOSING = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in ([\d.]+)s(?: \([\d:]+\))?(?: =+)?$")
ORDER = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors")


def counted(log: str) -> tuple[Counter[str], float] | None:
    """The counts of the last closing line, by pytest's words in the plural, and its seconds."""
    for line in reversed(log.splitlines()):
        found = CLOSING.match(re.sub(r"\x1b\[[\d;]*m", "", line.strip()))
        if found is not None:
            counts: Counter[str] = Counter()
            for part in found[1].split(", "):
                number, word = part.split()
                counts[{"error": "errors", "warning": "warnings"}.get(word, word)] += int(number)
            return counts, float(found[2])
    return None


def in_words(counts: Counter[str], seconds: float) -> str:
    """As pytest says it."""
    parts = [f"{counts[word]} {word}" for word in (*ORDER, *sorted(set(counts) - {*ORDER})) if counts[word]]
    return f"{', '.join(parts) or 'no tests'} in {seconds:.2f}s"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs=2, action="append", default=[], metavar=("TITLE", "LOG"))
    parser.add_argument("--also", action="append", default=[], metavar="TITLE")
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    seconds = 0.0
    for title, log in options.run:
        found = counted(Path(log).read_text(errors="replace"))
        if found is None:
            total["errors"] += 1
            sys.stdout.write(f"{title}: the tests did not come to an end\n")
            continue
        counts, took = found
        total.update(counts)
        seconds += took
        sys.stdout.write(f"{title}: {in_words(counts, took)}\n")
    for title in options.also:
        sys.stdout.write(f"{title}\n")
    sys.stdout.write(f"{in_words(total, seconds)}\n")
    return 1 if total["failed"] or total["errors"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
