"""What a line calls, from its source and bytecode, and whether what a statement computes becomes an argument of the
work of its loop."""

import ast
import functools
import os
import queue
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import jax
import numpy
import pytest

from jaxprof.recorder.samples.call_text import (
    describe,
    is_foreign,
    look_up,
    maker_of,
    source_lines,
    spot_of,
    tree_of,
)
from jaxprof.recorder.samples.flow import feeds, has_other_work, is_all_work, is_between, span_of
from tables import rows


@pytest.mark.parametrize(
    ("segment", "text", "callee"),
    [
        ("float(loss)", "float()", ("float",)),
        ("loss.item()", "loss.item()", ("loss", "item")),
        ("step(params, batch)", "step", ("step",)),
        ("step(\n  params,\n)", "step", ("step",)),
        ("f(x).item()", ".item()", ()),
        ("x +  y", "x + y", ()),
        ('f"{x}"', "f-string", ()),
        ("await go(x)", "go", ("go",)),
        ("x", "", ()),
        ("for x in", "", ()),
        (" + ".join(["operand"] * 30), "operand + operand + operand + operand + operand…", ()),
    ],
)
def test_a_piece_of_source_in_short(segment, text, callee):
    assert describe(segment) == (text, callee)


def _caller():
    return sys._getframe(1)


class _Thing:
    def __next__(self):
        frame = sys._getframe(1)
        self.spot = spot_of(frame.f_code, frame.f_lasti)
        return frame

    def __iter__(self):
        return self


def test_the_current_instruction_of_a_frame():
    ä = _caller  # a name of two bytes: columns count bytes
    frame = ä()
    spot = spot_of(frame.f_code, frame.f_lasti)
    assert spot.line > 0  # the frame has gone on; its instruction is this very call
    thing = _Thing()
    for _ in thing:
        break
    assert thing.spot.operation == "FOR_ITER"
    next(thing)
    assert thing.spot.callee == ("next",)
    assert thing.spot.is_call


def test_names_are_looked_up_without_running_anything():
    class Trap:
        """A proxy, whose class is an attribute like any other."""

        def __getattribute__(self, name):
            raise AssertionError("an object's attribute was asked for")

    class LazyModule(ModuleType):
        def __getattribute__(self, name):
            raise AssertionError("importlib's lazy module is imported at its first attribute")

    def function():
        text = 1
        text.bit_count()

    code = function.__code__
    names = {"trap": Trap(), "lazy": LazyModule("lazy"), "sys": sys, "step": len}
    assert look_up(("trap", "x"), code, names) is None
    assert not is_foreign(("trap", "x"), code, names)
    assert not is_foreign(("trap",), code, names)
    assert look_up(("lazy", "x"), code, names) is None
    assert look_up(("sys", "getsizeof"), code, names) is sys.getsizeof
    assert look_up(("step",), code, names) is len
    assert look_up(("float",), code, names) is float
    assert look_up(("text",), code, {"text": 1}) is None  # a local of that function
    assert look_up(("nobody",), code, names) is None


def test_compiled_functions_are_told_from_those_of_jax():
    assert maker_of(jax.jit(lambda x: x)) == "user"
    assert maker_of(jax.numpy.sin) == "jax"
    assert maker_of(jax.numpy.ones(3)) == ""
    assert maker_of(len) == ""


@pytest.mark.parametrize(
    ("calls", "foreign"),
    [
        (("time.sleep", "batches.get", "rng.normal", "np.dot", "np.exp", "len", "dict"), True),
        (("step", "part", "model.step", "unknown", "unknown.step", "jax.jit"), False),
    ],
    ids=["none of jax's", "may be compiled"],
)
def test_calls_beside_a_compiled_one(calls, foreign):
    jitted, code = jax.jit(lambda x: x), compile("", "x.py", "exec")
    names = {
        "time": time, "batches": queue.Queue(), "rng": numpy.random.default_rng(0), "np": numpy,
        "step": jitted, "part": functools.partial(jitted), "model": SimpleNamespace(step=print),
    }  # fmt: skip
    assert {call: is_foreign(tuple(call.split(".")), code, names) for call in calls} == dict.fromkeys(calls, foreign)


def test_two_threads_make_no_trees_at_the_same_time(monkeypatch):
    """Python 3.11 would raise SystemError in one of them, which may be the program's."""
    inside = []
    most = []
    parse = ast.parse

    def slow(*arguments, **more):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return parse(*arguments, **more)

    monkeypatch.setattr(ast, "parse", slow)
    threads = [threading.Thread(target=describe, args=(f"step(x{number})",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


TRAINER = """
import numpy as np
class Trainer:
    def book(self, number):
        self.history.append(number)
        self._count()

    def _count(self):
        self.count += 1

    def load(self):
        self._read()

    def _read(this):
        this.batch = read()

    def run(self):
        for number in range(100):
            {}

trainer = Trainer()
for number in range(100):
    {}
"""


def program(folder, in_method, in_loop):
    """The file with these statements in its two loops, as old as a program that runs, and its tree."""
    tree_of.cache_clear()
    source_lines.cache_clear()
    path = folder / "program.py"
    path.write_text(TRAINER.format(in_method, in_loop))
    os.utime(path, (0, 0))
    return str(path), ast.parse(path.read_text())


def span(tree, text, after):
    """The span of the first call that reads so, behind a line."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node) == text]
    found = next(node for node in calls if node.lineno > after)
    return found.lineno, found.end_lineno or 0, found.col_offset, found.end_col_offset or 0


@pytest.mark.parametrize(
    ("body", "alone"),
    rows("""
        state = step(state)                       yes
        step(state, 1, rate=number)               yes
        a, b = step((a, b))                       yes
        y = step(x); y.block_until_ready()        yes
        y = step(x); jax.block_until_ready(y)     yes
        state = step(state) + 1                   no
        state = step(load())                      no
        state = step(rows[number])                no
        state = step(self.state)                  no
        rows[number] = step(state)                no
        state = step(state); number               no
        state = step(state); log(number)          no
        y = step(x); read().block_until_ready()   no
    """),
)
def test_loop_that_is_all_work(tmp_path, body, alone):
    file, tree = program(tmp_path, "pass", body)
    work = [span_of(node) for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "step"]
    assert is_all_work(file, work[0], work) is (alone == "yes")
    assert not is_all_work(file, work[0], [])


def test_loop_over_a_generator_is_not_all_work(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("for batch in batches():\n    state = step(state, batch)\nstep(state)\n")
    os.utime(path, (0, 0))
    work = [span_of(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert not any(is_all_work(str(path), call, work) for call in work)


@pytest.mark.parametrize(
    ("body", "call", "work", "feeding"),
    rows("""
        trainer.w = step(trainer.w); trainer.book(number)  trainer.book(number)  step(trainer.w)       no
        trainer.load(); w = step(trainer.batch)            trainer.load()        step(trainer.batch)   yes
        trainer.book(number); step(trainer)                trainer.book(number)  step(trainer)         yes
        queue.fill(); step(queue.batch)                    queue.fill()          step(queue.batch)     yes
        state = load(); step(state.batch)                  load()                step(state.batch)     yes
        state.other = load(); step(state.batch)            load()                step(state.batch)     no
        rows.append(read()); step(rows)                    read()                step(rows)            yes
        batch = trainer.next(); trainer.train(batch)       trainer.next()        trainer.train(batch)  yes
        trainer.train(w); trainer.book(number)             trainer.book(number)  trainer.train(w)      no
        self.w = step(self.w); self.book(1)                self.book(1)          step(self.w)          no
        self.load(); step(self.batch)                      self.load()           step(self.batch)      yes
        a = step(env.x); env.move(float(a))                env.move(float(a))    step(env.x)           no
        a = step(env.x); env.move(float(b))                env.move(float(b))    step(env.x)           yes
        g = step(w); h = get(g); k = clip(h); w = put(k)   clip(h)               step(w)               no
        g = step(w); h = get(g); k = clip(b); w = put(k)   clip(b)               step(w)               yes
    """),
)
def test_what_a_method_changes_feeds_the_work_that_takes_it(tmp_path, body, call, work, feeding):
    """Also where both are in the loop of a method of that object."""
    inside = body.startswith("self")
    file, tree = program(tmp_path, *((body, "pass") if inside else ("pass", body)))
    after = 15 if inside else 20
    assert feeds(file, span(tree, call, after), [span(tree, work, after)]) == (feeding == "yes")


@pytest.mark.parametrize(
    ("body", "call", "between"),
    rows("""
        g = step(w); h = get(g); k = clip(h); w = put(k)  clip(h)     yes
        g = step(w); h = get(g); k = clip(h); w = put(k)  get(g)      yes
        g = step(w); h = get(g); k = clip(b); w = put(k)  clip(b)     no
        g = step(w); h = get(g); write(h)                 get(g)      no
        w = step(w); np.save(file, w)                     np.save(file, w)  no
        a = int(step(w)); w = move(a)                     int(step(w))      yes
        a = int(step(w)); write(a)                        int(step(w))      no
    """),
)
def test_what_is_made_of_results_for_the_next_call_is_between(tmp_path, body, call, between):
    file, tree = program(tmp_path, "pass", body)
    assert is_between(file, span(tree, call, 20), [span(tree, "step(w)", 20)]) == (between == "yes")


@pytest.mark.parametrize(
    ("body", "shared"),
    rows("""
        w = step(w); total = sum(table); log.append(float(w))  yes
        w, total = step(w), sum(table)                         yes
        w = step(w); rows = [x * x for x in table]             yes
        w = step(w); log.append(float(w)); number += 1         no
        w = step(w); w.block_until_ready()                     no
        log.append(float(step(w)))                             no
        w = step(w, next(batches))                             no
    """),
)
def test_a_line_is_shared_by_work_with_jax_and_other_computing(tmp_path, body, shared):
    file, tree = program(tmp_path, "pass", body)
    step = next(
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "step"
    )
    assert has_other_work(file, step.lineno, [span_of(step)]) == (shared == "yes")
