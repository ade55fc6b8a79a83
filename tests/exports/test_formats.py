"""The registry of formats, and that the command knows them."""

from __future__ import annotations

import pytest

from jaxprof.cli.commands.export import NAMES
from jaxprof.exports.formats import FORMATS


def test_the_command_knows_the_formats_that_there_are() -> None:
    assert tuple(FORMATS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_format_has_its_module(name: str) -> None:
    form = FORMATS[name]
    assert callable(form.module.runs)
    assert callable(form.module.files if form.folder else form.module.pieces)
