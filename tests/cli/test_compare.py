"""`jaxprof compare` of sessions, and of programs that are not run here."""

from cli.compiled import session
from folding import written
from jaxprof import events as e
from report import sessions


def test_programs_for_devices_that_are_not_here(call, known):
    devices = ("h100", "tpu-v5e")
    known["old.py:step"] = session(devices=devices)
    known["new.py:step"] = session(sessions.HLO.replace("f32", "bf16"), devices=devices)
    known["other.py:step"] = session(devices=("a100",))
    words = ("compare", "--for", "h100,tpu-v5e", "old.py:step", "new.py:step", "--format", "json")
    runs = [one["runs"][0] for one in call(*words).data["comparisons"]]
    assert [(run["after"]["device"], run["differs"]) for run in runs] == [("h100", True), ("tpu-v5e", True)]
    assert call("compare", "--for", "h100", "old.py:step", "other.py:step").code == 2


def test_the_only_function_of_each_session_is_the_same_function(call, tmp_path):
    def keep(*functions):
        events = []
        for run, function in zip(("r2", "r3"), functions, strict=False):
            spec = e.RunSpec(workload=function, variant="jit", how="jit", device="cpu:0", target=f"/x/{function}")
            events += [e.RunPlanned(run=run, spec=spec), e.RunFinished(run=run, status="ok")]
        return written(tmp_path / f"{len(functions)}{functions[0]}.jaxprof", events, sessions.HEADER)

    old = keep("old.py:step")
    assert "old.py:step jit cpu:0 → new.py:step jit cpu:0" in call("compare", old, keep("new.py:step")).out
    unpaired = " ".join(call("compare", old, keep("new.py:step", "new.py:f")).out.split())
    assert "only in the first session: r2 old.py:step" in unpaired
    assert "jaxprof compare FIRST:r2 SECOND:r2" in unpaired
