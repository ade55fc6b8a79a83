"""Which stage of a compile a phase or pass of XLA belongs to: a table of names, for CPU, GPU and TPU compilers.

Names differ between versions, and new ones come: what the table does not know takes the stage of what it runs in (a
pass of a known pipeline), or is `other`.
"""

from __future__ import annotations

import re
from typing import Final

OTHER: Final = "other"

_TABLE: Final = (
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
"""Stage, and what its names look like; the first that fits."""
_PATTERNS: Final = tuple((stage, re.compile(pattern, re.IGNORECASE)) for stage, pattern in _TABLE)
STAGES: Final = (*dict.fromkeys(stage for stage, _ in _TABLE), OTHER)

_PIPELINES: Final = ("HLO passes", "partitioning", "fusion", "layout", "scheduling")
_HLO_PASS = re.compile(r"[a-z0-9_.-]+$")
"""How an HLO pass names itself: `tuple-simplifier`, `constant_folding`."""


def stage_of(name: str, around: str = OTHER) -> str:
    """The stage of a phase called `name` that runs in one of stage `around`."""
    for stage, pattern in _PATTERNS:
        if pattern.search(name):
            return stage
    if around in _PIPELINES or around in ("MLIR", "codegen", "LLVM", "PTX", "autotuning"):
        return around
    return "HLO passes" if around == "compile" and _HLO_PASS.match(name) and "-" in name else OTHER
