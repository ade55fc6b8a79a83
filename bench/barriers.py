"""How often jaxprof's own reason why two kernels are two agrees with XLA's, where XLA states one.

    python bench/barriers.py [PATH...] [--for h100] [--python PYTHON] [--smoke]

XLA's GPU compiler writes down why it did not fuse a producer. Modules that it compiled here have its words, and so have
dumps with `--xla_dump_hlo_pass_re=priority-fusion`. Each barrier of such a module is derived once more without these
words, as for a module that lacks them, and held against them:

- agrees: the same ground, or none was given (`not-told`);
- another: XLA names another ground, and both hold;
- contradicts: the derived reason says that a fusion is impossible which XLA priced, or which it refused for a ground
  that excludes ours.

Without a PATH (HLO text or a dump) the compiled variants of all workloads are compiled for the device, with the wheels
of `jaxprof devices target install`. Exits 1 where a barrier in twenty contradicts XLA.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from jaxprof.hlo.files import reasons_in  # noqa: E402
from jaxprof.hlo.kernels.barriers import barriers  # noqa: E402
from jaxprof.hlo.paths import modules_at  # noqa: E402
from jaxprof.hlo.text import parse  # noqa: E402
from jaxprof.hlo.text.model import Module  # noqa: E402
from jaxprof.workloads import CATALOGUE  # noqa: E402

MOST_CONTRADICTING = 0.05
SMOKE = ("selu",)
NEVER_FUSED = {
    "library-call",
    "matrix-product",
    "whole-array",
    "communication",
    "control-flow",
    "scatter",
    "buffer-copy",
}
"""Reasons that say what kind of kernel one of the two is."""
GROUNDS: tuple[tuple[str, frozenset[str]], ...] = (
    (r"^the (?:producer|consumer) is not fusible", frozenset(NEVER_FUSED | {"split-k", "layout"})),
    (r"contain a reduce|reduce fusion|[Rr]eduction", frozenset({"reduction", "split-k"})),
    (r"µs as one kernel", frozenset({"several-users", "recomputation", "program-output"})),
    (r"code duplication|budget|limit|parameters|shared memory|operands", frozenset({"recomputation"})),
    (r"in.?place", frozenset({"buffer-copy", "scatter"})),
    (r"[Tt]ransp", frozenset({"layout"})),
    (r"root instruction|output of the root", frozenset({"program-output"})),
    (r"[Tt]iling|[Tt]iled|Triton|triton", frozenset(NEVER_FUSED | {"reduction"})),
)
"""What XLA's words speak of, and the reasons of ours that are the same ground."""
IMPOSSIBLE = {*NEVER_FUSED, "reduction", "layout", "split-k"}
"""Reasons that exclude a fusion."""


def judge(reason: str, words: str) -> str:
    """`agrees`, `another` or `contradicts`."""
    if reason == "not-told":
        return "agrees"
    grounds = [reasons for pattern, reasons in GROUNDS if re.search(pattern, words)]
    if any(reason in reasons for reasons in grounds):
        return "agrees"
    return "contradicts" if "µs as one kernel" in words and reason in IMPOSSIBLE else "another"


def compared(module: Module) -> Iterator[tuple[str, str, str, str]]:
    """Producer, consumer, the derived reason and XLA's words, of each barrier that XLA speaks of."""
    words = reasons_in(module)
    text = module.source.text
    (bare,) = parse.modules(text[: text.rfind("\n}") + 3])
    for barrier in barriers(bare):
        if barrier.reason != "control-flow" and (said := words.get(barrier.producer)):
            yield barrier.producer, barrier.consumer, barrier.reason, said


def compiled(name: str, device: str, python: str) -> Module | None:
    command = [python, "-m", "jaxprof", "hlo", name, "--for", device, "--stage", "hlo"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        print(f"  {name}: {done.stderr.strip().partition(chr(10))[0][:100]}", file=sys.stderr)
        return None
    return parse.module(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--for", dest="device", default="h100")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--smoke", action="store_true", help="one workload; the table has to come out")
    options = parser.parse_args()
    modules: list[Module | None] = [each.module() for path in options.paths for each in modules_at(path)]
    if not modules:
        with ThreadPoolExecutor(2) as pool:
            names = SMOKE if options.smoke else CATALOGUE
            modules = list(pool.map(lambda name: compiled(name, options.device, options.python), names))
    counts: Counter[str] = Counter()
    kinds: Counter[tuple[str, str, str]] = Counter()
    for module in modules:
        for _, _, reason, words in compared(module) if module is not None else ():
            verdict = judge(reason, words)
            counts[verdict] += 1
            kinds[verdict, reason, re.sub(r"\d[\d.e+-]*", "N", words)[:90]] += 1
    total = counts.total()
    print(
        f"{total} barriers that XLA speaks of: " + ", ".join(f"{count} {name}" for name, count in counts.most_common())
    )
    for (verdict, reason, words), count in sorted(kinds.items(), key=lambda item: (item[0][0], -item[1])):
        print(f"  {count:5} {verdict:12} {reason:16} XLA: {words}")
    if options.smoke:
        return 0 if total or not any(modules) else 1
    return int(counts["contradicts"] > MOST_CONTRADICTING * total)


if __name__ == "__main__":
    sys.exit(main())
