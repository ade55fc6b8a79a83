"""How fast HLO text is read, against jaxlib's own reader (C++) in the same run.

    python bench/hlo.py [--megabytes 100] [--samples 5] [--smoke]

Prints, and holds against limits (exit code 1 past one):
- the whole parse (every instruction's opcode, shape, operands, called computations) in MB/s, at most 8 times as long as
  jaxlib's reader takes for the same text;
- the index of a module of a million instructions (100 MB), under 1 s and under what jaxlib takes for such a text;
- the memory of a process that indexes that module, of one that reads all of it, and of one that has its kernels and
  barriers, text included and at its peak, under 4 times the text;
- of that module the first page of kernels, in a process that has just started, under 2 s, and its kernels, barriers and
  findings under 20 s;
- of a module whose instructions all stand in the entry, half of the operands far away, the ten largest kernels, all
  kernels as text, and the answer in JSON, which has fifty and counts the others, at most 2, 3 and 3 times as long as
  jaxlib's reader takes for the same text;
- of that module the table of kernels, sorted, filtered and grouped in each way: the origins of all kernels under 5 s,
  each way after that, which a key waits for, under 1 s, and the memory of it all under 4.3 times the text.

The module is made here: small fusions, as in real modules an eighth of all computations' instructions, and one large
entry. jaxlib's reader is private and only timed; where it is missing the comparison is left out, and this is said.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Module

# Another tree that PYTHONPATH names is the one to be measured.
if not any((Path(one) / "jaxprof").is_dir() for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

SLOWEST_RATIO = 8.0
SLOWEST_LISTING_RATIOS = {"ten kernels": 2.0, "all kernels": 3.0, "JSON": 3.0}
LONGEST_INDEX_SECONDS = 1.0
LARGEST_MEMORY_RATIO = 4.0
LONGEST_PAGE_SECONDS = 2.0
LONGEST_ANALYSIS_SECONDS = 20.0
LARGEST_ARRANGED_RATIO = 4.3
LONGEST_ORIGINS_SECONDS = 5.0
LONGEST_ARRANGING_SECONDS = 1.0
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


def flat_module(instructions: int) -> str:
    """The text of a valid module with one computation, 155 bytes an instruction; an operand of each may be any value
    before it."""
    chosen = random.Random(1)
    parts = ["HloModule flat, is_scheduled=true\n\nENTRY %main (x: f32[128,256]) -> f32[128,256] {\n"]
    parts.append("  %x = f32[128,256]{1,0} parameter(0)\n")
    names = ["x"]
    for number in range(instructions - 1):
        opcode = ("add", "multiply", "dot", "exponential", "reshape", "maximum")[
            number % 6 if 1 < number < instructions - 2 else 0
        ]
        other = names[chosen.randrange(len(names))]
        result, taken, more = "f32[128,256]", f"%{names[-1]}, %{other}", ""
        if opcode == "dot":
            result, more = "f32[128,128]", ", lhs_contracting_dims={1}, rhs_contracting_dims={1}"
        elif opcode in ("exponential", "reshape"):
            taken = f"%{other}"
        root = "ROOT " * (number == instructions - 2)
        origin = (
            f'metadata={{op_name="jit(train_step)/layer_{number % 96}/mlp/{opcode}" stack_frame_id={number % 50 + 1}}}'
        )
        parts.append(f"  {root}%{opcode}.{number} = {result}{{1,0}} {opcode}({taken}){more}, {origin}\n")
        if opcode != "dot":
            names.append(f"{opcode}.{number}")
    parts.append("}\n")
    return "".join(parts)


def listing(text: str, form: str) -> None:
    """The kernels as `jaxprof hlo FILE --kernels` prints them with `--top 10`, whole and with `--format json`."""
    from jaxprof.analysis.kernels.hlo_program import HloProgram
    from jaxprof.analysis.kernels.ranking import KernelOptions
    from jaxprof.facts import recorder
    from jaxprof.facts.hlo import facts_of_program
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.parse import modules
    from jaxprof.report.envelope import answer_pieces
    from jaxprof.report.kernels import kernel_lines

    if form == "JSON":
        program = HloProgram(ModuleStages("m", "m", {"hlo": lambda: text}))
        data = {"programs": map(recorder(facts_of_program("kernels")), (program,))}
        assert sum(1 for _ in answer_pieces("hlo-kernels", data, (), None)) > 1
    else:
        choice = KernelOptions(top=10 if form == "ten kernels" else None)
        assert sum(1 for _ in kernel_lines(modules(text)[0], None, choice)) > 1


def whole_parse(text: str) -> int:
    from jaxprof.hlo.text.parse import modules

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
    from jaxprof.hlo.text.parse import modules

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


def analysis_of(text: str) -> tuple[float, float]:
    """CPU seconds until the first page of kernels is there, and until all that is told of a module was worked out."""
    from itertools import islice

    from jaxprof.findings.hlo import findings
    from jaxprof.hlo.kernels.barriers import barriers
    from jaxprof.hlo.kernels.kernels import kernels
    from jaxprof.hlo.text.parse import modules
    from jaxprof.report.kernels import kernel_lines

    start = time.process_time()
    (module,) = modules(text)
    assert len(list(islice(kernel_lines(module, None), 100))) == 100
    page = time.process_time() - start
    kernels(module), barriers(module), findings(module)
    return page, time.process_time() - start


def arranged(kept: list[Module]) -> tuple[float, float, str]:
    """CPU seconds until the origins of all kernels are read, and of the slowest way to arrange them after that, with
    its name."""
    from jaxprof.analysis.kernels.ranking import GROUPINGS, Ranking, filter_kernels, group_kernels, sort_kernels
    from jaxprof.hlo.kernels.kernels import kernels

    ranking = Ranking(kernels(kept[0]))
    rows = range(len(ranking))
    ranking.column("weight")
    ways: dict[str, Callable[[], object]] = {
        "sort by bytes": lambda: sort_kernels(ranking, rows, "bytes"),
        "sort by name": lambda: sort_kernels(ranking, rows, "name"),
        "group by kind": lambda: group_kernels(ranking, rows, "kind"),
        "filter": lambda: filter_kernels(ranking, "fusion.77"),
        "sort by source": lambda: sort_kernels(ranking, rows, "source"),
        **{f"group by {way}": lambda way=way: group_kernels(ranking, rows, way) for way in GROUPINGS if way != "none"},
    }
    (origins,) = seconds(lambda: ranking.origins, 1)
    taken = {name: seconds(work, 1)[0] for name, work in ways.items()}
    slowest = max(taken, key=taken.__getitem__)
    return origins, taken[slowest], slowest


def peer() -> Callable[[str], object] | None:
    """jaxlib's reader, where this jaxlib has one."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from jaxlib import _hlo
    except ImportError:
        return None
    return _hlo.hlo_module_from_text  # type: ignore[no-any-return]


def memory_of(what: str, instructions: int) -> tuple[float, str]:
    """Peak resident bytes over the text's, in a process of its own: what was resident before the text is taken off.
    With what that process says besides."""
    command = [sys.executable, __file__, "--memory-of", what, "--instructions", str(instructions)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout), done.stderr.strip()


def memory_here(what: str, instructions: int) -> float:
    # The text is made by another process and read from a file, as in use: making it would be the peak.
    path = Path(f"/tmp/jaxprof-bench-{os.getpid()}.txt")
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import hlo; "
    code += f"open({str(path)!r}, 'w').write(hlo.synthetic_module({instructions}))"
    try:
        subprocess.run([sys.executable, "-c", code], check=True)
        from jaxprof.hlo import files
        from jaxprof.hlo.text import parse

        before = peak_bytes()
        kept = parse.modules(files.read_text(path))
        if what == "whole":
            look_at_all(kept)
        elif what in ("analysis", "arranged"):
            from jaxprof.hlo.kernels.barriers import barriers
            from jaxprof.hlo.kernels.kernels import kernels

            counted = len(kernels(kept[0])), len(barriers(kept[0]))
            print(*(arranged(kept) if what == "arranged" else counted), file=sys.stderr)
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
    parser.add_argument("--memory-of", choices=("index", "whole", "analysis", "arranged"), help=argparse.SUPPRESS)
    parser.add_argument("--instructions", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument(
        "--smoke", action="store_true", help="one sample of 1 MB; the table has to come out, whatever its figures"
    )
    options = parser.parse_args()
    if options.smoke:
        options.megabytes, options.samples = 1, 1
    if options.memory_of:
        print(memory_here(options.memory_of, options.instructions))
        return 0
    parsed = PARSED_INSTRUCTIONS // 10 if options.smoke else PARSED_INSTRUCTIONS
    failures = compare(options.megabytes * 10_000, options.samples, parsed)
    for failure in failures:
        print(f"past its limit: {failure}", file=sys.stderr)
    return 1 if failures and not options.smoke else 0


def compare(instructions: int, samples: int, parsed: int) -> list[str]:
    failures = []
    text = synthetic_module(parsed)
    print(f"whole parse: {len(text) / 1e6:.1f} MB, {parsed} instructions, {samples} samples")
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

    flat = flat_module(instructions)
    print(f"kernels: {len(flat) / 1e6:.1f} MB in one computation, {instructions} instructions")
    theirs = seconds(lambda: reader(flat), 1) if reader else []
    if theirs:
        print(told("jaxlib (C++)", theirs, len(flat)))
    for form, limit in SLOWEST_LISTING_RATIOS.items():
        listed = seconds(lambda form=form: listing(flat, form), 1)  # type: ignore[misc]
        print(told(form, listed, len(flat)))
        if theirs:
            ratio = listed[0] / theirs[0]
            print(f"  ratio {ratio:.2f}, limit {limit:g}")
            if ratio > limit:
                failures.append(f"{form}: {ratio:.1f} times as long as jaxlib's reader")

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

    page, everything = analysis_of(large)
    print(f"analysis: first page of kernels {page:.2f} s, kernels, barriers and findings {everything:.1f} s")
    scale = max(instructions / 1e6, 0.1)
    if page > LONGEST_PAGE_SECONDS:
        failures.append(f"the first page of kernels takes {page:.1f} s")
    if everything > LONGEST_ANALYSIS_SECONDS * scale:
        failures.append(f"the analysis takes {everything:.1f} s")

    for what in ("index", "whole", "analysis", "arranged"):
        used, said = memory_of(what, instructions)
        most = LARGEST_ARRANGED_RATIO if what == "arranged" else LARGEST_MEMORY_RATIO
        print(f"memory, {what}: {used:.2f} times the text at the peak, limit {most:g}")
        if what == "arranged":
            origins, longest, way = said.split(maxsplit=2)
            print(f"  origins of all kernels {float(origins):.2f} s; then at most {float(longest):.2f} s, to {way}")
            if float(origins) > LONGEST_ORIGINS_SECONDS * scale:
                failures.append(f"the origins of all kernels take {origins} s")
            if float(longest) > LONGEST_ARRANGING_SECONDS * scale:
                failures.append(f"to {way} takes {longest} s")
        if used > most:
            failures.append(f"reading ({what}) takes {used:.1f} times the memory of the text")
    return failures


if __name__ == "__main__":
    sys.exit(main())
