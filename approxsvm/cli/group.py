"""Behavior of all commands: file names are checked first, and each warning or error is printed as one line."""

import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from approxsvm.errors import ApproxSVMError, ApproxSVMWarning, InputError
from approxsvm.system.output_files import refuse_shared_files

_ARGUMENTS = "approxsvm.arguments"  # key of the original arguments in click's context
_INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
# Python API names in error messages, and the options that replace them in the commands' messages.
_SHELL_WORDS = {
    r"\bpass (joblib|skops\.io)\.load\(.*\)": "add --trust",
    r"pass X\.astype\(.*\)": "store them as float64",
    r"\bmode '(\w+)'": r"--mode \1",
    r"degree and n_centers": "--degree and --centers",
    r"labels='probability'": "--labels-by probability",
    r"\bmax_bytes\b": "--max-bytes",
    r"\btarget_error\b": "--target-error",
    r"\bbut n_features is (\d+)": r"but the model has \1 features",
    r"\bn_jobs\b": "--jobs",
    r"\brandom_state\b": "--seed",
    r"\btolerance is\b": "--tolerance is",
    r"\binputs of type (\w+) need\b": r"--inputs \1 needs",
    r"\b(inputs|coefficients)='(\w+)'": r"--\1 \2",
    r"\bthe name '": "--name '",
    r"\bchoose columns\b": "choose --columns",
    r"\bkeep the others\b": "--keep the others",
}
# Python API names for the parameter with the rows, unless the name is quoted or part of an expression.
_DATA = {"data": r"(?:\bInput )?(?<![\w'\".])X(?![\w'\".(])", "test_data": r"\bX_test\b"}


class _FileName(click.Path):
    """File name, which must not be empty, because click would interpret an empty name as the current folder."""

    def __init__(self, **options: Any) -> None:
        super().__init__(readable=False, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a file name must not be empty", param, ctx)
        return super().convert(value, param, ctx)


class InputFile(_FileName):
    """File that a command reads; a dash, if allowed, means standard input."""


class OutputFile(_FileName):
    """File that a command writes; a dash, if allowed, means standard output."""


class Command(click.Command):
    """Command that checks the names of all files before opening any of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Check the file names, then run the command."""
        refuse_shared_files(self._files(ctx, InputFile), self._files(ctx, OutputFile))
        for _, path in self._files(ctx, OutputFile):
            if not path.parent.is_dir():
                raise InputError(f"{path}: there is no folder {path.parent}")
        return super().invoke(ctx)

    def _files(self, ctx: click.Context, kind: type[_FileName]) -> Iterator[tuple[str, Path]]:
        for param in self.params:
            path = ctx.params.get(param.name or "")
            # The function `score_dataset` receives file names as strings and checks them itself.
            if isinstance(param.type, kind) and isinstance(path, Path):
                yield f"{_label(param)} {path}", path


class Group(click.Group):
    """Group that prints each of our warnings and expected errors as one line on stderr; errors exit with status 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the original arguments for `command_line`."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; the error for `predict` names the commands that predict."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] != "predict":
                raise
            words = (
                f"{error.message} Use 'approxsvm score' for files of any format, or 'approxsvm-predict' with the "
                "arguments of LIBSVM's svm-predict."
            )
            raise click.UsageError(words, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print each of our warnings, and the error if there is one, on a single line."""
        show = warnings.showwarning

        def show_ours(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, ApproxSVMWarning):
                warn(str(message))
            else:
                show(message, category, *place, **options)

        with warnings.catch_warnings():
            warnings.simplefilter("always", ApproxSVMWarning)
            warnings.showwarning = show_ours
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except (ApproxSVMError, ValueError, MemoryError) as error:  # NotFittedError is a ValueError
            text = str(error) or "out of memory"
        except KeyboardInterrupt:
            click.echo("approxsvm: interrupted", err=True)
            return ctx.exit(_INTERRUPTED)
        command = self.commands.get(ctx.invoked_subcommand or "")
        click.echo(f"approxsvm: {_in_shell_words(' '.join(text.split()), command)}", err=True)
        return ctx.exit(1)


def _in_shell_words(text: str, command: click.Command | None) -> str:
    """Replace Python API names in an error message with the options and arguments of a command."""
    words = dict(_SHELL_WORDS)
    for param in () if command is None else command.params:
        if param.name in _DATA:
            words[_DATA[param.name]] = _label(param)
    options = {} if command is None else {name for param in command.params for name in param.opts}
    for pattern, word in words.items():
        option = re.search(r"--[a-z][a-z-]*", word)
        if option is None or option[0] in options:
            text = re.sub(pattern, word, text)
    return text


def _label(param: click.Parameter) -> str:
    return param.human_readable_name if isinstance(param, click.Argument) else max(param.opts, key=len)


def warn(text: str) -> None:
    """Print a warning as one line on stderr."""
    click.echo(f"approxsvm: warning: {text}", err=True)


def command_line() -> str:
    """Return the command line as typed, quoted for a shell."""
    return shlex.join(["approxsvm", *click.get_current_context().meta[_ARGUMENTS]])


INPUT = InputFile(path_type=Path)
OUTPUT = OutputFile(path_type=Path)
