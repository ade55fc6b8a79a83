"""The modules of the HLO screen, read part by part."""

import gc
import threading
from weakref import ref

from jaxprof.hlo import stages
from jaxprof.hlo.stages import ModuleStages
from jaxprof.tui.hlo import modules
from jaxprof.tui.hlo.modules import OpenedModule, first_of, open_in_thread
from tui.hlo_texts import HLO


def program(key, *stages):
    return ModuleStages(key, key, {stage: lambda: "" for stage in stages})


def test_the_run_in_view_comes_first_then_what_was_compiled():
    traced, compiled = program("r1", "jaxpr"), program("r2", "jaxpr", "hlo")
    both = {"r1": traced, "r2": compiled}
    for programs, run, first in (
        ({}, "r1", None),
        ({"r1": traced}, "", traced),
        (both, "", compiled),
        (both, "r1", traced),
    ):
        assert first_of(programs, run) is first


def test_large_module_is_not_collected_while_open(monkeypatch):
    gc.unfreeze()  # what the suite has put away
    over, failed = threading.Event(), list[Exception]()
    monkeypatch.setattr(modules, "FROZEN", len(HLO) - 1)
    opened = OpenedModule(ModuleStages("m", "m", {"hlo": lambda: HLO}))
    open_in_thread(opened, lambda _, part: over.set() if part == "over" else None, failed.append)
    assert over.wait(30)
    assert not failed
    opened.freeze()
    assert gc.get_freeze_count(), "what a full collection does not walk over"
    opened.close()
    assert not gc.get_freeze_count()
    module = ref(opened.module)
    opened = None
    stages.release()
    gc.collect()
    gc.freeze()
    assert module() is None
