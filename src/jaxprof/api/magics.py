"""`%jaxprof` and `%%jaxprof` in IPython, after `%load_ext jaxprof`.

    %jaxprof step(params, batch)     one call, measured as `jaxprof.profile` does; gives the session

    %%jaxprof [FILE]                 the cell, recorded as `jaxprof.record` does; shows the session
    for batch in data:
        params = step(params, batch)

IPython is imported by IPython itself: whoever loads this has it.
"""

from __future__ import annotations

import argparse
import ast
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from jaxprof.errors import JaxprofError, UsageError

if TYPE_CHECKING:
    from jaxprof.api.session import Session

_CAPTURE: Final = "_jaxprof_call_"
"""Stands for the called function while its arguments are evaluated in the user's names."""
_EXAMPLE: Final = "%jaxprof step(params, batch)"


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext jaxprof`."""
    shell.register_magic_function(lambda line: _told(measure_line, shell, line), "line", "jaxprof")
    shell.register_magic_function(lambda line, cell: _told(record_cell, shell, line, cell), "cell", "jaxprof")


def measure_line(shell: Any, line: str) -> Session:
    """The call on the line, measured. Raises UsageError for anything else than a call of a function."""
    from jaxprof.api.profiling import profile

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
    """Runs the cell and records it meanwhile; what it prints, shows and raises is as ever. Then shows the session."""
    from jaxprof.api.recording import record_cell as begin

    words = shlex.split(line)
    if len(words) > 1:
        raise UsageError(
            f"%%jaxprof takes the name of a file, and was given {len(words)} words", "%%jaxprof run.jaxprof"
        )
    with begin(Path(words[0]).expanduser() if words else None) as recording:
        result = shell.run_cell(cell, store_history=False)
        recording.stop(result.error_before_exec or result.error_in_exec)
    if recording.note:
        print(recording.note)  # noqa: T201 - a magic's output is the cell's
    else:
        _show(recording.session)


def call_of(text: str, names: dict[str, Any]) -> tuple[Any, tuple[Any, ...], str]:
    """The function, the arguments and the name of the call that `text` is, evaluated among `names`.

    A trailing `.block_until_ready()` is what measuring does anyway, and is taken off. Raises UsageError.
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
    """The options before the call, and the call as it was written."""
    parser = _Options(prog="%jaxprof", add_help=False)
    parser.add_argument("--budget", type=float, default=2.0)
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


def _show(session: Session) -> None:
    from IPython.display import display

    display(session)


def _told(work: Any, *arguments: Any) -> Any:
    """Our own errors without a traceback, as IPython shows the misuse of a magic."""
    from IPython.core.error import UsageError as MagicError

    try:
        return work(*arguments)
    except JaxprofError as error:
        raise MagicError(str(error)) from None
