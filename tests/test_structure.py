"""The map of the code: one name for one thing."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import tomllib
from collections import defaultdict
from collections.abc import Mapping
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
LAZY = [path for path in FILES if path.name == "__init__.py" and "lazy_names(" in path.read_text()]
FOUND_BY_OTHERS = {"load_ipython_extension"}
"""Names that are looked up by a tool and are nothing for a program to import."""


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(SOURCE)))
    return found


def test_no_two_public_classes_have_one_name() -> None:
    twice = {name: paths for name, paths in public_classes().items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in SAME_NAME} == {}
    assert set(twice) == SAME_NAME, "a name in SAME_NAME is not needed any more"


def test_a_folder_holds_no_more_files_than_can_be_seen_at_once() -> None:
    folders = {path.parent for path in FILES}
    counts = {str(folder.relative_to(SOURCE)): len(list(folder.glob("*.py"))) for folder in folders}
    assert {name: count for name, count in counts.items() if count > MOST_IN_A_FOLDER} == {}


def test_tests_stand_where_their_source_stands() -> None:
    packages = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")}
    tested = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {str(folder) for folder in tested - packages} <= {"."}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(source: ast.Module) -> set[str]:
    """Everything that a text imports: at the top, in functions, for types only. `from a import b` is both a and a.b."""
    found = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "jaxprof imports by whole names"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def import_graph(sources: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Which file imports which. A name that is a file of its own stands for that file, not for its package."""
    graph = {}
    for name, source in sources.items():
        targets = imported_names(source)
        whole = {target for target in targets if target in sources}
        packages = {target.rpartition(".")[0] for target in whole}
        taken_from = {target.rpartition(".")[0] for target in targets - whole}
        graph[name] = {target for target in whole if target not in packages or target in taken_from} - {name}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of files of which each leads to each (Kosaraju)."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(name: str, edges: Mapping[str, set[str]], found: list[str]) -> None:
        seen.add(name)
        for target in edges.get(name, ()):
            if target not in seen:
                visit(target, edges, found)
        found.append(name)

    for name in graph:
        if name not in seen:
            visit(name, graph, order)
    back = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            back[target].add(name)
    seen.clear()
    groups = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            visit(name, back, group)
            groups.append(sorted(group))
    return [group for group in groups if len(group) > 1]


def test_no_files_import_each_other_in_a_circle_not_even_for_types() -> None:
    assert circles(import_graph({module_name(path): tree(path) for path in FILES})) == []


def test_a_circle_is_found_wherever_its_imports_stand() -> None:
    sources = {
        "p": "from p.a import A",
        "p.a": "def f():\n    from p.b import B",
        "p.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import c",
        "p.c": "import p.a",
        "p.d": "from p import a, VERSION\nimport p.c",
    }
    parsed = {name: ast.parse(source) for name, source in sources.items()}
    assert circles(import_graph(parsed)) == [["p.a", "p.b", "p.c"]]
    assert import_graph(parsed)["p.d"] == {"p", "p.a", "p.c"}


def test_the_import_contracts_have_no_holes() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert not config.get("exclude_type_checking_imports")
    assert [contract["name"] for contract in config["contracts"] if "ignore_imports" in contract] == []


def names_for_types(package: str, source: str) -> dict[str, str]:
    """What a package imports from its own modules for type checkers alone: name → module."""
    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {
        name: (node.module or "").removeprefix(f"{package}.")
        for node in imports
        for alias in node.names
        for name in (own_names(str(node.module)) if alias.name == "*" else [alias.asname or alias.name])
    }


def own_names(module: str) -> list[str]:
    """What a module defines for others."""
    body = ast.parse(SOURCE.parent.joinpath(*module.split(".")).with_suffix(".py").read_text()).body
    assigned = [target.id for node in body if isinstance(node, ast.Assign) for target in node.targets
                if isinstance(target, ast.Name)]  # fmt: skip
    made = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [name for name in (*assigned, *made) if not name.startswith("_")]


def test_lazy_packages_are_found() -> None:
    assert {"jaxprof", "jaxprof.events", "jaxprof.runner"} <= {module_name(path) for path in LAZY}


@pytest.mark.parametrize("path", LAZY, ids=module_name)
def test_a_lazy_package_offers_a_type_checker_the_names_that_it_loads(path: Path) -> None:
    package = importlib.import_module(module_name(path))
    home = {name: module for name, module in package._HOME.items() if name not in FOUND_BY_OTHERS}
    assert names_for_types(package.__name__, path.read_text()) == home
    assert home.keys() <= set(package.__all__)


@pytest.mark.parametrize("path", LAZY, ids=module_name)
def test_each_name_of_a_lazy_package_loads(path: Path) -> None:
    package = importlib.import_module(module_name(path))
    assert [name for name in {*package.__all__, *package._HOME} if not hasattr(package, name)] == []


@pytest.mark.parametrize("path", LAZY, ids=module_name)
def test_a_lazy_package_hides_from_a_type_checker_that_it_would_look_up_any_name(path: Path) -> None:
    body = tree(path).body
    assert "__getattr__" not in {getattr(node, "name", "") for node in body}
    targets = [ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets]
    assert "__getattr__" not in targets


def test_scripts_beside_the_package_import_names_that_it_has() -> None:
    missing = []
    for path in (path for folder in ("bench", "screenshots") for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jaxprof":
                module = importlib.import_module(str(node.module))
                missing += [
                    f"{path}, line {node.lineno}: {node.module}.{name.name}"
                    for name in node.names
                    if not hasattr(module, name.name) and not module_exists(f"{node.module}.{name.name}")
                ]
    assert missing == []


def module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
