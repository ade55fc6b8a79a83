"""What stands in the place of a program while there is none: why, and how one gets there."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class NoProgram(Static):
    """Says it in the middle of the screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, *, growing: bool) -> None:
        """`growing`: the session is still written, so that a program may yet come."""
        self.update(
            Content.assemble(
                ("No run has been compiled yet." if growing else "No compiled program in this session.", "bold"),
                "\n\n",
                (
                    "Variants that are compiled (jit) are shown here as soon as XLA is done with them.\n",
                    "$text-muted",
                ),
                ("o", "bold $footer-key-foreground"),
                (" opens HLO text, an HLO proto, or a folder of XLA's dumps.", "$text-muted"),
            )
        )
