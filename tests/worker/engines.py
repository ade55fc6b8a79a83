"""Engines that are not the engine: small scripts that behave in one way, well or badly, on the real pipes."""

from __future__ import annotations

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

GOOD = (
    PREAMBLE
    + """
say("phase_started", phase="compile")
say("phase_ended", phase="compile", seconds=0.25)
print("hello from the child", flush=True)
print("a word on stderr", file=sys.stderr, flush=True)
say("samples_taken", series="run", seconds=[1e-3] * 6, calls_per_sample=1)
say("text_recorded", name="hlo", text="x" * 200_000)
say("run_finished", status="ok")
control.readline()
"""
)

DEAF = (
    PREAMBLE
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say("phase_started", phase="compile")
while True:
    time.sleep(60)
"""
)

SLOW = (
    PREAMBLE
    + """
say("phase_started", phase="compile")
while True:
    time.sleep(60)
"""
)

OBEDIENT = (
    PREAMBLE
    + """
say("phase_started", phase="run")
assert json.loads(control.readline())["request"] == "cancel"
say("run_finished", status="cancelled", error="cancelled")
"""
)


def dies_of(number: str) -> str:
    """An engine that ends by a signal in the middle of its run, with a word on stderr."""
    return (
        PREAMBLE
        + f"""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
say("phase_started", phase="run")
say("samples_taken", series="run", seconds=[1e-3] * 6)
print("last words", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.{number})
time.sleep(60)
"""
    )


EXITS = (
    PREAMBLE
    + """
say("phase_started", phase="run")
os._exit(3)
"""
)

GRANDCHILD = (
    PREAMBLE
    + """
os.set_inheritable(events.fileno(), True)
if os.fork() == 0:
    os.setsid()
    time.sleep(20)
    os._exit(0)
say("samples_taken", series="run", seconds=[1e-3] * 6)
os._exit(0)
"""
)

GARBAGE = (
    PREAMBLE
    + """
os.write(events.fileno(), b"\\xff\\xfe not json\\n{\\"type\\":\\"hologram\\"}\\n")
say("run_finished", status="ok")
control.readline()
"""
)

ANSWERS = (
    PREAMBLE
    + """
say("answer", data={"seen": request["request"]})
control.readline()
"""
)

COMPLAINS = (
    PREAMBLE
    + """
say("answer", data=None, error="no such file", advice="look again")
control.readline()
"""
)
