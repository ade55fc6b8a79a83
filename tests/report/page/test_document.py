"""The page as a file: whole, small, self-contained, and with nothing from outside as markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.report.page.document import json_in_page, to_page
from report import sessions
from report.page.pages import EVIL, hostile

VOID = {"meta", "link"}


def empty():
    return fold(sessions.HEADER, [])


SESSIONS = [sessions.whole, sessions.torn, sessions.swept, sessions.captured, hostile, empty]


class Elements(HTMLParser):
    """The elements with their attributes, and the text in scripts, in styles and in all else."""

    def __init__(self, text):
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": [], "": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ""
        self.inside[tag if tag in self.inside else ""].append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


@pytest.mark.parametrize("make", SESSIONS)
def test_page_is_well_formed_and_fetches_nothing(make):
    found = Elements(to_page(make(), "last"))
    assert not found.open
    for tag, attributes in found.seen:
        assert not {"src", "onclick", "onload", "onerror", "style", "srcset"} & set(attributes), tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), attributes
    anchors = {attributes.get("id") for _, attributes in found.seen}
    assert {str(link["href"])[1:] for link in found.named("a")} <= anchors
    assert len(json.loads(found.inside["script"][0])) == len(found.named("figure"))


def hash_of(content):
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def test_policy_allows_own_script_and_style_alone():
    found = Elements(to_page(sessions.whole(), "last"))
    (policy,) = [meta["content"] for meta in found.named("meta") if meta.get("http-equiv")]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'{hash_of(found.inside['script'][1])}'"
    assert rules["style-src"] == f"'{hash_of(found.inside['style'][0])}'"
    assert "connect-src" not in rules


def test_names_from_outside_are_text():
    page = to_page(hostile(), "last")
    found = Elements(page)
    assert len(found.inside["script"]) == 2
    assert not found.named("img")
    assert EVIL in "".join(found.inside[""])
    assert "</script><script>" not in page.replace(found.inside["script"][1], "")


def test_data_in_a_script_element_cannot_end_it():
    written = json_in_page({"</script>": "\u2028<!--&", "not a number": float("nan"), "list": (float("inf"), 1.5)})
    assert not re.search("[<>&\u2028]", written)
    assert json.loads(written) == {"</script>": "\u2028<!--&", "not a number": None, "list": [None, 1.5]}


def test_the_plotting_library_is_the_published_one():
    """uPlot 1.6.32, as in the README: the digests are those of the package on the npm registry."""
    folder = files("jaxprof.report") / "html_assets"
    for name, digest in {
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    }.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert "MIT" in (folder / "uPlot.LICENSE").read_text()


def many_kernels(count):
    rows = [e.KernelTimes(name=f"k{number}", self_seconds=1e-6 * (count - number), count=1) for number in range(count)]
    return fold(sessions.HEADER, [*sessions.jit_run("r1", ""), e.KernelsMeasured(run="r1", kind="run", rows=rows)])


def test_a_long_table_says_how_much_of_it_is_left_out():
    page = to_page(many_kernels(1_500), "last")
    assert "and 500 more" in page
    assert ">k999<" in page
    assert ">k1000<" not in page.partition("figure")[0] + page.rpartition("</table>")[0].rpartition("<table")[2]
