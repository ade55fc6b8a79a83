"""An HLO module as data, with the keys that `docs/json.md` promises for `jaxprof hlo FILE --format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.hlo.analysis import barriers, findings, kernels, platform_of
from jaxprof.report.kernels import kernel_json

if TYPE_CHECKING:
    from jaxprof.hlo.instruction import Instruction
    from jaxprof.hlo.model import Module


def module_json(module: Module) -> dict[str, Any]:
    """The module's computations with their instructions, its kernels, and what of it could not be read."""
    entry = module.entry
    return {
        "module": module.name,
        "computations": [
            {
                "name": computation.name,
                "entry": computation is entry,
                "instructions": [_instruction(instruction) for instruction in computation.instructions],
            }
            for computation in module.computations.values()
        ],
        "platform": platform_of(module) or None,
        "kernels": [kernel_json(kernel) for kernel in kernels(module)],
        "barriers": [
            {
                "producer": one.producer,
                "consumer": one.consumer,
                "reason": one.reason,
                "words": one.words,
                "bytes": one.bytes,
            }
            for one in barriers(module)
        ],
        "findings": [
            {
                "code": one.code,
                "message": one.message,
                "advice": one.advice,
                "where": list(one.where),
                "bytes": one.bytes,
            }
            for one in findings(module)
        ],
        "problems": [{"line": problem.line, "message": problem.message} for problem in module.problems],
    }


def _instruction(instruction: Instruction) -> dict[str, Any]:
    stack = instruction.stack
    return {
        "name": instruction.name,
        "opcode": instruction.opcode,
        "shape": str(instruction.shape),
        "operands": list(instruction.operands),
        "called": list(instruction.called),
        "op_name": instruction.metadata.op_name or None,
        "source": {"file": stack[0].file, "line": stack[0].line} if stack else None,
    }
