"""Where the modules for tests come from: programs compiled by JAX here, and real files where the machine has them. Two
readings of one module compared: ours and jaxlib's, the text and the proto."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from jaxprof.hlo import files
from jaxprof.hlo.kernels.kernels import stream
from jaxprof.hlo.kernels.notices import problems
from jaxprof.hlo.text.parse import modules

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
COMPILED_BY_H100 = HERE / "h100.hlo"
"""Modules of the catalogue, as jax 0.11.2 with CUDA 13 compiled them on 2026-11-27."""
REAL_FILES = REPOSITORY.parent / "shared" / "data" / "hlo"
_LARGEST_BYTES = 1 << 40 if os.environ.get("JAXPROF_LONG") else 1 << 20


def real_files(pattern="*"):
    """The real files that this machine has; those of megabytes only with JAXPROF_LONG=1."""
    return [path for path in sorted(REAL_FILES.glob(pattern)) if path.stat().st_size < _LARGEST_BYTES]


def _environment():
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}


@functools.cache
def compiled_programs(folder):
    """The folder, with the HLO of `programs.py` in it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, str(HERE / "programs.py"), str(folder)], check=True, env=_environment(), capture_output=True
    )
    return folder


def peer_has_reader():
    done = subprocess.run([sys.executable, "-c", "from jaxlib import _hlo"], capture_output=True, check=False)
    return done.returncode == 0


def peer_reads(paths):
    """What jaxlib's reader makes of each file; one that it refuses has `error`, one that ends its process `aborted`."""
    remaining = list(paths)
    while remaining:
        done = subprocess.run(
            [sys.executable, str(HERE / "peer.py"), *map(str, remaining)],
            env=_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not lines:
            raise AssertionError(f"the peer did not start: {done.stderr[-2000:]}")
        answers = lines[1::2]
        yield from zip(remaining, answers, strict=False)
        if len(lines) % 2:
            yield remaining[len(answers)], {"aborted": True}
        remaining = remaining[(len(lines) + 1) // 2 :]


def as_the_peer_tells(module):
    found = {}
    for computation in module.computations.values():
        place = {instruction.name: instruction.position for instruction in reversed(computation.instructions)}
        found[computation.name] = [
            [instruction.opcode, [place[name] for name in instruction.operands], list(instruction.called)]
            for instruction in computation.instructions
        ]
    return found


NOT_READ = {"an element of a tuple (name#0)", "operands added after"}
"""How what jaxlib's reader understands, from 0.12 on, and ours says that it does not, begins."""
INCOMPLETE = ("_Dot_Incomplete_Chain", "_FusionStart_Incomplete_Chain")
"""Starts of asynchronous operations without operands, and without what would bring them: jaxlib 0.12 makes parameters
up from what the operation wants. They stand in tests of XLA's reader only; a text that was printed has the operands."""


def assert_agreement(paths):
    """How many of the files jaxlib reads, all of them the same as we do, or said not to be."""
    compared = 0
    for path, answer in peer_reads(paths):
        if "computations" in answer:
            (module,) = modules(path.read_text())
            if path.stem.endswith(INCOMPLETE):
                continue
            if problems(module):
                assert all(problem.message.startswith(tuple(NOT_READ)) for problem in problems(module)), path.name
                continue
            assert as_the_peer_tells(module) == answer["computations"], path.name
            compared += 1
    return compared


def assert_proto_is_the_text(path):
    """`path` is a proto, and the text printed of the same module lies beside it."""
    (proto,), (text,) = modules(files.read_text(path)), modules(files.read_text(path.with_suffix(".txt")))
    assert problems(proto) == ()
    assert (proto.name, proto.is_scheduled, proto.aliases) == (text.name, text.is_scheduled, text.aliases)
    assert figures(proto) == figures(text), path.name
    assert [one.stack[:1] for one in proto.entry] == [one.stack[:1] for one in text.entry], path.name
    # What a text leaves out has no name there: from 0.12 on a proto calls it `async_computation`.
    named = [name for name, one in text.computations.items() if not one.is_synthetic]
    assert set(named) <= set(proto.computations)
    for name in named:
        for mine, theirs in zip(proto[name], text[name], strict=True):
            assert _written_opcode(mine) == _written_opcode(theirs), f"{path.name}: {theirs.text[:500]}"
            for what in ("name", "operands", "shape", "is_root", "parameter_number"):
                assert getattr(mine, what) == getattr(theirs, what), f"{path.name}: {theirs.text[:500]}"
            assert mine.metadata.op_name == theirs.metadata.op_name
            if "{...}" not in (mine.literal, theirs.literal):
                assert mine.literal == theirs.literal


def _written_opcode(instruction):
    """From jax 0.12 on a proto has an `async-start` of a collective where the text has `all-reduce-start`."""
    opcode, _, stage = instruction.opcode.rpartition("-")
    start = instruction if stage == "start" else instruction.operand(0)
    wrapped = start.wrapped_opcode if opcode == "async" and start is not None else ""
    return f"{wrapped or opcode}-{stage}" if opcode else instruction.opcode


def figures(module):
    """What is counted of each kernel, read anew."""
    return [
        (k.name, k.kind, k.flops, k.transcendentals, k.bytes_read, k.bytes_written, k.instructions, k.dtype, k.target,
         k.precision, k.estimated, k.operand_bytes)
        for k in stream(module)
    ]  # fmt: skip
