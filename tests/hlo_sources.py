"""All that HLO can be opened from, each with the module `jit_g` and its one kernel `exp`; and what holds none."""

import gzip
import sys
from pathlib import Path

from jaxprof import events as e
from jaxprof.hlo.text import proto
from jaxprof.session import LogWriter
from report import sessions

sys.path.append(str(Path(__file__).parent / "trace"))  # no package, because the standard library has one of its name
from made_traces import gpu_planes, op
from xplane_wire import Event, Line, Plane, nested, number, space_bytes


def write_kernels(path: Path, count: int = 1, *, kernel: str = "k", op: str = "dot", module: str = "f") -> Path:
    """Writes a profile in which a GPU's stream ran one kernel `count` times, for 4 µs every 10 µs."""
    stats = {"hlo_op": op, "hlo_module": module}
    events = [Event(kernel, 10_000_000 * number, 4_000_000, stats) for number in range(count)]
    raw = space_bytes([Plane("/device:GPU:0", [Line("Stream #7(Kernel)", events)])])
    path.write_bytes(gzip.compress(raw, 1) if path.suffix == ".gz" else raw)
    return path


def hlo_proto() -> bytes:
    """A program of one `exponential` over 8 float32, as HloProto (hlo.proto, xla_data.proto)."""
    shape = number(2, 11) + nested(3, b"\x08") + nested(5, nested(1, b"\x00"))
    x = nested(1, "x") + nested(2, "parameter") + nested(3, shape) + number(9, 0) + number(35, 1)
    result = nested(1, "exp") + nested(2, "exponential") + nested(3, shape) + number(35, 2) + nested(36, b"\x01")
    main = nested(1, "main") + nested(2, x) + nested(2, result) + number(5, 1) + number(6, 2)
    return nested(1, nested(1, "jit_g") + nested(2, "main") + nested(3, main) + number(5, 9) + number(6, 1))


PROTO = hlo_proto()
TEXT = proto.text(PROTO).replace("HloModule jit_g", "HloModule jit_g, is_scheduled=true")
BEFORE = proto.text(PROTO).replace("%exp ", "%early ").replace("ROOT exp ", "ROOT early ")
DUMPED = "module_0001.jit_g"


def _file(name, data):
    def make(folder):
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _folder(**files):
    def make(folder):
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return folder

    return make


def _session(**texts):
    def make(folder):
        path = folder / "s.jaxprof"
        writer = LogWriter(sessions.HEADER, path)
        writer.append(sessions.plan("r1", "jit", "jit", workload="g"))
        for name, text in texts.items():
            writer.append(e.TextRecorded(run="r1", name=name, text=text, bytes=len(text)))
        writer.append(e.RunFinished(run="r1", status="ok"))
        writer.close()
        return path

    return make


def _profile(name, *, hlo=True, is_folder=False):
    def make(folder):
        device, launches = gpu_planes()
        device.lines = [*device.lines, Line("Stream #9(Kernel)", [op("exp", 200, 5, module="jit_g", program=9)], id=9)]
        metadata = [Plane("/host:metadata", metadata={"jit_g(9)": {"Hlo Proto": PROTO}})] if hlo else []
        path = folder / "plugins" / "profile" / "run" / name if is_folder else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(space_bytes([device, launches, *metadata]))
        return folder if is_folder else path

    return make


def _packed(text):
    return gzip.compress(text.encode() if isinstance(text, str) else text, mtime=0)


FILES = {
    "text": _file("m.hlo", TEXT.encode()),
    "text of any name": _file("compiled", b"\n" + TEXT.encode()),
    "text in UTF-16": _file("m.txt", TEXT.encode("utf-16")),
    "text.gz": _file("m.hlo.gz", _packed(TEXT)),
    "text.gz of any name": _file("m.gz", _packed(TEXT)),
    "proto": _file("m.hlo.pb", PROTO),
    "proto of any name": _file("m.bin", PROTO),
    "proto.gz": _file("m.pb.gz", _packed(PROTO)),
}
FOLDERS = {
    "dump": _folder(
        **{
            f"{DUMPED}.before_optimizations.txt": BEFORE.encode(),
            f"{DUMPED}.sm_9.0a_gpu_after_optimizations.txt": TEXT.encode(),
            f"{DUMPED}.sm_9.0a_gpu_after_optimizations.hlo.pb": PROTO,
            f"{DUMPED}.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt": b"BufferAssignment:\n",
            f"{DUMPED}.ir-with-opt.ll": b"; ModuleID = 'jit_g'",
            "notes.txt": b"what I tried\n",
        }
    ),
    "dump.gz": _folder(
        **{
            f"{DUMPED}.before_optimizations.txt.gz": _packed(BEFORE),
            f"{DUMPED}.cpu_after_optimizations.txt.gz": _packed(TEXT),
        }
    ),
    "dump of protos": _folder(**{f"{DUMPED}.cpu_after_optimizations.hlo.pb": PROTO}),
    "folder of one .gz": _folder(**{"a.hlo.gz": _packed(TEXT)}),
    "folder of a text": _folder(**{"a.txt": TEXT.encode(), "notes.txt": b"what I tried\n"}),
    "folder of a proto": _folder(**{"a.pb": PROTO, "graph.pb": b"\x0a\x03abc"}),
}
SESSIONS = {
    "session": _session(jaxpr="{ lambda ; . let  in () }", hlo_before=BEFORE, hlo=TEXT),
    "profile": _profile("host.xplane.pb"),
    "profile of any name": _profile("host.bin"),
    "folder of a profile": _profile("host.xplane.pb", is_folder=True),
}
SOURCES = FILES | FOLDERS | SESSIONS
BOTH_STAGES = {"dump", "dump.gz", "session"}
"""Those that have the module before XLA's passes, too."""

WRONG = {
    "nothing": (lambda folder: folder / "nothing", "nothing"),
    "an empty file": (_file("m.hlo", b""), "the file is empty"),
    "an empty folder": (_folder(), "no HLO in the folder"),
    "a picture": (_file("m.hlo", b"\x89PNG\r\n"), "PNG picture"),
    "StableHLO": (_file("m.mlir", b"module @jit_g {\n}\n"), "StableHLO"),
    "a jaxpr": (_file("m.txt", b"{ lambda ; a:f32[8]. let b:f32[8] = exp a in (b,) }"), "a jaxpr"),
    "a broken .gz": (_file("m.hlo.gz", _packed(TEXT)[:-9]), "truncated"),
    "another proto": (_file("m.pb", b"\x0a\x05hello\x12\x04\x08\x01\x10\x02"), "not HLO"),
    "a session without a compiled run": (_session(), "has a compiled program"),
    "a profile without HLO": (_profile("host.xplane.pb", hlo=False), "holds no HLO"),
}
"""What holds no HLO, and what is said of it."""
