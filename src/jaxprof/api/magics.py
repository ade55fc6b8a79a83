"""`%%jaxprof` in IPython, after `%load_ext jaxprof`: record the cell, as `jaxprof.record` does, and show the session.

    %%jaxprof [FILE]
    for batch in data:
        params = step(params, batch)

Only IPython loads this module, so IPython is always there.
"""

from __future__ import annotations

import shlex
from typing import Any

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.files import with_home


def load_ipython_extension(shell: Any) -> None:
    """Register the magic. `%load_ext jaxprof` calls this."""

    def magic(line: str, cell: str) -> None:
        """Show our own errors without a traceback, as IPython does when a magic is misused."""
        from IPython.core.error import UsageError as MagicError

        try:
            record_cell(shell, line, cell)
        except JaxprofError as error:
            raise MagicError(str(error)) from None

    shell.register_magic_function(magic, "cell", "jaxprof")


def record_cell(shell: Any, line: str, cell: str) -> None:
    """Run and record the cell, then show the session. What the cell prints, shows and raises is unchanged."""
    from jaxprof.api.recording import record_cell as begin

    words = shlex.split(line)
    if len(words) > 1:
        raise UsageError(
            f"%%jaxprof takes the name of a file, and was given {len(words)} words", "%%jaxprof run.jaxprof"
        )
    path = with_home(words[0]) if words else None
    title, cell_number = cell_title(shell), f"In [{shell.execution_count}]"

    def name_of(file: str) -> str:
        label = shell.compile.format_code_name(file) if hasattr(shell.compile, "format_code_name") else None
        name = str(label[1]).replace("In[", "In [") if label and label[0] == "Cell" else file
        return title if name == cell_number else name

    with begin(path, title, name_of) as recording:
        # A comment line in place of the magic keeps the editor's line numbers. None where IPython inspects the first
        # line: another cell magic, an indented block.
        result = shell.run_cell(
            cell if cell[:1].isspace() or cell.startswith("%%") else f"#\n{cell}", store_history=False
        )
        recording.stop(result.error_before_exec or result.error_in_exec)
    if recording.note:
        print(recording.note)  # noqa: T201 - a magic's output is the cell's
    else:
        from IPython.display import display

        display(recording.session)


def cell_title(shell: Any) -> str:
    """Return `In [4]` for the cell that runs now. IPython 9 counts a cell before it runs it, earlier versions after
    that; both have put it into `In`, where its number is its index."""
    inputs = shell.user_ns.get("In")
    return f"In [{len(inputs) - 1 if inputs and len(inputs) > 1 else shell.execution_count}]"
