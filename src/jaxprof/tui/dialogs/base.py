"""What every dialog has in common: its looks, which are read when the first one is opened."""

from __future__ import annotations

from typing import TypeVar

from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A modal question; gives an `Answer`, or None when it was left."""

    CSS_PATH = "../jaxprof.tcss"
