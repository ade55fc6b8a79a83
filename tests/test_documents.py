"""The documents say what is so: their commands parse, their links lead somewhere, their keys are the JSON's."""

import ast
import json
import re
from collections import defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path

import click
import pytest

from answer_schemas import schema_of
from cli.calling import understood
from golden import kept
from jaxprof.analysis import programs
from jaxprof.base.config import SETTINGS
from jaxprof.base.limits import LIMITS
from jaxprof.cli.answer_schemas import KINDS
from jaxprof.cli.commands import gate
from jaxprof.cli.main import cli
from jaxprof.events import REASONS
from jaxprof.facts.comparisons import EXACT
from jaxprof.facts.tables import TABLES
from jaxprof.findings.catalogue import SOURCES, entries
from jaxprof.findings.trials import PROPOSED, TRIALS
from jaxprof.jobs.figures import CAUSES
from jaxprof.recorder import samples
from jaxprof.recorder.samples.states import STATES
from jaxprof.tui.keys import GROUPS, key_text, keys_of
from tui.key_meanings import MEANINGS

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
DOCUMENTS = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)")


def commands():
    examples = "".join(path.read_text() for path in (ROOT / "examples").glob("*.py"))
    found = re.findall(r"^    (jaxprof .*?)(?:\s+#.*)?$", examples, re.MULTILINE)
    for document in DOCUMENTS:
        for block in _FENCE.findall(document.read_text()):
            for line in block.splitlines():
                command = re.split(r"\s#\s|\s\|\s|\s>\s", line)[0].strip()
                if command.startswith("jaxprof"):
                    found.append(command)
    return sorted(set(found))


def test_a_command_that_is_documented_is_understood(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()  # `jaxprof FILE` looks at the file
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxprof.analysis.target._fetch", lambda url, note: tmp_path / "run.jaxprof.d")
    assert len(commands()) > 10
    for line in commands():
        try:
            understood(line)
        except click.UsageError as error:
            pytest.fail(f"{line}: {error.message}")
        assert "[" not in re.sub(r"\"[^\"]*\"|'[^']*'", "", line), f"zsh takes a bracket for a pattern: {line}"


def test_links_lead_somewhere():
    for document in DOCUMENTS:
        for target in _LINK.findall(document.read_text()):
            if not target.startswith(("http", "mailto")):
                assert (document.parent / target).exists(), (document.name, target)


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="the checks are not part of a source distribution")
def test_the_readmes_test_command_is_what_ci_runs():
    (command,) = re.findall(r"^python3 -m venv .*pytest$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text()


MADE = "<!-- made by UPDATE_NET=1 pytest tests/test_documents.py -->\n"
"""What stands behind it in a page is made of the registry, and is not written by hand."""


def _findings():
    """The catalogue of findings, source by source, and the changes that they propose."""
    lines = []
    for source, title in SOURCES.items():
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", "| code | meaning | fix |", "|---|---|---|"]
        found = [entry for entry in entries().values() if entry.source == source]
        lines += [f"| `{entry.code}` | {entry.title}. {entry.means} | {entry.fix} |" for entry in found]
    lines += ["", "## Changes that can be tried", "", "| change | meaning | proposed by |", "|---|---|---|"]
    for name, trial in TRIALS.items():
        codes = ", ".join(f"`{code}`" for code, names in PROPOSED.items() if name in names)
        lines.append(f"| {trial.title} | {trial.means} | {codes} |")
    return "\n".join(lines) + "\n"


def columns(facts):
    """The table of these facts with their types in SQL."""
    lines = ["| key | type | meaning |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{fact.key}` | {fact.unit.sql} | {fact.meaning} |" for fact in facts)])


def _tables(tables):
    return "".join(f"\n### `{name}`\n\n{table.meaning}.\n\n{columns(table.facts)}\n" for name, table in tables.items())


def _tables_of_roll_ups():
    pytest.importorskip("pyarrow")
    from jaxprof.rollup.making import TABLES as ROLL_UPS

    return _tables(ROLL_UPS)


def _objects(schema, place):
    """The objects of a schema by their places, from the outside in."""
    if schema.get("properties"):
        yield place, schema
    for key, inner in schema.get("properties", {}).items():
        yield from _objects(inner, f"{place}.{key}")
    for part, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(part), dict):
            yield from _objects(schema[part], place + mark)


def _keys_of_the_json():
    """Which keys each kind of answer has, and what each key means, from the schemas."""
    first = {}
    meanings = defaultdict(lambda: defaultdict(list))
    lines = ["", "## Keys of each kind", ""]
    for kind in sorted((*KINDS, "error"), key=lambda kind: (kind != "session", kind)):
        schema = schema_of(kind)
        root = "error" if kind == "error" else "data"
        lines += [f"### `{kind}`", ""]
        known_above = "-"
        for place, found in _objects(schema["properties"][root], root):
            for key, inner in found["properties"].items():
                meanings[key][inner["description"]].append(place.rpartition(".")[2].rstrip("[]*"))
            if place.startswith(known_above):
                continue
            words = re.sub(r'"required": \[[^]]*\]', "", json.dumps(found, sort_keys=True))
            before = first.setdefault(words, f"{kind}`, `{place}")
            if before != f"{kind}`, `{place}":
                lines.append(f"- `{place}`: as in `{before}`")
                known_above = f"{place}."
            else:
                lines.append(f"- `{place}`: " + ", ".join(f"`{key}`" for key in found["properties"]))
        lines.append("")
    lines += ["## What the keys mean", "", "| key | meaning |", "|---|---|"]
    for key, of_key in sorted(meanings.items()):
        for number, (meaning, places) in enumerate(sorted(of_key.items(), key=lambda item: (-len(item[1]), item[0]))):
            lines.append(f"| `{key if number == 0 else f'{min(places)}.{key}'}` | {meaning} |")
    return "\n".join(lines) + "\n"


def _keys():
    """What each key means everywhere, then the actions of each screen."""
    lines = ["| key | means everywhere |", "|---|---|"]
    lines += [f"| {_key_names(keys.split())} | {does} |" for keys, does in MEANINGS.items()]
    for name, group in GROUPS.items():
        lines += ["", f"### {group.title}", "", "| key | action | | id |", "|---|---|---|---|"]
        lines += [
            f"| {_key_names(keys_of(action))} | {action.label} | {action.help} | `{name}.{action.name}` |"
            for action in group.keys
        ]
    return "\n".join(lines) + "\n"


def _key_names(keys):
    return " ".join(f"`{key_text(key)}`" for key in keys)


def _settings():
    """What can be set, with what a value must be."""
    lines = ["| setting | means | a value | variable |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.means} | {each.wants} | `{each.variable}` |" for each in SETTINGS]
    return "\n".join(lines) + "\n"


def _commands():
    """Each command with what it does, and the options that its help shows."""
    lines = []
    for name, command in _leaves(cli, click.Context(cli), "jaxprof"):
        lines += [f"### {name}", "", _cell(command.get_short_help_str(400)), ""]
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if options:
            lines += ["| option | |", "|---|---|"]
            lines += [f"| `{', '.join((*each.opts, *each.secondary_opts))}` | {_cell(each.help)} |" for each in options]
            lines.append("")
    return "\n".join(lines)


def _leaves(command, context, name):
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            yield from _leaves(command.get_command(context, word), context, f"{name} {word}")
    else:
        yield name, command


def _cell(text):
    return " ".join((text or "").split()).replace("|", "\\|")


FIGURE = r"\d[-+*/ <.e\d]*(?: \* [A-Z_]+)?|\(\d+[.e][.e\d-]*, [.e\d-]+\)"
"""A number, a product with one, or a pair of them."""
BOUND = re.compile(
    r"MOST_|LONGEST_TEXT|_LARGEST$|_ENDLESS|_GOLDEN|_DAY_SECONDS|\w+(_AT_MOST|_KEPT|_ADDED|_NAMED|_OF_A_STACK)"
)
"""Names of figures that bound memory or text, or are no choice: none decides where a second goes."""


def _attribution():
    """The state of each kind of work, and the documented figures of the modules that tell them apart."""
    lines = ["| kind | state if it runs | if it is blocked |", "|---|---|---|"]
    lines += [f"| `{kind}` | `{running}` | `{blocked}` |" for kind, (running, blocked) in STATES.items()]
    for package in (samples, programs):
        lines += ["", f"In `{package.__name__}`:", "", "| figure | value | meaning |", "|---|---|---|"]
        lines += [row for path in sorted(Path(package.__file__).parent.glob("*.py")) for row in _figures(path)]
    return "\n".join(lines) + "\n"


def _figures(path):
    """A row for each figure of a module; one without a docstring fails, unless it is a bound."""
    for node, after in pairwise(ast.parse(path.read_text()).body):
        if not isinstance(node, ast.Assign) or not re.fullmatch(FIGURE, ast.unparse(node.value)):
            continue
        name, documented = ast.unparse(node.targets[0]), isinstance(after, ast.Expr)
        assert documented or BOUND.match(name.strip("()")), f"{path.name}: {name} is no row of docs/attribution.md"
        if documented:
            meaning = " ".join(ast.literal_eval(after.value).split())
            yield f"| `{path.stem}.{name}` | {ast.unparse(node.value)} | {meaning} |"


REFERENCES = {
    "attribution.md": _attribution,
    "configuration.md": _settings,
    "exit-codes.md": _commands,
    "findings.md": _findings,
    "json.md": _keys_of_the_json,
    "keys.md": _keys,
    "query.md": partial(_tables, TABLES),
    "scale.md": _tables_of_roll_ups,
}
"""By page, what makes the part behind the marker."""


@pytest.mark.parametrize("page", REFERENCES)
def test_a_reference_is_as_the_registry_makes_it(page):
    path = ROOT / "docs" / page
    written, marker, _ = path.read_text().partition(MADE)
    assert marker
    kept(path, written + marker + REFERENCES[page]())


NAMED = {"gate.md": [fact.key for fact in EXACT], "jobs.md": CAUSES, "programs.md": REASONS, "sessions.md": LIMITS}
"""By page, names whose table people wrote."""


@pytest.mark.parametrize("page", NAMED)
def test_a_page_explains_every_name(page):
    text = (ROOT / "docs" / page).read_text()
    assert [name for name in NAMED[page] if f"`{name}`" not in text] == []


BETWEEN_PROCESSES = {
    *("JAXPROF_JOB_INDEX", "JAXPROF_OWN_CODE", "JAXPROF_PROGRAM", "JAXPROF_SCRATCH", "JAXPROF_URLS"),
    *("JAXPROF_FORMER_PYTHONPATH", "JAXPROF_FORMER_PYTHONUNBUFFERED"),
}
"""Variables that jaxprof itself sets for the processes that it starts."""


def test_a_variable_that_users_set_is_documented():
    read = {
        name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r'"(JAXPROF_\w*[A-Z])"', path.read_text())
    }
    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert "JAXPROF_TARGETS" in read
    assert sorted(name for name in read - BETWEEN_PROCESSES if f"{name}" not in text) == []


def test_the_help_of_gate_names_every_exact_fact():
    assert [fact.key for fact in EXACT if not re.search(rf"\b{fact.key}\b", gate.command.help)] == []


def test_what_people_wrote_in_the_documents_stays_short():
    written = [re.split(r"<!-- made ", page.read_text())[0] for page in (ROOT / "docs").glob("*.md")]
    assert len(" ".join(written).split()) < 25_000
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_a_table_begins_after_an_empty_line():
    """Else the site shows it as a paragraph."""
    for page in DOCUMENTS:
        lines = page.read_text().splitlines()
        heads = [number for number, line in enumerate(lines) if re.fullmatch(r"\|(:?-+:?\|)+", line)]
        assert [lines[n - 1] for n in heads if n > 1 and lines[n - 2] and "<!--" not in lines[n - 2]] == [], page.name


def test_every_page_is_in_the_list_for_agents():
    """That it is in the site's navigation, and that links lead to its headings, mkdocs says (`.ci/package`)."""
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", (ROOT / "docs" / "llms.txt").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted({path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"})


def test_what_contributing_names_is_there():
    """Each file, and in a row of its tables each name in one of the files that the row names, or in those beside it."""
    roots = (ROOT, ROOT / "src" / "jaxprof", ROOT / "tests")
    for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines():
        named = re.findall(r"`([\w/]+(?:\.(?:py|md|json|txt)|/))`", line)
        paths = [[root / name for root in roots if (root / name).exists()] for name in named]
        assert [name for name, found in zip(named, paths, strict=True) if not found] == []
        files = [file for found in paths for path in found for file in (path.glob("*.py") if path.is_dir() else [path])]
        text = "".join(file.read_text() for file in files)
        names = re.findall(r"`(_[a-z_]+|_?[A-Z_]{4,})`", line) if line.startswith("|") else []
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("package", ["engine", "hlo", "recorder", "jobs", "tui"])
def test_way_through_the_code_passes_files_that_are_there(package):
    folder = ROOT / "src" / "jaxprof"
    way = ast.get_docstring(ast.parse((folder / package / "__init__.py").read_text())).rpartition("\n\n")[2]
    named = re.findall(r"`([\w/]+\.py)`", way)
    assert 3 <= len(named) <= 16
    beside = folder
    for name in named:
        path = folder / name if "/" in name else beside / name
        assert path.exists(), name
        beside = path.parent


def test_pictures_show_no_path_and_load_nothing():
    pictures = [picture.read_text() for picture in sorted((ROOT / "screenshots").glob("*.svg"))]
    absolute = re.compile(r"/(?:home|tmp|root|work|Users|usr|opt)/[^<>&\s]*")
    paths = {path for picture in pictures for path in absolute.findall(picture)}
    assert any(path.startswith("/home/me/transformer/train.py") for path in paths), "where a kernel comes from"
    assert {path for path in paths if not path.startswith("/home/me/")} == set()
    film = (ROOT / "screenshots" / "first-minute.svg").read_text()
    assert len(film) < 1.5e6
    assert not re.search(r"<script|url\(|href", film)
