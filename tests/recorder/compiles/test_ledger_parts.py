"""The parts of the ledger that hardly need jax: clocks, histories, words, rows that are put together. The walk over a
module that is bounded in time: it claims all operations only where it has counted all. Arguments taken apart: names
of leaves, and what tells two trees apart that JAX's own hash does not."""

import dataclasses
import enum
import functools
import gc
import sys
from types import SimpleNamespace
from typing import Any

import jax
import numpy
import pytest

from jaxprof import events as e
from jaxprof.analysis.programs.sentences import compile_reason
from jaxprof.recorder import frame_owner as places
from jaxprof.recorder.compiles import module_size, monitoring, rows
from jaxprof.recorder.compiles.arguments import Leaf, LeafReader, TreeReader, static_text
from jaxprof.recorder.compiles.functions import Identities, code_of, name_matches, wrapper_chain, wraps
from jaxprof.recorder.compiles.ledger import ROWS_A_SECOND, Ledger
from jaxprof.recorder.compiles.reasons import (
    LEAVES_A_FUNCTION,
    SIGNATURES_A_FUNCTION,
    FunctionKey,
    History,
    explain,
    nearest,
)
from jaxprof.recorder.compiles.rows import ExclusiveClock, OpenStage, ThreadStages
from jaxprof.recorder.compiles.signature import Signature

HERE = e.SourceLocation("/home/u/train.py", 88, "main")
THERE = e.SourceLocation("/home/u/train.py", 80)


def signature(*leaves, **values):
    names = tuple("xyz"[: len(leaves)]) if len(leaves) <= 3 else tuple(map(str, range(len(leaves))))
    return Signature(**{"function": 1, "names": names, "leaves": leaves, **values})


def vector(size, dtype="f32", **values):
    return Leaf((size,), dtype, **values)


def words_of(explanation, **row):
    """What the reader makes of what the recorder sends."""
    return compile_reason(e.Compiled(function="f", **row, **explanation))


def test_the_clock_gives_nested_time_to_the_inner_stage():
    clock = ExclusiveClock()
    clock.switch("trace", 10.0)
    clock.switch("compile", 11.0)
    clock.switch("trace", 14.0)
    assert clock.read(14.5) == {"trace": 1.5, "lower": 0.0, "compile": 3.0}
    clock.switch("", 15.0)
    assert clock.read(99.0) == {"trace": 2.0, "lower": 0.0, "compile": 3.0}


def test_an_unended_stage_closes_with_its_outer_one():
    thread = ThreadStages("", True)
    outer, lost = (OpenStage("trace", name, 0.0, None, 0) for name in ("outer", "lost"))
    thread.open.extend([outer, lost])
    assert thread.close("trace", "unheard of") is None
    assert thread.close("trace", "outer") is outer
    assert thread.open == []


def test_shardings_that_read_the_same_are_told_apart():
    before, now = (signature(vector(8, sharding="P('d') over 4 devices", placed=placed)) for placed in (1, 2))
    said = words_of(explain(now, before))
    assert said == "sharding of x: P('d') over 4 devices → another arrangement of P('d') over 4 devices"


def test_the_history_of_a_function_is_bounded():
    history, key = History(), FunctionKey("f")
    for size in range(SIGNATURES_A_FUNCTION + 10):
        history.add(key, signature(vector(size)), HERE)
    kept = list(history.earlier(key, signature(vector(5000))))
    assert len(kept) == SIGNATURES_A_FUNCTION
    assert kept[0].leaves[0].shape == (SIGNATURES_A_FUNCTION + 9,)
    large = tuple(vector(size) for size in range(LEAVES_A_FUNCTION))
    history.add(key, Signature(leaves=large), HERE)
    assert len(list(history.earlier(key, Signature()))) == 1


def test_an_object_at_the_address_of_another_is_another():
    class Thing:
        pass

    identities = Identities()
    first = Thing()
    number = identities.of(first)
    assert identities.of(first) == number
    del first
    gc.collect()
    assert all(identities.of(Thing()) != number for _ in range(20))


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    width: int = dataclasses.field(metadata={"static": True})


class Colour(enum.Enum):
    RED = 1


class Loud:
    def __repr__(self):
        raise AssertionError("the repr of the user's object was asked for")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("train", "'train'"),
        ((1, "a"), "(1, 'a')"),
        ((1,), "(1,)"),
        ([1.5, None], "[1.5, None]"),
        ({"k": Loud()}, "{'k': Loud}"),
        (Colour.RED, "Colour.RED"),
        (Loud(), "Loud"),
        (Layer(1.5, 3), "Layer(weight=1.5, width=3)"),
        (int, "int"),
        ("x" * 500, "'" + "x" * 118 + "…"),
        (tuple(range(50)), "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …)"),
    ],
)
def test_static_values_are_told_without_their_repr(value, text):
    assert static_text(value) == text


def test_files_have_owners():
    assert places.file_kind("/home/u/train.py") == places.USER
    assert places.file_kind(pytest.__file__) == places.LIBRARY
    assert places.file_kind(functools.__file__) == places.STDLIB
    assert places.file_kind(rows.__file__) == places.OWN
    assert places.file_kind("<frozen importlib._bootstrap>") == places.STDLIB


@pytest.mark.parametrize(
    ("name", "module", "kind"),
    [
        ("<stdin>", None, places.USER),
        ("<ipython-input-3-a1>", "notebook", places.USER),
        ("<string>", "__main__", places.USER),
        ("<string>", "namedtuple_Point", places.STDLIB),
        ("<cell 2>", "__main__", places.USER),
        ("<python-input-0>", "__main__", places.USER),
        ("<cell 2>", "library", places.STDLIB),
        ("<@beartype(__main__.step) at 0x7f>", "__main__", places.STDLIB),
        ("<attrs generated init __main__.Point>", "__main__", places.STDLIB),
        ("<decorator-gen-12>", "__main__", places.STDLIB),
        ("<lambdifygenerated-1>", "__main__", places.STDLIB),
    ],
)
def test_a_cell_is_the_users_but_not_a_librarys_code_in_it(name, module, kind):
    names = {"sys": sys} | ({"__name__": module} if module else {})
    exec(compile("frame = sys._getframe()", name, "exec"), names)
    assert places.frame_kind(names["frame"]) == kind


def row(reason_code="shape", **values):
    return e.Compiled(**{"function": "f", "reason_code": reason_code, "compile_seconds": 0.5, **values})


def test_very_many_rows_are_put_together():
    told = []
    writer = rows.RowWriter(told.append)
    for _ in range(rows.ROWS_IN_FULL):
        writer.write(row())
    assert len(told) == rows.ROWS_IN_FULL
    for _ in range(10):
        writer.write(row())
    writer.write(row("dtype", trace_seconds=0.25))
    writer.flush()
    warning, shapes, dtypes = told[rows.ROWS_IN_FULL :]
    assert warning.code == "ledger_folded"
    assert (shapes.count, shapes.compile_seconds, shapes.trace_seconds) == (10, 5.0, None)
    assert (dtypes.count, dtypes.trace_seconds) == (1, 0.25)


def test_what_goes_wrong_inside_is_told_once_and_raises_nothing(monkeypatch):
    told = []
    ledger = Ledger(told.append)
    monkeypatch.setattr(monitoring, "_watchers", [ledger])
    monkeypatch.setattr(ledger, "cache_event", lambda what: 1 // 0)
    for _ in range(3):
        monitoring._on_event("/jax/compilation_cache/cache_hits")
    assert ledger.problems == 3
    (warning,) = told
    assert warning.code == "ledger_problem"
    assert "ZeroDivisionError" in warning.values["error"]
    mute = Ledger(lambda event: 1 // 0)
    mute.problem(ValueError("x"))
    assert mute.problems == 2, "it cannot even be told"


def compile_one(ledger, name):
    for stage in ("trace", "lower", "compile"):
        ledger.stage_began(stage, name, sys._getframe())
        ledger.stage_ended(stage, name)


def test_a_lock_held_by_a_signal_handler_ends_no_ledger():
    told = []
    ledger = Ledger(told.append)
    assert ledger._emitting.acquire(blocking=False)
    compile_one(ledger, "f")
    assert [event.function for event in told] == ["f"]


def test_only_few_compilations_are_explained_at_once():
    told = []
    ledger = Ledger(told.append)

    for number in range(3 * ROWS_A_SECOND):
        compile_one(ledger, f"f{number}")
    assert len(told) == ROWS_A_SECOND - 1, "the others wait"
    ledger.settle()
    assert [event.function for event in told] == [f"f{number}" for number in range(3 * ROWS_A_SECOND)]
    compile_one(ledger, "last")
    ledger.finish()
    assert told[-1].function == "last"


def test_without_jax_there_is_nothing_to_attach_to(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(RuntimeError, match="not imported"):
        Ledger(lambda event: None).attach()


def test_of_a_long_static_value_only_what_differs_is_told():
    """As of equinox, which hands a whole model's static half to jit."""
    parts = ["None"] * 20
    before, now = (
        f"(((step,), PyTreeDef), ({', '.join([*parts, middle, '<lambda>'])}))" for middle in ("relu", "tanh")
    )
    leaves = [Leaf(static=text) for text in (before, now)]
    old, new = (Signature(function=1, names=("static",), leaves=(leaf,)) for leaf in leaves)
    assert words_of(explain(new, old)) == "static argument static: …relu… → …tanh…"


class Sizes:
    """An object that is equal to another one of the same sizes."""

    def __init__(self, width, depth=2, table=None):
        self.width, self.depth, self.table = width, depth, table

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __hash__(self):
        return hash((self.width, self.depth, id(self.table)))


class Alone:
    def __init__(self, width):
        self.width = width


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (Sizes(8), Sizes(16), "cfg.width: 8 → 16"),
        (Sizes(8), Sizes(18, 3), "cfg: Sizes(width=8, depth=2, table=None) → Sizes(width=18, depth=3, table=None)"),
        (Sizes(8, table=Loud()), Sizes(8, table=Loud()), "cfg: another Sizes(width=8, depth=2, table=Loud), by its own "
         "__eq__"),
        (Alone(8), Alone(8), "cfg: Alone(width=8) → another Alone(width=8)"),
        (Alone(8), Alone(12), "cfg.width: 8 → 12"),
        (3, 4, "cfg: 3 → 4"),
    ],
)  # fmt: skip
def test_of_a_static_object_the_attribute_is_named_that_changed(before, now, changed):
    reader = LeafReader(Identities())
    old, new = (Signature(function=1, names=("cfg",), leaves=(reader.static(value, "cfg"),)) for value in (before, now))
    assert words_of(explain(new, old)) == f"static argument {changed}"


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (Layer(1.0, 3), Layer(1.0, 4), "model.width: 3 → 4"),
        (Layer(1.0, abs), Layer(1.0, len), "model.width: abs → len"),
        (Layer(1.0, Loud()), Layer(1.0, Loud()), "model.width: Loud → another Loud"),
    ],
)
def test_of_a_tree_the_static_field_is_named_that_changed(before, now, changed):
    reader = TreeReader()
    old, new = (
        Signature(function=1, names=("model.weight",), leaves=(Leaf(dtype="f32"),), structure=tree.digest,
                  statics=tuple(("model" + path, part) for path, part in tree.statics))
        for tree in map(reader.read, (before, now))
    )  # fmt: skip
    assert words_of(explain(new, old)) == f"static part of argument {changed}"


def test_no_attribute_of_the_users_objects_is_read():
    asked = []

    class Curious(type):
        def __getattr__(cls, name):
            asked.append(name)
            raise AttributeError(name)

    class Model(metaclass=Curious):
        def __call__(self, x):
            return x

        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    model = Model()
    code = code_of(model)
    assert code.co_name == "__call__"
    assert not name_matches(model, "model")
    assert not wraps(model, "model")
    assert wraps(model, "Model")
    assert asked == []


def operation(name, *inner, **attributes):
    """An operation as MLIR's Python has it, with one block that holds others."""
    held = [SimpleNamespace(operation=each) for each in inner]
    return SimpleNamespace(name=name, regions=[[held]] if held else [], attributes=attributes)


@pytest.mark.parametrize(
    ("target", "calls_python"), [("xla_ffi_python_cpu_callback", True), ("lapack_spotrf_ffi", False)]
)
def test_an_operation_that_calls_python_is_found(target, calls_python):
    call = operation("stablehlo.custom_call", call_target_name=target)
    main = operation("func.func", call, sym_name=SimpleNamespace(value="main"))
    assert module_size._walk(operation("builtin.module", main)).callbacks is calls_python


def test_random_bits_make_no_program_large():
    traced = jax.jit(lambda key: jax.random.normal(key, (8,)).sum() + jax.random.uniform(key, (9,))).trace(
        jax.random.key(0)
    )

    def operations(platform):
        module = traced.lower(lowering_platforms=(platform,)).compiler_ir().operation
        held = [module]
        for each in held:
            held += [inner.operation for region in each.regions for block in region.blocks for inner in block]
        return module_size._walk(module).operations, len(held)

    (cuda, all_of_cuda), (tpu, _), (cpu, _) = map(operations, ("cuda", "tpu", "cpu"))
    assert 0 < cuda == tpu <= cpu
    assert cuda < all_of_cuda / 2, "most of the operations are those of random bits"


def _layers(x, count):
    for _ in range(count):
        x = jax.numpy.sin(x) + 0.5
        x = jax.numpy.cos(x)
    return x


@pytest.mark.parametrize("count", [500, 100], ids=["large", "small"])
def test_lines_of_large_programs_are_those_of_the_helper(count, monkeypatch):
    monkeypatch.setattr(module_size, "_SAMPLE_SECONDS_AT_MOST", 10.0)
    module = jax.jit(lambda x: 2 * _layers(x, count)).lower(1.0).compiler_ir()
    made = module_size._walk(module.operation).made_by
    line = _layers.__code__.co_firstlineno + 2
    assert {each.file for each in made} == ({__file__} if count == 500 else set())
    shares = {(each.name, each.line): round(each.share, 1) for each in made if each.share > 0.1}
    assert shares == ({("sin", line): 0.3, ("add", line): 0.3, ("cos", line + 1): 0.3} if count == 500 else {})


def test_lines_of_small_programs_with_large_constants_are_read():
    table = numpy.arange(40_000.0, dtype="float32")
    made = module_size._walk(jax.jit(lambda x: (x * table).sum()).lower(1.0).compiler_ir().operation).made_by
    assert {each.name for each in made} >= {"mul", "reduce_sum"}


def test_checksum_ignores_constants():
    def checksum(function):
        return module_size._walk(jax.jit(function).lower(1.0).compiler_ir().operation).checksum

    assert checksum(lambda x: jax.numpy.sin(2.0 * x)) == checksum(lambda x: jax.numpy.sin(3.0 * x))
    assert checksum(lambda x: jax.numpy.sin(2.0 * x)) != checksum(lambda x: jax.numpy.cos(2.0 * x))


@pytest.mark.parametrize(("read_every", "counted"), [(2, 1), (1, None)], ids=["over in time", "cut off"])
def test_a_walk_that_is_cut_off_counts_nothing(monkeypatch, read_every, counted):
    monkeypatch.setattr(module_size, "_WALK_SECONDS_AT_MOST", -1.0)
    monkeypatch.setattr(module_size, "_CLOCK_READ_EVERY", read_every)
    assert module_size._walk(operation("builtin.module", operation("stablehlo.add"))).operations == counted


class Held:
    """A node whose other part has no hash."""

    def __init__(self, x, rest):
        self.x, self.rest = x, rest


jax.tree_util.register_pytree_node(Held, lambda held: ((held.x,), held.rest), lambda rest, x: Held(x[0], rest))


DIFFERENT = {
    "keys": ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}),
    "keys of a dict inside": ({"a": {"x": 1.0}, "b": 2.0}, {"a": {"y": 1.0}, "b": 2.0}),
    "static fields": (Layer(1.0, 3), Layer(1.0, 4)),
    "a part without a hash": (Held(1.0, {"k": [1]}), Held(1.0, {"k": [2]})),
    "containers": ((1.0, 2.0), [1.0, 2.0]),
    "nothing and a leaf": ((1.0, None), (1.0, 2.0)),
    "depth": (((1.0, 2.0),), (1.0, 2.0)),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_trees_are_told_apart(kind):
    reader = TreeReader()
    one, other = map(reader.read, DIFFERENT[kind])
    assert one.digest != other.digest
    assert reader.read(DIFFERENT[kind][0]).digest == one.digest


def test_the_nearest_signature_differs_least_then_is_newest():
    now = signature(vector(4), vector(4))
    far, near, nearer_in_time = (
        signature(vector(2), vector(2, "i32")),
        signature(vector(4), vector(3)),
        signature(vector(5), vector(4)),
    )
    assert nearest(now, [far, nearer_in_time, near]) is nearer_in_time
    assert nearest(now, [far, now]) is now
    assert nearest(now, []) is None


def test_the_most_telling_difference_names_the_reason():
    before = signature(vector(4), config=(("jax_enable_x64", "False"),))
    now = signature(vector(3), function=2, config=(("jax_enable_x64", "True"),))
    reason = explain(now, before, same_line=True)
    assert reason["reason_code"] == "new_function"
    assert words_of(reason, called_from=HERE, defined_at=THERE) == (
        "new function object each time: jit at train.py:88 (defined at train.py:80); "
        "shape of x: f32[4] → f32[3]; config jax_enable_x64: False → True"
    )


def test_what_was_not_seen_is_unknown():
    reason = explain(Signature(), Signature())
    assert (reason["reason_code"], words_of(reason)) == ("unknown", "the arguments of this call are unknown")


def test_functions_are_found_inside_what_wraps_them():
    def inner(x):
        return x

    @functools.wraps(inner)
    def outer(x):
        return inner(x)

    assert wrapper_chain(functools.partial(outer, 1))[-1] is inner
    assert code_of(functools.partial(outer, 1)) is inner.__code__
    assert name_matches(functools.partial(outer), "inner")
    assert not name_matches(outer, "other")
    assert not name_matches(3, "other")


def test_an_equal_signature_is_offered_first():
    history, key = History(), FunctionKey("f")
    history.add(key, signature(vector(1)), HERE)
    history.add(key, signature(vector(2)), THERE)
    assert next(history.earlier(key, signature(vector(1)))) == signature(vector(1))
    assert history.last_call(key, signature(vector(2)))[0] == THERE


def test_the_users_innermost_line_is_where_it_was_called_from():
    place = places.user_location(sys._getframe())
    assert place.file == __file__
    assert place.function == "test_the_users_innermost_line_is_where_it_was_called_from"
    assert places.user_location(None) == e.NOWHERE


def test_library_between_the_line_and_jax_is_named():
    source = "def fit(model):\n    return model()\n"
    outer, inner = {"sys": sys}, {"sys": sys}
    exec(compile(source, "/venv/lib/site-packages/flows/train/fit.py", "exec"), outer)
    exec(compile(source, "/venv/lib/site-packages/layers/dense.py", "exec"), inner)

    def called(*around):
        def through():
            return places.user_call(sys._getframe(1))  # without this frame, which is the user's

        for fit in around:
            through = functools.partial(fit, through)
        return through()

    where, library = called(inner["fit"], outer["fit"])
    assert (where.file, library) == (__file__, "flows.train")
    assert places.package_of("/venv/lib/site-packages/flows/_src/fit.py") == "flows"
    assert called()[1] == ""


@pytest.mark.parametrize("value", [1.0, True, "words"])
def test_a_leaf_has_no_path(value):
    tree = TreeReader().read(value)
    assert (tree.leaves, tree.paths, tree.digest) == ([value], ("",), 0)
