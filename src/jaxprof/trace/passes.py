"""Where the time of a compile went: XLA's phases and passes as a tree, with self times.

The host's threads record nested intervals. One compile moves between threads (Python waits for the compiler's pool,
which waits for the code generator's), so a thread's outermost interval becomes a child of the shortest interval of
another thread's compile that holds it. Seconds are thread time: if several threads work at once, children add up to
more than their parent took; the parent's self time is what no child covers.

A table of names assigns phases and passes to the stages of a compile, for the compilers of CPU, GPU and TPU. Names
differ between versions, and new ones appear: a name that is not in the table takes the stage of its parent (a pass of a
known pipeline), or is `other`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxprof.base.grouping import grouped
from jaxprof.events import CompilePasses, ModuleCompiles, PassTimes
from jaxprof.trace.intervals import Coverage, nesting_order
from jaxprof.trace.model import PS, Lane, Trace

_ROOT = re.compile(r"backend_compile|XlaCompile|Client::Compile\b|CompileAndLoad|CompileAheadOfTime|TpuCompile")
_MODULE_SUFFIX = re.compile(r" \([^()]*\)$")
_DEEPEST = 64  # a damaged file may nest deeper than Python can call


@dataclass(slots=True, eq=False)
class _Span:
    """One interval of one thread, and those within it: those of its thread in order of start, then the outermost ones
    of other threads."""

    name: str
    start: int
    end: int
    children: list[_Span] = field(default_factory=list)


def compile_passes(trace: Trace) -> CompilePasses | None:
    """Return the tree, and which modules were compiled; None if nothing was."""
    threads: list[list[_Span]] = []
    for lane in _within_compiles(trace):
        order = np.lexsort((-lane.durations, lane.starts))
        tops: list[_Span] = []
        open_spans: list[_Span] = []
        columns = zip(lane.starts[order].tolist(), lane.ends[order].tolist(), lane.name_of[order].tolist(), strict=True)
        for start, end, name in columns:
            while open_spans and start >= open_spans[-1].end:
                open_spans.pop()
            span = _Span(lane.names[name], start, min(end, open_spans[-1].end) if open_spans else end)
            (open_spans[-1].children if open_spans else tops).append(span)
            if len(open_spans) < _DEEPEST:
                open_spans.append(span)
        threads.append(tops)
    compiles = [sorted(_outermost(tops), key=lambda span: span.start) for tops in threads]
    roots = [span for spans in compiles for span in spans]
    if not roots:
        return None
    held = []
    for number, tops in enumerate(threads):
        waiting = [spans for other, spans in enumerate(compiles) if other != number and spans]
        held += [(around, top) for top in tops if (around := _shortest_around(top, waiting)) is not None]
    for around, top in held:  # only now, because the search needs the children of one thread
        around.children.append(top)
    inside = {id(span) for root in roots for span in _descendants(root)}
    kept = [root for root in roots if id(root) not in inside]
    starts = np.array([root.start for root in kept], np.int64)
    ends = np.array([root.end for root in kept], np.int64)
    compiling = Coverage.of(starts, ends)
    tree = PassTimes(
        name="compile",
        stage="compile",
        seconds=compiling.total * PS,
        self_seconds=0.0,
        count=len(kept),
        children=_merge(kept, "compile", 0),
    )
    modules = [
        ModuleCompiles(module=name, count=len(same), seconds=sum(span.end - span.start for span in same) * PS)
        for name, same in grouped((_module_of(span), span) for span in kept).items()
    ]
    devices = trace.op_lanes()
    return CompilePasses(
        tree=tree,
        modules=tuple(sorted(modules, key=lambda module: -module.seconds)),
        idle_seconds=(compiling - Coverage.over(devices)).total * PS if devices else None,
    )


def _module_of(compiled: _Span) -> str:
    """Return the module that most passes within a compile name; empty if none does."""
    found = (_MODULE_SUFFIX.search(span.name) for span in (compiled, *_descendants(compiled)))
    named = Counter(match[0][2:-1] for match in found if match)
    return max(named, key=lambda name: named[name], default="")


def _descendants(root: _Span) -> Iterator[_Span]:
    pending = [*root.children]
    while pending:
        span = pending.pop()
        yield span
        pending += span.children


def _within_compiles(trace: Trace) -> list[Lane]:
    """Return the intervals of each host thread that can belong to a compile, so that only these are examined one by
    one.

    These are the intervals in a compile of their own thread, and the outermost ones in a compile of any thread, with
    everything inside them: a trace with Python calls has millions of others.
    """
    lanes = [lane for lane in trace.threads if lane.device.endswith("host")]
    roots = [lane.select(lane.matching(_ROOT.search)) for lane in lanes]
    if not any(map(len, roots)):
        return []
    anywhere = Coverage.over(roots)
    selected = []
    for lane, compiles in zip(lanes, roots, strict=True):
        order = nesting_order(lane.starts, lane.durations)
        begin, end = lane.starts[order], lane.ends[order]
        outermost = np.ones(len(order), np.bool_)
        outermost[1:] = begin[1:] >= np.maximum.accumulate(end)[:-1]
        tops = anywhere.holding(begin[outermost], end[outermost])
        kept = tops[np.cumsum(outermost) - 1] | Coverage.over([compiles]).holding(begin, end)
        selected.append(lane.select(order[kept]))
    return selected


def _outermost(spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the spans in these trees that are compiles, without compiles nested in them."""
    pending = list(spans)
    while pending:
        span = pending.pop()
        if _ROOT.search(span.name):
            yield span
        else:
            pending += span.children


def _shortest_around(top: _Span, threads: Sequence[list[_Span]]) -> _Span | None:
    """Return the shortest span of those threads that is longer than `top` and holds it; never one without a
    duration."""
    best: _Span | None = None
    if top.end <= top.start:
        return None
    for tops in threads:
        level = tops
        while level:
            at = bisect_right(level, top.start, key=lambda span: span.start) - 1
            if at < 0 or level[at].end < top.end:
                break
            around, level = level[at], level[at].children
            length = around.end - around.start
            if length > top.end - top.start and (best is None or length < best.end - best.start):
                best = around
    return best


def _merge(spans: Sequence[_Span], around: str, depth: int) -> tuple[PassTimes, ...]:
    """Return nodes for these siblings: spans of one name form one node, and their children are siblings in turn."""
    groups = grouped((_MODULE_SUFFIX.sub("", span.name), span) for span in spans)
    nodes = []
    for name, same in groups.items():
        stage = stage_of(name, around)
        children = [child for span in same for child in span.children]
        nodes.append(
            PassTimes(
                name=name,
                stage=stage,
                seconds=sum(span.end - span.start for span in same) * PS,
                self_seconds=sum(map(_self_time, same)) * PS,
                count=len(same),
                children=_merge(children, stage if stage != OTHER else around, depth + 1) if depth < _DEEPEST else (),
            )
        )
    return tuple(sorted(nodes, key=lambda node: -node.seconds))


def _self_time(span: _Span) -> int:
    """Return the time that no child covers, of this thread or another."""
    covered, reached = 0, span.start
    for child in sorted(span.children, key=lambda inner: inner.start):
        begin, end = max(child.start, reached), min(child.end, span.end)
        if end > begin:
            covered += end - begin
            reached = end
    return span.end - span.start - covered


OTHER = "other"

_TABLE = (
    ("compile", r"backend_compile"),
    ("HLO passes", r"^HLO passes|RunHloPasses|HloPass"),
    ("cache", r"compilation_?cache|cache (read|write)|get_executable_and_time"),
    ("autotuning", r"autotun|gemm-algorithm-picker|conv-algorithm-picker|Profile(Executable)?Config"),
    ("PTX", r"ptx|cubin|nvlink|nvjitlink|CompileSingleModule|CompileToTargetBinary|hsaco|amdgcn|AMDGPUCompiler"),
    ("partitioning", r"spmd|shardy|sharding|partition(er|ing)|propagation"),
    ("verification", r"RunInvariantCheckers|verif(y|ier)|invariant"),
    ("layout", r"layout[-_ ]?(assignment|normalization|canonicalization)|hlo normalization|move_copy_to_users"),
    (
        "fusion",
        r"\bfusion\b|fusion[-_](wrapper|dispatch)|multi_output_fusion|priority|horizontal-(loop|input)|FuseElem",
    ),
    ("scheduling", r"schedul|latency.?hiding|memory.?space.?assign|rematerial|copy-insertion|async"),
    ("buffer assignment", r"buffer.?assign|AssignBuffers|dataflow|alias.?analysis|heap"),
    ("LLVM", r"llvm|\bIrCompiler|JitCompiler|SplitModule|CloneAsThreadSafe|OptimizeModule|TaskDispatcher|Orc"),
    ("codegen", r"codegen|ThunkEmitter|FusionCompiler|IrEmitter|Emit[A-Z]|CompileModuleToLlvmIr|LowerTo|triton"),
    ("MLIR", r"mlir::|\w+Pass$|StableHLO|MHLO|MlirToXla|ConvertMlir|Legalize[A-Z]"),
    ("HLO passes", r"simplif|algsimp|decompos|expander|rewriter|dce|cse|constant_folding|inliner|normali[sz]ation"),
    ("HLO passes", r"canonicali[sz]|optimi[sz]ation|legali[sz]"),
    ("loading", r"Load(ed)?(Executable|Serialized|Module)?\b|Finali[sz]e|serialize|ResolveSymbols"),
    ("compile", r"Compile\b|CompileAndLoad|RunBackend|CompileCpuExecutable|XlaCompile"),
)
"""Stages, and a pattern for the names of each; the first match counts."""
_PATTERNS = tuple((stage, re.compile(pattern, re.IGNORECASE)) for stage, pattern in _TABLE)
STAGES = (*dict.fromkeys(stage for stage, _ in _TABLE), OTHER)

_PIPELINES = ("HLO passes", "partitioning", "fusion", "layout", "scheduling")
_HLO_PASS = re.compile(r"[a-z0-9_.-]+$")
"""Form of an HLO pass's name: `tuple-simplifier`, `constant_folding`."""


def stage_of(name: str, around: str = OTHER) -> str:
    """Return the stage of a phase called `name` that runs inside a phase of stage `around`."""
    for stage, pattern in _PATTERNS:
        if pattern.search(name):
            return stage
    if around in _PIPELINES or around in ("MLIR", "codegen", "LLVM", "PTX", "autotuning"):
        return around
    return "HLO passes" if around == "compile" and _HLO_PASS.match(name) and "-" in name else OTHER
