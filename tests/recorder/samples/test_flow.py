"""Whether what a statement computes becomes an argument of the work of its loop."""

import ast
import os

import pytest

from jaxprof.recorder.samples.call_text import parsed, source_lines
from jaxprof.recorder.samples.flow import feeds
from tables import rows

TRAINER = """
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
    parsed.cache_clear()
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
    """),
)
def test_what_a_method_changes_feeds_the_work_that_takes_it(tmp_path, body, call, work, feeding):
    """Also where both are in the loop of a method of that object."""
    inside = body.startswith("self")
    file, tree = program(tmp_path, *((body, "pass") if inside else ("pass", body)))
    after = 14 if inside else 19
    assert feeds(file, span(tree, call, after), [span(tree, work, after)]) == (feeding == "yes")
