"""Engines that are not the engine: small scripts that behave in one way, well or badly, on the real pipes."""

PREAMBLE = """
import json, os, signal, sys, time
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
events = os.fdopen(int(arguments["--events-fd"]), "w", buffering=1)
control = os.fdopen(int(arguments["--control-fd"]), "r", buffering=1)
request = json.loads(control.readline())
def say(type, **fields):
    fields.setdefault("run", request.get("run", ""))
    events.write(json.dumps({"type": type, "monotonic_seconds": time.monotonic(), **fields}) + "\\n")
"""
SAMPLES = 'say("samples_taken", series="run", seconds=[1e-3] * 6, calls_per_sample=1)\n'
FINISHED = 'say("run_finished", status="ok")\ncontrol.readline()\n'

GOOD = f"""{PREAMBLE}
say("phase_started", phase="compile")
say("phase_ended", phase="compile", seconds=0.25)
print("hello from the child", flush=True)
print("a word on stderr", file=sys.stderr, flush=True)
{SAMPLES}
from jaxprof.events import encode
from jaxprof.events.runs import split
for part in split("hlo", "x" * 200_000, request.get("run", "")):
    events.write(encode(part).decode() + "\\n")
{FINISHED}
"""
SLOW = f"""{PREAMBLE}
say("phase_started", phase="compile")
while True:
    time.sleep(60)
"""
DEAF = SLOW.replace('say("phase_s', 'signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay("phase_s')
OBEDIENT = f"""{PREAMBLE}
say("phase_started", phase="run")
assert json.loads(control.readline())["request"] == "CancelRequest"
say("run_finished", status="cancelled", error="cancelled")
"""
GARBAGE = f"""{PREAMBLE}
os.write(events.fileno(), b"\\xff\\xfe not json\\n{{\\"type\\":\\"hologram\\"}}\\n")
say("trust_reported", kind="run", rows=[{{"code": 7}}, {{"code": "file"}}])
{FINISHED}
"""
STUCK = f"""{PREAMBLE}
if request.get("spec", {{}}).get("max_seconds"):
    say("environment_read", python="3.11", numpy="2.0")
say("phase_started", phase="run")
import ctypes
ctypes.PyDLL(None).sleep(600)
"""
"""Native code that keeps the interpreter's lock: no thread of the process can run."""


def dies_of(number: str) -> str:
    """An engine that ends by a signal in the middle of its run, with a word on stderr."""
    return f"""{PREAMBLE}
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
say("phase_started", phase="run")
{SAMPLES}
print("last words", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.{number})
time.sleep(60)
"""


def captures_on_a_gpu(named_seconds: float, second: str = "") -> str:
    """An engine whose capture names kernels of so much of 10 ms; `second` is what it does in the second child."""
    return f"""{PREAMBLE}
named = {named_seconds!r}
def capture(kind, seconds):
    say("capture_taken", kind=kind, platform="gpu", calls=2, events=40)
    rows = [{{"name": "fusion.1", "module": "jit_f", "device": "gpu:0", "count": 2, "self_seconds": seconds}}]
    say("kernels_measured", kind=kind, calls=2, rows=rows if seconds else [],
        unattributed_seconds={{"gpu:0": max(0.0, 0.010 - seconds)}})
    say("trust_reported", kind=kind, rows=[{{"code": "file", "verdict": "good", "message": "", "advice": ""}}])
if request["attribution"]:
    assert os.environ["XLA_FLAGS"].split()[-1] == "--xla_gpu_enable_command_buffer="
    say("phase_ended", phase="compile", seconds=99.0)
    say("samples_taken", series="run", seconds=[99.0] * 6)
    {second or 'capture("attribution", 0.012)'}
else:
    {SAMPLES}
    capture("run", named)
{FINISHED}
"""
