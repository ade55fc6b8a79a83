"""How fast HLO text is read, against jaxlib's own reader (C++) in the same run.

    python bench/hlo.py [--megabytes 100] [--samples 5]

Prints, and holds against limits (exit code 1 past one):
- the whole parse (every instruction's opcode, shape, operands, called computations) in MB/s, at most 8 times as long as
  jaxlib's reader takes for the same text;
- the index of a module of a million instructions, under 1 s and under what jaxlib takes for the text at its own rate;
- the memory of index and whole parse, text included, under 4 times the text.

The module is made here: fusions with metadata, a while loop, one large entry. jaxlib's reader is private and only
timed; where it is missing the comparison is left out and said to be.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

SLOWEST_RATIO = 8.0
LONGEST_INDEX_SECONDS = 1.0
LARGEST_MEMORY_RATIO = 4.0

_FUSION = """%fused_computation.{n} (param_0.{n}: f32[128,256], param_1.{n}: f32[256]) -> f32[128,256] {{
  %param_0.{n} = f32[128,256]{{1,0}} parameter(0)
  %param_1.{n} = f32[256]{{0}} parameter(1)
  %broadcast.{n} = f32[128,256]{{1,0}} broadcast(%param_1.{n}), dimensions={{1}}, metadata={{op_name="jit(f)/mul" stack_frame_id=2}}
  ROOT %multiply.{n} = f32[128,256]{{1,0}} multiply(%param_0.{n}, %broadcast.{n}), metadata={{op_name="jit(f)/mul" stack_frame_id=2}}
}}

"""


def synthetic_module(instructions: int, line_bytes: int = 100) -> str:
    """The text of a valid module: about half of `instructions` in fusions, half in the entry."""
    fusions = max(instructions // 8, 1)
    parts = ["HloModule synthetic, is_scheduled=true\n\n"]
    parts += [_FUSION.format(n=number) for number in range(fusions)]
    parts.append("ENTRY %main (x: f32[128,256], y: f32[256]) -> f32[128,256] {\n")
    parts.append("  %x = f32[128,256]{1,0} parameter(0)\n  %y = f32[256]{0} parameter(1)\n")
    value = "x"
    for number in range(instructions - 4 * fusions - 2):
        is_last = number == instructions - 4 * fusions - 3
        if number < fusions:
            made = f"fusion(%{value}, %y), kind=kLoop, calls=%fused_computation.{number}"
        else:
            made = f"add(%{value}, %{value})"
        line = f"  {'ROOT ' * is_last}%v.{number} = f32[128,256]{{1,0}} {made}, metadata={{op_name=\""
        parts.append(line + "jit(f)/add".ljust(max(line_bytes - len(line) - 3, 10), "_") + '"}\n')
        value = f"v.{number}"
    parts.append("}\n")
    return "".join(parts)


def whole_parse(text: str) -> int:
    from jaxprof.hlo.parse import modules

    count = 0
    for module in modules(text):
        for computation in module.computations.values():
            for instruction in computation.instructions:
                _ = instruction.opcode, instruction.shape, instruction.operands, instruction.called
                count += 1
    return count


def seconds(work: Callable[[], object], samples: int) -> list[float]:
    found = []
    for _ in range(samples):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def told(name: str, times: list[float], size: int) -> str:
    median = statistics.median(times)
    return f"{name:<28} {size / median / 1e6:8.1f} MB/s   median {median:.3f} s   ({min(times):.3f} to {max(times):.3f} s)"


def memory(size: int) -> tuple[float, float]:
    """Peak resident bytes over the text's, of a process that indexes it, and of one that reads all of it."""
    ratios = []
    for kind in ("index", "whole"):
        done = subprocess.run(
            [sys.executable, __file__, "--memory-of", kind, "--instructions", str(size)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        ratios.append(float(done.stdout))
    return ratios[0], ratios[1]


def memory_here(kind: str, instructions: int) -> float:
    """The peak above what the process had with the text alone, plus the text, over the text."""
    import resource

    from jaxprof.hlo.parse import modules

    text = synthetic_module(instructions)
    # The peak so far is that of making the text; what reading it adds shows only above it, so count it by hand.
    before = _resident()
    if kind == "index":
        kept = modules(text)
        kept[0].entry
    else:
        kept = modules(text)
        for computation in kept[0].computations.values():
            for instruction in computation.instructions:
                _ = instruction.opcode, instruction.shape, instruction.operands, instruction.called
    after = max(_resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if kind == "peak" else 0)
    return (after - before + len(text)) / len(text)


def _resident() -> int:
    import os

    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--memory-of", choices=("index", "whole"))
    parser.add_argument("--instructions", type=int, default=0)
    options = parser.parse_args()
    if options.memory_of:
        print(memory_here(options.memory_of, options.instructions))
        return 0
    return compare(options.megabytes, options.samples)


def compare(megabytes: int, samples: int) -> int:
    from jaxprof.hlo.parse import modules

    failures = []
    small = synthetic_module(80_000)
    ours = seconds(lambda: whole_parse(small), samples)
    print(f"whole parse of {len(small) / 1e6:.1f} MB, 80 000 instructions, {samples} samples")
    print(told("  jaxprof", ours, len(small)))
    rate = None
    try:
        from jaxlib import _hlo
    except ImportError:
        print("  jaxlib has no _hlo here: no comparison")
    else:
        theirs = seconds(lambda: _hlo.hlo_module_from_text(small), samples)
        print(told("  jaxlib (C++)", theirs, len(small)))
        ratio = statistics.median(ours) / statistics.median(theirs)
        rate = len(small) / statistics.median(theirs)
        print(f"  ratio {ratio:.2f}, limit {SLOWEST_RATIO:g}")
        if ratio > SLOWEST_RATIO:
            failures.append(f"the whole parse takes {ratio:.1f} times as long as jaxlib's")
    instructions = megabytes * 10_000
    large = synthetic_module(instructions)
    index = seconds(lambda: modules(large), samples)
    print(f"index of {len(large) / 1e6:.1f} MB, {instructions} instructions, {samples} samples")
    print(told("  jaxprof", index, len(large)))
    limit = LONGEST_INDEX_SECONDS * len(large) / 100e6
    if rate:
        print(f"  jaxlib would take {len(large) / rate:.1f} s for it")
        limit = min(limit, len(large) / rate)
    print(f"  limit {limit:.2f} s")
    if statistics.median(index) > limit:
        failures.append(f"the index takes {statistics.median(index):.2f} s")
    del large
    for kind, used in zip(("index", "whole parse"), memory(instructions), strict=True):
        print(f"memory of the {kind}, text included: {used:.2f} times the text, limit {LARGEST_MEMORY_RATIO:g}")
        if used > LARGEST_MEMORY_RATIO:
            failures.append(f"the {kind} takes {used:.1f} times the memory of the text")
    for failure in failures:
        print(f"past its limit: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
