"""`asides decode`: a recorded response, taken apart as a live one would be. Nothing is sent."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from asides import dialects
from asides.cli.gate import Gate
from asides.cli.progress import Progress, usage_line
from asides.cli.read_body import opened
from asides.cli.render import (
    Display,
    broken_object,
    code_with_reason,
    error_object,
    print_json,
    reply_object,
    tell_about,
)
from asides.cli.terminal import Terminal
from asides.flows.offline import decode
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.settings import Settings, load_settings
from asides.values.errors import AsidesError, ConfigError, UnknownProvider
from asides.values.reply import Reply
from asides.values.simulate import simulate

_IN_ONE_PIECE = 1 << 30
_USUAL_DIALECT = "openai_chat"


def run(arguments: Namespace, terminal: Terminal) -> int:
    """The answer on stdout, the thinking apart; the exit code is the one of the live call."""
    settings = load_settings(show_reasoning_thinking=arguments.show_thinking)
    dialect, file = _named(arguments)
    gate = Gate(settings, f"{arguments.provider or dialect}:{arguments.model or ''}")
    try:
        with opened(file) as pieces:
            reply = decode(
                dialect,
                pieces,
                streaming=arguments.stream is not False,
                provider=_row(arguments.provider, settings),
                model=arguments.model,
                status=arguments.status,
            )
    except AsidesError as error:
        if arguments.json:
            print_json(terminal, broken_object(error.partial, error_object(error), gate))
        elif error.partial is not None:
            _show(error.partial, gate, terminal)
        raise
    if arguments.json:
        print_json(terminal, reply_object(reply, gate))
        code = code_with_reason(reply, terminal)
    else:
        _show(reply, gate, terminal)
        code = tell_about(reply, gate, terminal)
    if arguments.usage:
        terminal.figure(usage_line(reply))
    return code


def _named(arguments: Namespace) -> tuple[str, str]:
    """The dialect and the file: told by option and name, or by two names in the order of `asides.decode`."""
    if arguments.second is None:
        if dialects.is_known(arguments.file) and not Path(arguments.file).exists():
            return arguments.file, "-"
        return arguments.dialect or _USUAL_DIALECT, arguments.file
    if arguments.dialect is not None:
        raise ConfigError(f"the dialect is told twice, {arguments.file!r} and --dialect; one recording at a time.")
    return arguments.file, arguments.second


def _row(name: str | None, settings: Settings) -> Provider | str | None:
    try:
        return None if name is None else find_provider(name, settings.providers)
    except UnknownProvider:
        return name  # Bytes of a host that nobody knows can still be read; the reply says so.


def _show(reply: Reply, gate: Gate, terminal: Terminal) -> None:
    display = Display(terminal, Progress(), shows_thinking=gate.shows)
    display.take(simulate(reply, _IN_ONE_PIECE))
    display.end()
