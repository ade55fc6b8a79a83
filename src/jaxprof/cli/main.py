"""The entry point of `jaxprof`, and the one boundary where errors become messages and exit codes.

Only click, and what describes errors and prints them, is imported before a command is chosen, so that `--help` and
shell completion are instant.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NoReturn

import click

from jaxprof.base import __version__
from jaxprof.base.errors import (
    FileRefusedError,
    JaxprofError,
    StorageError,
    UsageError,
    WorkerError,
    not_found,
    system_words,
)
from jaxprof.cli.output import (
    ExitCode,
    ReaderGone,
    StdoutLost,
    note,
    notes,
    print_json_error,
    silence_stdout,
    take_streams,
    terminal_problem,
    writing_stdout,
)

if TYPE_CHECKING:
    from jaxprof.base.early_start import Started

GROUPS = {
    "Every day": {
        "run": "Measure workloads, or your own functions, phase by phase; without a name, list them.",
        "script": "Run a program of yours unchanged, and record what it compiles and where its time goes.",
        "explain": "What to change, the most expensive first: of a session, a job or a profile.",
        "compare": "Which is faster: two functions, settings or revisions; what differs between two sessions.",
        "hlo": "What XLA made of a program, for this device or another: kernels, costs, fusion barriers, findings.",
        "open": "Open a session, a profile or HLO: in the app, or printed.",
    },
    "In CI, and for agents": {
        "gate": "Fail if kernels, FLOPs, bytes, peak or the times of a program have grown.",
        "query": "Ask sessions in SQL: runs, samples, kernels, compiles, findings and more, over many at once.",
        "export": "Write a page for a browser, a file for Perfetto, or tables as Parquet.",
        "agent": "Teach coding agents to use jaxprof, and serve sessions to them as tools (MCP).",
    },
    "Files and settings": {
        "sessions": "List, rename, delete and prune the kept sessions; make the summary tables of a job.",
        "devices": "List the devices that JAX sees, and those it does not use; install compilers for absent devices.",
        "config": "Show and change your settings: theme, preset, devices, budgets, limits, keys.",
    },
}
"""The commands by what they are for, each with its line in the help."""

COMMANDS = {name: "open_" if name == "open" else name for group in GROUPS.values() for name in group}
"""Command name → its module under `commands`, which has a click command called `command`."""


EPILOG = """\b
Exit codes: 0 success; 1 a run failed, or the session could not be kept;
2 wrong usage or a refused file; 3 a limit of `gate` was exceeded,
4 it is undecided; 5 a part of the module or the profile could not be read;
6 it stands still (explain --fail-on standstill); 74 stdout is full or
closed; 130 interrupted; 141 stdout has no reader; 128+n ended by signal n.
Progress and notes go to stderr, data to stdout."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        command = import_module(f"jaxprof.cli.commands.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0] if args else "-"
        if not word.startswith("-") and word not in COMMANDS and not (ctx.resilient_parsing and "://" in word):
            name = command_for(args, in_terminal=not terminal_problem())
            return name, self.get_command(ctx, name), args
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


def command_for(words: Sequence[str], *, in_terminal: bool) -> str:
    """Return the command that `words` stand for, a file and what follows it: `jaxprof FILE`. Runs nothing.

    `open` for a session, a job, a profile or HLO; `hlo` for the last without a terminal, or with options; `script` for
    a file of Python, `run` for `FILE.py:function`. Raises UsageError for a word that is neither a command nor a path,
    MissingFileError where there is nothing, FileRefusedError for anything else.
    """
    from jaxprof.analysis.target import Kind, resolve, wrong_kind

    word, *rest = words
    target = resolve(word, note, code=True, kept=False)
    if target.kind is Kind.PROGRAM:
        return "script"
    if target.kind is Kind.HLO:
        return "hlo" if rest or not in_terminal else "open"
    if target.kind in (Kind.SESSION, Kind.JOB, Kind.PROFILE):
        return "open"
    if target.path is not None:
        raise FileRefusedError(
            f"{word} is {Kind.OTHER.value}",
            f"jaxprof script {word} runs the folder as a program."
            if (target.path / "__main__.py").is_file()
            else "jaxprof FILE.py profiles a program; jaxprof FILE.jaxprof opens a session.",
        )
    file, _, function = word.rpartition(":")
    if target.kind is Kind.FUNCTION and file.endswith(".py") and function.isidentifier():
        return "run"
    raise wrong_kind(target, "a command") or not_found("command", word, COMMANDS)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, message="jaxprof %(version)s")
@click.option(
    "--python",
    type=click.Path(),
    metavar="PATH",
    help="The interpreter, or environment, whose jax the app measures.",
)
@click.pass_context
def cli(ctx: click.Context, python: str | None) -> int | None:
    """A profiler for JAX in the terminal. Without a command it opens the app. With a file alone it picks the command:
    FILE.py is profiled, FILE.py:function is measured; a session, a profile or HLO is opened (without a terminal:
    printed).

    Measures where the time of a call goes (trace, lower, compile, transfers, first run, steady run), shows what XLA
    fused, and keeps every session as a file.
    """
    if os.environ.get("JAXPROF_LIMITS"):
        from jaxprof.base import limits

        limits.check()
    if ctx.invoked_subcommand is not None:
        if python is not None:
            raise UsageError("--python goes after the command", "jaxprof run --python PATH ...")
        # The options of these commands take their defaults from the user's and the project's settings.
        if ctx.invoked_subcommand in {"run", "compare", "hlo", "gate"}:
            from jaxprof.base.config import read_config

            ctx.default_map = {ctx.invoked_subcommand: read_config().options(ctx.invoked_subcommand)}
        return None
    from jaxprof.cli.commands.open_ import interpreter_of_app, launch_app

    return launch_app(None, interpreter_of_app(python))


def main(arguments: list[str] | None = None, started: Started | None = None) -> NoReturn:
    """Run the command line, or follow the program that was `started` early, and exit with its code."""
    take_streams()
    try:
        code = _run(arguments, started)
        with writing_stdout():  # what click itself has printed
            sys.stdout.flush()
    except ReaderGone:
        code = ExitCode.BROKEN_PIPE
        silence_stdout()
    except StdoutLost as error:
        code = ExitCode.STDOUT_LOST
        silence_stdout()
        note(f"jaxprof: stdout cannot be written: {error}")
    if started is not None:  # nothing is left to do, and to take our modules apart takes 20 ms
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code or ExitCode.OK)
    sys.exit(code or ExitCode.OK)


def _run(arguments: list[str] | None, started: Started | None) -> int | None:
    code: int | None
    try:
        if started is not None:
            from jaxprof.cli.plain_script import run_started

            code = run_started(started)
            if started.words.arguments:
                from jaxprof.cli.commands.script import note_own_options

                note_own_options(started.words.path, started.words.arguments)
        else:
            code = cli.main(args=arguments, prog_name="jaxprof", standalone_mode=False)
        return code
    except SystemExit as error:
        if error.code and _is_clicks(error):  # so it ends where the reader of its help is gone; a completion with 0
            raise ReaderGone from error
        raise
    except (JaxprofError, OSError, click.ClickException) as error:
        if isinstance(error, OSError) and _is_clicks(error):
            raise StdoutLost(error.strerror or "it is closed") from error
        failure = _as_ours(error)
        code = ExitCode.FAILED if isinstance(failure, WorkerError) else ExitCode.USAGE
        words = failure.code, failure.what, failure.hint
        notes(map(_without_secrets, filter(None, (f"jaxprof: {failure.what}", failure.hint and f"  {failure.hint}"))))
    except (click.Abort, KeyboardInterrupt):
        code, words = ExitCode.INTERRUPTED, ("interrupted", "interrupted", "")
    if wants_json(sys.argv[1:] if arguments is None else arguments):
        print_json_error(*map(_without_secrets, words))
    return code


def _is_clicks(error: BaseException) -> bool:
    """Return whether click itself raised this, for help or the version; our words are within `writing_stdout`."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and str(at.tb_frame.f_globals.get("__name__")).startswith("click.")


def _as_ours(error: JaxprofError | OSError | click.ClickException) -> JaxprofError:
    """Return an error of the system or of click in the form that all errors have: what failed, and a hint."""
    if isinstance(error, JaxprofError):
        return error
    if isinstance(error, OSError):
        what = f"{error.filename}: {system_words(error)}" if error.filename is not None else system_words(error)
        return StorageError(what, "The disk may be full, or you may not read or write that folder.")
    message, context = error.format_message(), getattr(error, "ctx", None)
    path = context.command_path if context is not None else "jaxprof"
    if "\n" in message and context is not None and isinstance(context.command, click.Group):
        # click raises the help of a group without a command
        return UsageError(f"{path} needs a command", f"{path} --help lists them.")
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return UsageError(f"no such option {error.option_name!r}", f"Did you mean {' or '.join(error.possibilities)}?")
    message = " ".join(message.split())  # click lists the choices of an argument on lines of their own
    return UsageError(f"{message[:1].lower()}{message[1:]}".rstrip("."), f"{path} --help lists what it takes.")


def _without_secrets(text: str) -> str:
    """Redact URLs: what was typed may be one with a password or a signature, which an error must not show."""
    if "://" not in text:
        return text
    from jaxprof.base.redaction import without_url_secrets

    return without_url_secrets(text)


def wants_json(words: Sequence[str]) -> bool:
    """Return whether a command line requests JSON. Only its words tell, because it may be unreadable."""
    ours = list(takewhile(lambda word: word != "--", words))
    if ours and (ours[0] == "script" or ours[0].endswith(".py")):  # what follows its target belongs to the program
        targets = (at for at, word in enumerate(ours) if word.endswith(".py") or word in ("-m", "-"))
        ours = ours[: next(targets, len(ours))]
    return "--format=json" in ours or ("--format", "json") in pairwise(ours)
