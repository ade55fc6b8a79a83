"""The only writer of stdout and stderr of the command line. It escapes all text that it writes.

Data goes to stdout; what cannot be written there raises `StdoutLost` or `ReaderGone`. Notes go to stderr, and a note
that cannot be written is dropped: it must not cost the data. `Progress` alone draws on stderr itself.

Exit codes are documented in `docs/exit-codes.md`.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jaxprof.base.errors import JaxprofError, StorageError, UsageError
from jaxprof.base.text import json_escape, safe, safe_text

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.report import Table
    from jaxprof.runner.rerun import Ask

SIGNAL_BASE = 128
"""The exit code of a process that a signal ended is this plus the signal's number, as shells count it."""


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    """Success. `open` also succeeds on a session that was interrupted or has failed runs."""
    FAILED = 1
    """A run failed, crashed or was cancelled by its limits; or the session could not be written as requested; or a
    defect ended the app."""
    USAGE = 2
    """Wrong usage, a refused file, or no terminal."""
    LIMIT_PASSED = 3
    """`gate`: a fact, or a time, has grown by more than its limit allows."""
    UNDECIDED = 4
    """`gate --strict`: no limit was exceeded, and one is undecided."""
    NOT_WHOLE = 5
    """The printed answer is unreliable, because a part of its subject is missing. The answer or stderr says which."""
    STANDS_STILL = 6
    """`explain --fail-on standstill`: the program or the job stands still, or did when it was ended."""
    STDOUT_LOST = 74
    """Stdout cannot be written: its disk is full, or it is closed (EX_IOERR of sysexits.h). A session is kept."""
    INTERRUPTED = 130
    """Interrupted with ctrl+c; what was measured is kept and printed."""
    BROKEN_PIPE = 141
    """The reader of stdout closed it."""


Command = TypeVar("Command", bound=Callable[..., Any])


def combine_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several options into one decorator; the first is the first in the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_JSON_ESCAPES = "jaxprof.json_escapes"


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    """Return what a stream cannot encode as JSON escapes (`\\u00e9`): an answer in JSON stays one on every terminal."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json_escape(error.object[error.start : error.end]), error.end


_PLAIN_SYMBOLS = "jaxprof.plain_symbols"
_ASCII = str.maketrans(
    {"\u202f": " ", "µ": "u", "±": "+-", "×": "x", "·": "-", "…": "...", "²": "^2", "³": "^3", "°": " deg", "≈": "~"}
    | {"─": "-", "│": "|", "└": "`", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "∞": "inf", "∂": "d"}
    | dict.fromkeys("█▉▊▋▌▓", "#") | dict.fromkeys("▍▎▏▒░", ".")
)  # fmt: skip
"""What a report is drawn with, for a terminal that is not in UTF-8."""


def _plain_symbols(error: UnicodeError) -> tuple[str, int]:
    """Return what a stream cannot encode as near it as ASCII can; a letter of a name as an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return "".join(letter if letter.isascii() else json_escape(letter) for letter in text), error.end


codecs.register_error(_JSON_ESCAPES, _json_escapes)
codecs.register_error(_PLAIN_SYMBOLS, _plain_symbols)


class ReaderGone(Exception):
    """The reader of stdout closed it. Not an OSError, because click would handle that itself and exit with 1."""


class StdoutLost(Exception):
    """Stdout cannot be written: its disk is full, or it was closed before the start. The message says which.

    Not an OSError, so that it is not taken for the failure of a file that the command itself writes."""


_closed: set[int] = set()
"""File descriptors of the standard streams that were closed before the start."""


@contextlib.contextmanager
def writing_stdout() -> Iterator[None]:
    """Turn what the system says of stdout into ReaderGone or StdoutLost."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise StdoutLost(error.strerror or str(error)) from error


def _write(text: str, *, nl: bool = True) -> None:
    if 1 in _closed:
        raise StdoutLost("it is closed")
    with writing_stdout():
        click.echo(safe_text(text), nl=nl)


def take_streams() -> None:
    """Prepare stdin, stdout and stderr for a command. One that was closed becomes the null device, so that no file that
    is opened later takes its descriptor, and with it what children print. What a stream cannot encode is written in
    ASCII."""
    _closed.update(number for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)) if stream is None)
    for number in sorted(_closed):
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
    if 0 in _closed:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    if 1 in _closed:  # what click prints by itself fails
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if 2 in _closed:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot encode must not end the command
            stream.reconfigure(errors=_PLAIN_SYMBOLS)


def silence_stdout() -> None:
    """Redirect the interpreter's last flush to the null device, because stdout cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def format_option(*formats: str, bounded: Collection[str] = ("json",)) -> Callable[[Command], Command]:
    """Return the `--format` option with these choices; the first is the default. If one of them is `bounded`, the
    result also has `--limit` and `--full`, which say how much of an answer is printed."""
    options = [
        click.option(
            "--format",
            "form",
            type=click.Choice(formats),
            default=formats[0],
            show_default=True,
            is_eager=True,  # the options of JSON look at it
            help="Output format.",
        )
    ]
    if set(formats) & set(bounded):
        *first, last = (each.replace("json", "JSON") for each in bounded)
        shown = " and ".join(filter(None, (", ".join(first), last)))

        def note_bound(ctx: click.Context, parameter: click.Parameter, value: int | bool | None) -> None:
            if not value:
                return
            option = parameter.opts[0]
            if ctx.params.get("form") not in bounded:
                raise UsageError(f"{option} bounds an answer in {shown}", "Give --format json, too.")
            if _BOUND in ctx.meta:
                raise UsageError("--limit and --full exclude each other", "Give only one of them.")
            ctx.meta[_BOUND] = 0 if value is True else value

        limit = click.option(
            "--limit",
            type=click.IntRange(1),
            metavar="N",
            expose_value=False,
            callback=note_bound,
            help=f"Of {shown}: at most N rows of each list.",
        )
        full = click.option(
            "--full",
            is_flag=True,
            expose_value=False,
            callback=note_bound,
            help=f"Of {shown}: everything, nothing cut.",
        )
        options += [limit, full]
    return combine_options(*options)


_BOUND = "jaxprof.bound"


def no_form(what: str, form: str, *forms: str) -> UsageError:
    """Return the error for an answer that does not have the form that was given with `--format`; it has `forms`."""
    *first, last = forms
    return UsageError(f"{what} has no {form} form", f"It has --format {', '.join(first)} and {last}.")


def row_limit(usual: int) -> int | None:
    """Return how many rows of a bounded answer are wanted, `usual` without `--limit`; None for all rows."""
    context = click.get_current_context(silent=True)
    bound = context.meta.get(_BOUND, usual) if context is not None else usual
    return bound or None


def print_text(text: str) -> None:
    _write(text)


def print_report(lines: Iterable[str], form: str) -> None:
    from jaxprof.report import markdown

    text = "\n".join(lines)
    print_text(markdown(text) if form == "markdown" else text)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout as they arrive. A line feed inside a line is shown, not obeyed."""
    print_pieces(f"{safe(line)}\n" for line in lines)


def print_json(kind: str, data: Any, next_commands: Sequence[str], *, limit: int | None = None) -> None:
    """Print an answer of that kind as JSON on stdout, as `docs/json.md` describes it, with the commands worth running
    next. Lists are bounded by `--limit`, whole with `--full`, else bounded by `limit` (0: whole). An iterator in `data`
    becomes a list, whose items are written as they arrive."""
    from jaxprof.report.envelope import answer_pieces

    context = click.get_current_context(silent=True)
    bound = context.meta.get(_BOUND) if context is not None else None
    print_data(answer_pieces(kind, data, next_commands, limit if bound is None else bound))


def print_json_error(code: str, message: str, hint: str) -> None:
    from jaxprof.report.envelope import error_text
    from jaxprof.session.files import with_urls

    print_data([error_text(code, with_urls(message), with_urls(hint)), "\n"])


@contextlib.contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """Send what children print on stdout to stderr: the answer in JSON that follows has stdout to itself."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_csv(table: Table[Any]) -> None:
    from jaxprof.report import csv_lines

    print_data(csv_lines(table))


def print_data(pieces: Iterable[str]) -> None:
    """Write the pieces of what programs read (JSON, CSV, a page) to stdout: in UTF-8, whatever the terminal's encoding
    is; half a character in a file's name as an escape."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors=_JSON_ESCAPES)
    print_pieces(pieces)


def print_pieces(pieces: Iterable[str]) -> None:
    """Write the pieces of a text to stdout in batches; the text has its own line feeds."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size > 1 << 16:
            _write("".join(waiting), nl=False)
            waiting, size = [], 0
    _write("".join(waiting), nl=False)


def refuse_existing(out: Path, *, force: bool, example: str = "session.jaxprof") -> None:
    """Raises StorageError if `out` exists, unless `force`, and UsageError for a folder in place of an `example`."""
    from jaxprof.base.files import refuse_folder

    refuse_folder(out, example)
    if out.exists() and not force:
        raise StorageError(f"{out} already exists", "Give another name, or --force to replace it.")


def write_whole(out: Path, *, force: bool) -> AbstractContextManager[Path]:
    """Return the context of a file to write, which takes the place of `out` at the end. Raises StorageError if `out`
    exists, unless `force`, and if it cannot be written."""
    from jaxprof.base import files

    refuse_existing(out, force=force)
    return files.write_whole(out)


def terminal_problem() -> str:
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None or not stream.isatty():
            return f"the app needs a terminal, but {name} is not one"
    # Windows has no TERM, and each of its consoles can move the cursor.
    if os.environ.get("TERM", "windows" if os.name == "nt" else "") in ("", "dumb"):
        return "the app needs a terminal that can move its cursor; TERM says that this one cannot"
    return ""


def note(line: str) -> None:
    from jaxprof.session.files import with_urls

    with contextlib.suppress(OSError):
        click.echo(safe(with_urls(line)), err=True)


def notes(lines: Iterable[str]) -> None:
    for line in lines:
        note(line)


def confirm(question: str, *, yes: bool, refusal: JaxprofError | None = None) -> bool:
    """Return whether the user agrees; asks on stderr unless `yes`. Raises `refusal`, by default a UsageError, if there
    is no terminal to ask on."""
    if not yes and not sys.stdin.isatty():
        raise refusal or UsageError(f"there is no terminal to ask on: {question}", "Add --yes.")
    return yes or click.confirm(safe(question), err=True)


def start_question(source: str, *, yes: bool) -> Ask:
    """Return the function that shows what the session file `source` would start, and asks before it starts; with `yes`,
    it only shows."""
    from jaxprof.runner.rerun import NotAskedFor

    def ask(lines: Sequence[str]) -> None:
        if not lines:
            return
        note(f"{source} would start:")
        notes(f"  {line}" for line in dict.fromkeys(lines))
        refusal = NotAskedFor(
            "not started: the command comes from a session file, and there is no terminal to confirm it at",
            "Read what is shown above, then confirm it with --yes.",
        )
        if not yes and not sys.stderr.isatty():
            raise refusal
        if not confirm("Start it, with your rights?", yes=yes, refusal=refusal):
            raise NotAskedFor("nothing was started", "")

    return ask
