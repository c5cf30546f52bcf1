"""`asides decode`: splits a recorded response into answer and thinking, as a live call would. Sends nothing."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from asides import dialects
from asides.cli.inputs import open_chunks
from asides.cli.render import (
    Display,
    encode_failure,
    print_json,
    report_failure,
    report_reply,
)
from asides.cli.request import ONE_PIECE
from asides.cli.terminal import Stopwatch, Terminal, describe_usage
from asides.cli.trust import read_settings
from asides.flows.offline import decode, recognise_dialect
from asides.flows.reply_fields import ThinkingVisibility, encode_error, encode_reply
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.values.errors import AsidesError, ConfigError, UnknownProvider
from asides.values.fold import simulate
from asides.values.reply import Reply


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the answer on stdout and the thinking on stderr; return the exit code of the live call."""
    settings = read_settings(terminal, show_reasoning_thinking=arguments.show_thinking)
    dialect, file = _read_dialect_and_file(arguments)
    row = _find_row(arguments.provider, settings)
    visibility = ThinkingVisibility(settings, _name_model(arguments, dialect))
    try:
        with open_chunks(file) as chunks:
            if dialect is None:
                dialect, chunks = recognise_dialect(chunks, provider=row, status=arguments.status)
                visibility = ThinkingVisibility(settings, _name_model(arguments, dialect))
            reply = decode(
                dialect,
                chunks,
                streaming=arguments.stream is not False,
                provider=row,
                model=arguments.model,
                status=arguments.status,
            )
    except AsidesError as error:
        if arguments.json:
            print_json(terminal, encode_failure(encode_error(error), visibility, error.partial))
        elif error.partial is not None:
            _show(error.partial, visibility, terminal)
        raise
    if arguments.json:
        print_json(terminal, {**encode_reply(reply, visibility), "dialect": dialect})
        code = report_failure(reply, terminal)
    else:
        _show(reply, visibility, terminal)
        code = report_reply(reply, visibility, terminal)
    if arguments.usage:
        terminal.print_info(describe_usage(reply))
    return code


def _name_model(arguments: Namespace, dialect: str | None) -> str:
    return f"{arguments.provider or dialect or ''}:{arguments.model or ''}"


def _read_dialect_and_file(arguments: Namespace) -> tuple[str | None, str]:
    """Read `--dialect NAME FILE`, or `DIALECT FILE` in the order of `asides.decode`. Without a dialect, None."""
    if arguments.second is None:
        if dialects.is_known(arguments.file) and not Path(arguments.file).exists():
            return arguments.file, "-"
        return arguments.dialect, arguments.file
    if arguments.dialect is not None:
        raise ConfigError(f"the dialect is given twice, {arguments.file!r} and --dialect; one recording at a time.")
    return arguments.file, arguments.second


def _find_row(name: str | None, settings: Settings) -> Provider | str | None:
    try:
        return None if name is None else find_provider(name, settings.providers)
    except UnknownProvider:
        return name  # The bytes of an unknown host can still be decoded; the reply has a warning.


def _show(reply: Reply, visibility: ThinkingVisibility, terminal: Terminal) -> None:
    display = Display(terminal, Stopwatch(), shown=visibility.kinds)
    display.show(simulate(reply, ONE_PIECE))
    display.end()
