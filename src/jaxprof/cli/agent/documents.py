"""The documents, as a program reads them: by name, in pieces, and searched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import UsageError, unknown_name

_MOST_HITS: Final = 20


@dataclass(frozen=True, slots=True)
class DocumentPiece:
    """A piece of a page."""

    page: str
    text: str
    next_offset: int | None
    """Where the next piece begins, in characters; None: this is the last."""


def pages() -> dict[str, Path]:
    """The pages by their names (`query`, `hlo`...). In an installed jaxprof they are inside the package. Raises
    UsageError if there are none."""
    package = Path(__file__).parents[2]
    for folder in (package / "docs", package.parents[1] / "docs"):
        found = {path.stem: path for path in sorted(folder.glob("*.md"))}
        if found:
            return found
    raise UsageError("the documents are not part of this installation", "They are in docs/ of the repository.")


def titles() -> dict[str, str]:
    """The heading of each page."""
    return {name: path.read_text("utf-8").partition("\n")[0].lstrip("# ") for name, path in pages().items()}


def read_page(name: str, offset: int, most: int) -> DocumentPiece:
    """At most `most` characters of a page from `offset` on. Raises UsageError for an unknown page."""
    known = pages()
    if name.removesuffix(".md") not in known:
        raise unknown_name("page", name, known)
    text = known[name.removesuffix(".md")].read_text("utf-8")
    piece = text[offset : offset + most]
    end = offset + len(piece)
    return DocumentPiece(name.removesuffix(".md"), piece, end if end < len(text) else None)


def search_pages(words: str) -> list[dict[str, str]]:
    """The paragraphs that hold all of the words, in the order of the pages: `page`, `heading`, `text`."""
    wanted = words.lower().split()
    hits: list[dict[str, str]] = []
    for name, path in pages().items():
        heading = ""
        for paragraph in re.split(r"\n\s*\n", path.read_text("utf-8")):
            if paragraph.startswith("#"):
                heading = paragraph.partition("\n")[0].lstrip("# ")
            pieces = paragraph.split("\n|") if paragraph.startswith("|") else [paragraph]
            hits += (
                {"page": name, "heading": heading, "text": piece.strip()}
                for piece in pieces
                if wanted and all(word in f"{heading} {piece}".lower() for word in wanted)
            )
    return hits[:_MOST_HITS]
