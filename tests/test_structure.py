"""The map of the code: one name for one thing."""

import ast
import importlib
import pkgutil
import re
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from source_tree import tree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "jaxprof"
FILES = sorted(SOURCE.rglob("*.py"))
SAME_NAME = {"Session"}
"""Public classes that share a name on purpose: `api.Session` is the session that `session` folds, with what a user of
the Python API does with it."""
MOST_IN_A_FOLDER = 30
LAZY = [path for path in FILES if path.name == "__init__.py" and "= lazy_names(" in path.read_text()]
FOUND_BY_OTHERS = {"load_ipython_extension"}
"""Names that are looked up by a tool and are nothing for a program to import."""


def test_no_two_public_classes_have_one_name():
    found = Counter(
        node.name
        for path in FILES
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in found.items() if count > 1} == SAME_NAME


def test_a_folder_holds_no_more_files_than_can_be_seen_at_once():
    counts = Counter(path.parent.relative_to(SOURCE) for path in FILES)
    assert {folder: count for folder, count in counts.items() if count > MOST_IN_A_FOLDER} == {}


def test_tests_stand_where_their_source_stands():
    packages = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")}
    tested = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {str(folder) for folder in tested - packages} <= {"."}


def test_names_of_tests_are_at_most_60_characters_long():
    names = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert [name for name in names if len(name) > 60] == []


FACTS_ELSEWHERE = {
    "query/execution.py",  # the columns of a SELECT
    "report/__init__.py",  # the column that tells parts of a table apart
    "rollup/making.py",  # of files that only roll-ups have
}


def test_facts_stand_in_facts_where_an_import_finds_them():
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Fact", "optional")
    }
    assert {path for path in found if not path.startswith("facts/")} <= FACTS_ELSEWHERE


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(source):
    """Everything that a text imports: at the top, in functions, for types only. `from a import b` is both a and a.b."""
    found = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "jaxprof imports by whole names"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def import_graph(sources):
    """Which file imports which. A name that is a file of its own stands for that file, not for its package."""
    graph = {}
    for name, source in sources.items():
        targets = imported_names(source)
        whole = {target for target in targets if target in sources}
        packages = {target.rpartition(".")[0] for target in whole}
        taken_from = {target.rpartition(".")[0] for target in targets - whole}
        graph[name] = {target for target in whole if target not in packages or target in taken_from} - {name}
    return graph


def circle(graph):
    """One circle of files that import each other; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle():
    assert circle(import_graph({module_name(path): tree(path) for path in FILES})) == []


def test_the_app_reads_the_clocks_of_one_module():
    """What a test sets there is set for every screen, on a machine of any age."""
    clocks = SOURCE / "tui" / "clock.py"
    names = {
        f"{module_name(path)} imports {name}"
        for path in set(clocks.parent.rglob("*.py")) - {clocks}
        for name in imported_names(tree(path))
        if name.partition(".")[0] in ("time", "datetime") or name.startswith(f"{module_name(clocks)}.")
    }
    assert names == set()


def test_the_import_contracts_have_no_holes():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert not config.get("exclude_type_checking_imports")
    assert [contract["name"] for contract in config["contracts"] if "ignore_imports" in contract] == []


@pytest.mark.parametrize("path", LAZY, ids=module_name)
def test_lazy_package_declares_the_names_that_it_loads(path):
    package, body = importlib.import_module(module_name(path)), tree(path).body
    assert [name for name in {*package.__all__, *package._HOME} if not hasattr(package, name)] == []
    blocks = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    shown = {alias.asname or alias.name for node in imports for alias in node.names}
    home = package._HOME.keys() - FOUND_BY_OTHERS
    assert home <= set(package.__all__)
    assert shown in (home, {"*"})
    assert "__getattr__" not in {getattr(node, "name", "") for node in body}, "a type checker would take any name"


def test_scripts_beside_the_package_import_names_that_it_has():
    scripts = [path for folder in ("bench", "screenshots") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in scripts for name in imported_names(tree(path)) if name.startswith("jaxprof.")}
    missing = []
    for name in sorted(named):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


POSSESSIVE_GROUP = re.compile(r"(?:\)|\A)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")
"""A possessive quantifier after a group, or at the beginning of a text that is appended to another; an atomic group."""


def possessive_groups(source):
    """Texts of a file that are regular expressions in which a group, or a pattern put in, keeps what it has taken."""
    inside = {part for node in ast.walk(source) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(source):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "()" for part in node.values)
        elif isinstance(node, ast.Constant) and node not in inside and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        else:
            continue
        if POSSESSIVE_GROUP.search(re.sub(r"\[\^?\]?[^\]]*\]", "x", re.sub(r"\\.", "x", text, flags=re.DOTALL))):
            found.append(text)
    return found


@pytest.mark.parametrize(
    ("line", "has_one"),
    [
        (r"""re.compile(r'"(?:[^"\\]|\\.)*+"')""", True),
        (r"""re.compile(rf"{NAME}(?:,{NAME}){{2,}}+")""", True),
        (r"""re.compile(rf"{NAME}++")""", True),
        (r"""NAME + "?+" """, True),
        (r"""re.compile(rb"(?>ab|a)c")""", True),
        (r"""re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"')""", False),
        (r"""re.compile(rf"{NAME}\)*+[()]?+\d{{2}}+")""", False),
    ],
)
def test_a_possessive_group_is_seen_however_it_is_written(line, has_one):
    assert bool(possessive_groups(ast.parse(line.strip()))) == has_one


def test_no_pattern_has_a_possessive_group():
    paths = [*FILES, *(path for folder in ("bench", ".ci") for path in (ROOT / folder).rglob("*.py"))]
    assert {str(path): found for path in paths if (found := possessive_groups(tree(path)))} == {}
