"""`%jaxprof` and `%%jaxprof` in IPython, after `%load_ext jaxprof`.

    %jaxprof step(params, batch)     measure one call, as `jaxprof.profile` does; returns the session

    %%jaxprof [FILE]                 record the cell, as `jaxprof.record` does; shows the session
    for batch in data:
        params = step(params, batch)

Only IPython loads this module, so IPython is always there.
"""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import TYPE_CHECKING, Any, Final, NoReturn

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home

if TYPE_CHECKING:
    from jaxprof.api.session import Session

_CAPTURE: Final = "_jaxprof_call_"
"""Name that stands for the called function while its arguments are evaluated among the user's names."""
_EXAMPLE: Final = "%jaxprof step(params, batch)"


def load_ipython_extension(shell: Any) -> None:
    """Register the magics. `%load_ext jaxprof` calls this."""
    shell.register_magic_function(lambda line: _reported(measure_line, shell, line), "line", "jaxprof")
    shell.register_magic_function(lambda line, cell: _reported(record_cell, shell, line, cell), "cell", "jaxprof")


def measure_line(shell: Any, line: str) -> Session:
    """Measure the call on the line. Raises UsageError for anything other than a function call."""
    from jaxprof.api.session import profile

    options, rest = _line_options(line)
    function, args, name = call_of(rest, shell.user_ns)
    return profile(
        function,
        *args,
        name=name,
        static_argnums=tuple(options.static or ()),
        op_by_op=options.op_by_op,
        budget_seconds=options.budget,
    )


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
        name = cell_name(shell, file)
        return title if name == cell_number else name

    with begin(path, title, name_of) as recording:
        result = shell.run_cell(_with_comment_line(cell), store_history=False)
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


def _with_comment_line(cell: str) -> str:
    """Return the cell with a comment line in place of the magic, so that its line numbers match the editor's; the cell
    itself if IPython inspects the first line: another cell magic, an indented block."""
    return cell if cell[:1].isspace() or cell.startswith("%%") else f"#\n{cell}"


def cell_name(shell: Any, file: str) -> str:
    """Return `In [4]` for the name that IPython gives the code of that cell; `file` itself for anything else."""
    label = shell.compile.format_code_name(file) if hasattr(shell.compile, "format_code_name") else None
    return str(label[1]).replace("In[", "In [") if label and label[0] == "Cell" else file


def call_of(text: str, names: dict[str, Any]) -> tuple[Any, tuple[Any, ...], str]:
    """Return the function, arguments and name of the call in `text`, evaluated with `names`.

    A trailing `.block_until_ready()` is removed, because measuring does that anyway. Raises UsageError.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"cannot read {text.strip()!r}: {error.msg}", f"One call: {_EXAMPLE}") from None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "block_until_ready":
        call = call.func.value
    if not isinstance(call, ast.Call):
        raise UsageError(f"{text.strip()!r} is not a call of a function" if text.strip() else "no call", _EXAMPLE)
    function = _evaluated(call.func, names)
    taken = ast.Call(ast.Name(_CAPTURE, ast.Load()), call.args, call.keywords)
    args, kwargs = _evaluated(ast.copy_location(taken, call), {**names, _CAPTURE: lambda *args, **kw: (args, kw)})
    from jaxprof.workloads.callables import in_order, last_by_name

    placed, named = in_order(function, args, kwargs)
    name = ast.unparse(call.func)
    return last_by_name(function, tuple(named)), (*placed, *named.values()), name


def _evaluated(expression: ast.expr, names: dict[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<jaxprof>", "eval")
    return eval(code, names)


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"%jaxprof [--budget SECONDS] [--static N]... [--op-by-op] CALL: {_EXAMPLE}")


def _line_options(line: str) -> tuple[argparse.Namespace, str]:
    """Return the options before the call, and the text of the call."""
    from jaxprof.events import DEFAULT_BUDGET_SECONDS

    parser = _Options(prog="%jaxprof", add_help=False)
    parser.add_argument("--budget", type=float, default=DEFAULT_BUDGET_SECONDS)
    parser.add_argument("--static", type=int, action="append")
    parser.add_argument("--op-by-op", action="store_true")
    words: list[str] = []
    rest = line.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        words.append(word)
        if "=" not in word and word != "--op-by-op":
            value, _, rest = rest.strip().partition(" ")
            words.append(value)
        rest = rest.strip()
    return parser.parse_args(words), rest


def _reported(work: Any, *arguments: Any) -> Any:
    """Show our own errors without a traceback, as IPython does when a magic is misused."""
    from IPython.core.error import UsageError as MagicError

    try:
        return work(*arguments)
    except JaxprofError as error:
        raise MagicError(str(error)) from None
