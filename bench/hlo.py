"""How fast HLO text is read, against jaxlib's own reader (C++) in the same run.

    python bench/hlo.py [--megabytes 100] [--samples 5]

Prints, and holds against limits (exit code 1 past one):
- the whole parse (every instruction's opcode, shape, operands, called computations) in MB/s, at most 8 times as long as
  jaxlib's reader takes for the same text;
- the index of a module of a million instructions (100 MB), under 1 s and under what jaxlib takes for such a text;
- the memory of a process that indexes that module, and of one that reads all of it, text included and at its peak,
  under 4 times the text.

The module is made here: small fusions, as in real modules an eighth of all computations' instructions, and one large
entry. jaxlib's reader is private and only timed; where it is missing the comparison is left out, and this is said.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

SLOWEST_RATIO = 8.0
LONGEST_INDEX_SECONDS = 1.0
LARGEST_MEMORY_RATIO = 4.0
PARSED_INSTRUCTIONS = 80_000

_FUSION = """\
%fused_computation.{n} (param_0.{n}: f32[128,256], param_1.{n}: f32[256]) -> f32[128,256] {{
  %param_0.{n} = f32[128,256]{{1,0}} parameter(0)
  %param_1.{n} = f32[256]{{0}} parameter(1)
  %broadcast.{n} = f32[128,256]{{1,0}} broadcast(%param_1.{n}), dimensions={{1}}, metadata={{op_name="jit(f)/mul"}}
  ROOT %mul.{n} = f32[128,256]{{1,0}} multiply(%param_0.{n}, %broadcast.{n}), metadata={{op_name="jit(f)/mul"}}
}}

"""


def synthetic_module(instructions: int) -> str:
    """The text of a valid module, 100 bytes an instruction: half of them in fusions of four, half in the entry."""
    fusions = max(instructions // 8, 1)
    parts = ["HloModule synthetic, is_scheduled=true\n\n"]
    parts += [_FUSION.format(n=number) for number in range(fusions)]
    parts.append("ENTRY %main (x: f32[128,256], y: f32[256]) -> f32[128,256] {\n")
    parts.append("  %x = f32[128,256]{1,0} parameter(0)\n  %y = f32[256]{0} parameter(1)\n")
    value = "x"
    last = instructions - 4 * fusions - 3
    for number in range(last + 1):
        called = f"fusion(%{value}, %y), kind=kLoop, calls=%fused_computation.{number}"
        made = called if number < fusions else f"add(%{value}, %{value})"
        line = f"  {'ROOT ' * (number == last)}%v.{number} = f32[128,256]{{1,0}} {made}, metadata={{op_name="
        parts.append(f'{line}"jit(f)/{"x" * (88 - len(line))}"}}\n')
        value = f"v.{number}"
    parts.append("}\n")
    return "".join(parts)


def whole_parse(text: str) -> int:
    from jaxprof.hlo.parse import modules

    return look_at_all(modules(text))


def look_at_all(modules: list[Module]) -> int:
    """The number of instructions, after every one's opcode, shape, operands and called computations were read."""
    count = 0
    for module in modules:
        for computation in module.computations.values():
            for instruction in computation.instructions:
                _ = instruction.opcode, instruction.shape, instruction.operands, instruction.called
                count += 1
    return count


def index(text: str) -> object:
    from jaxprof.hlo.parse import modules

    return modules(text)


def seconds(work: Callable[[], object], samples: int) -> list[float]:
    """CPU seconds: both readers keep to one thread, and whatever else the machine does is not theirs."""
    found = []
    for _ in range(samples):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return found


def told(name: str, times: list[float], size: int) -> str:
    median = statistics.median(times)
    rate = size / median / 1e6
    return f"  {name:<13} {rate:7.1f} MB/s   median {median:.3f} s   ({min(times):.3f} to {max(times):.3f} s)"


def peer() -> Callable[[str], object] | None:
    """jaxlib's reader, where this jaxlib has one."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from jaxlib import _hlo
    except ImportError:
        return None
    return _hlo.hlo_module_from_text  # type: ignore[no-any-return]


def memory_of(what: str, instructions: int) -> float:
    """Peak resident bytes over the text's, in a process of its own: what was resident before the text is taken off."""
    command = [sys.executable, __file__, "--memory-of", what, "--instructions", str(instructions)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def memory_here(what: str, instructions: int) -> float:
    # The text is made by another process and read from a file, as in use: making it would be the peak.
    path = Path(f"/tmp/jaxprof-bench-{os.getpid()}.txt")
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import hlo; "
    code += f"open({str(path)!r}, 'w').write(hlo.synthetic_module({instructions}))"
    try:
        subprocess.run([sys.executable, "-c", code], check=True)
        from jaxprof.hlo import files

        before = peak_bytes()
        kept = files.load(path)
        if what == "whole":
            look_at_all(kept)
        after = peak_bytes()
        size = path.stat().st_size
    finally:
        path.unlink(missing_ok=True)
    assert kept
    return (after - before) / size


def peak_bytes() -> int:
    """Not `getrusage`: that peak is inherited from the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--memory-of", choices=("index", "whole"), help=argparse.SUPPRESS)
    parser.add_argument("--instructions", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(memory_here(options.memory_of, options.instructions))
        return 0
    failures = compare(options.megabytes * 10_000, options.samples)
    for failure in failures:
        print(f"past its limit: {failure}", file=sys.stderr)
    return 1 if failures else 0


def compare(instructions: int, samples: int) -> list[str]:
    failures = []
    text = synthetic_module(PARSED_INSTRUCTIONS)
    print(f"whole parse: {len(text) / 1e6:.1f} MB, {PARSED_INSTRUCTIONS} instructions, {samples} samples")
    ours = seconds(lambda: whole_parse(text), samples)
    print(told("jaxprof", ours, len(text)))
    rate = None
    if reader := peer():
        theirs = seconds(lambda: reader(text), samples)
        print(told("jaxlib (C++)", theirs, len(text)))
        rate = len(text) / statistics.median(theirs)
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"  ratio {ratio:.2f}, limit {SLOWEST_RATIO:g}")
        if ratio > SLOWEST_RATIO:
            failures.append(f"the whole parse takes {ratio:.1f} times as long as jaxlib's reader")
    else:
        print("  this jaxlib has no reader to compare with")

    large = synthetic_module(instructions)
    size = len(large)
    print(f"index: {size / 1e6:.1f} MB, {instructions} instructions, {samples} samples")
    indexed = seconds(lambda: index(large), samples)
    print(told("jaxprof", indexed, size))
    limit = min(LONGEST_INDEX_SECONDS * max(instructions / 1e6, 0.1), size / rate if rate else float("inf"))
    if rate:
        print(f"  jaxlib's reader, at its rate above: {size / rate:.1f} s")
    print(f"  limit {limit:.2f} s")
    if statistics.median(indexed) > limit:
        failures.append(f"the index takes {statistics.median(indexed):.2f} s")

    for what in ("index", "whole"):
        used = memory_of(what, instructions)
        print(f"memory, {what}: {used:.2f} times the text at the peak, limit {LARGEST_MEMORY_RATIO:g}")
        if used > LARGEST_MEMORY_RATIO:
            failures.append(f"reading ({what}) takes {used:.1f} times the memory of the text")
    return failures


if __name__ == "__main__":
    sys.exit(main())
