"""`asides completion`: prints a script that completes commands, options and values in bash, zsh or fish.

A script is made from the declarations of the arguments. It asks `asides completion --candidates KIND` only for what
changes, such as models and saved conversations.
"""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from asides.cli.arguments import list_commands
from asides.cli.exit_codes import Exit
from asides.cli.parse_arguments import build_parser, format_option_help, list_actions, list_subcommands
from asides.cli.terminal import Terminal

if TYPE_CHECKING:
    from asides.settings import Settings  # The scripts themselves need no settings.

_LEVELS = ("off", "auto", "on", "minimal", "low", "medium", "high", "xhigh", "max")
# How a value is completed, by the name that the help shows for it …
_BY_METAVAR = {
    "FILE": "file",
    "PATH": "file",
    "SCHEMA": "file",
    "MODULE:FUNCTION": "file",
    "FOLDER": "folder",
    "DIRECTORY": "folder",
    "SERVER": "mcp",
    "PROVIDER:MODEL": "model",
    "PROVIDER[:MODEL]": "model",
    "PROVIDER": "provider",
    "COMMAND": "command",
}
# … or by the argument itself, where its value is called NAME.
_BY_NAME = {
    "conversation": "conversation",
    "provider": "provider",
    ("providers", "name"): "provider",
    ("decode", "dialect"): "dialect",
    ("history", "words"): "conversation",
    ("keys", "name"): "provider",
    ("config", "words"): "setting",
    ("store", "words"): "folder",
    "template": "template",
}


class Argument(NamedTuple):
    """An option or a word of a command, as a shell completes it."""

    options: tuple[str, ...]
    """Its spellings; none for a word."""
    help: str
    kind: str | None
    """How its value is completed; "" without a kind, None for an option without a value."""
    choices: tuple[str, ...]
    repeats: bool
    """Whether it may come more than once."""


class Entry(NamedTuple):
    """A command, or a command inside one ("keys set")."""

    path: str
    summary: str
    arguments: tuple[Argument, ...]
    subcommands: tuple[str, ...]

    @property
    def options(self) -> list[Argument]:
        """The arguments that begin with a hyphen."""
        return [argument for argument in self.arguments if argument.options]

    @property
    def words(self) -> list[Argument]:
        """The other arguments, in their order; the commands inside this one come first."""
        words = [argument for argument in self.arguments if not argument.options]
        return [Argument((), "", "", self.subcommands, repeats=False), *words] if self.subcommands else words


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the script, or the candidates that a script asks for."""
    if arguments.candidates is not None:
        # A shell completes nothing rather than show an error.
        with suppress(Exception):
            for candidate in find_candidates(arguments.candidates, arguments.beginning):
                terminal.write_answer(f"{candidate}\n")
        return Exit.DONE
    if arguments.shell is None:
        from asides.values.errors import ConfigError

        raise ConfigError(
            "name a shell: asides completion bash, zsh or fish. `asides help completion` says where it goes."
        )
    from asides.cli import completion_scripts

    write: Callable[[list[Entry]], str] = getattr(completion_scripts, f"write_{arguments.shell}")
    terminal.write_answer(write(list_entries()))
    return Exit.DONE


# --- what there is to complete ----------------------------------------------------------------------------------------


def list_entries() -> list[Entry]:
    """Every command, and every command inside one."""
    return [
        entry
        for name, command in list_commands().items()
        for entry in _read_parser(name, command.summary, build_parser(name, command))
    ]


def _read_parser(path: str, summary: str, parser: argparse.ArgumentParser) -> Iterator[Entry]:
    inner = list(list_subcommands(parser))
    arguments = [
        _read_argument(path, parser, action)
        for action in list_actions(parser)
        if not isinstance(action, argparse._SubParsersAction)
    ]
    yield Entry(path, summary, tuple(arguments), tuple(name for name, _, _ in inner))
    for name, help_text, deeper in inner:
        yield from _read_parser(f"{path} {name}", help_text, deeper)


def _read_argument(path: str, parser: argparse.ArgumentParser, action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    kind: str | None = None
    if action.nargs != 0:
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        kind = _BY_NAME.get((path.partition(" ")[0], action.dest)) or _BY_NAME.get(action.dest)
        kind = "" if choices else kind or _BY_METAVAR.get(metavar, "")
    if action.dest == "thinking":
        choices = _LEVELS
    elif kind in ("dialect", "command"):
        kind, choices = "", _list_dialects() if kind == "dialect" else tuple(list_commands())
    repeats = isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+")
    return Argument(tuple(action.option_strings), format_option_help(parser, action), kind, choices, repeats)


def _list_dialects() -> tuple[str, ...]:
    from asides.dialects import DIALECTS

    return DIALECTS


# --- what changes -----------------------------------------------------------------------------------------------------


def find_candidates(kind: str, beginning: str) -> Iterator[str]:
    """The values of a kind that begin so. Sends nothing, and creates no file."""
    finders: dict[str, Callable[[str], Iterator[str]]] = {
        "model": _find_models,
        "provider": _find_providers,
        "conversation": _find_conversations,
        "mcp": _find_servers,
        "setting": _find_settings,
        "template": _find_templates,
    }
    found = finders[kind](beginning) if kind in finders else iter(())
    # A line break in a name would be two candidates, and a name with a hyphen before it would be an option.
    return (
        name
        for name in dict.fromkeys(found)
        if name.startswith(beginning) and name.isprintable() and not name.startswith("-")
    )


def _find_models(beginning: str) -> Iterator[str]:
    """Providers with a colon; behind the colon, the models that the rules name."""
    from asides.providers.find import find_provider

    settings = _load_settings()
    yield from _list_names(settings, "aliases")
    provider, colon, _ = beginning.partition(":")
    if not colon:
        yield from (f"{name}:" for name in _find_providers(""))
        return
    for rule in find_provider(provider, settings.providers).models:
        model = rule.models.removesuffix("*").removesuffix("-")
        if model and not any(mark in model for mark in "*?["):
            yield f"{provider}:{model}"


def _find_providers(_: str) -> Iterator[str]:
    from asides.providers.find import list_providers

    return (row.name for row in list_providers(_load_settings().providers))


def _find_conversations(_: str) -> Iterator[str]:
    from asides.cli.own_conversations import list_own
    from asides.cli.saved_conversations import find_state_folder, find_store_url, open_store

    if find_store_url(os.environ) is not None:
        # Whoever presses Tab waits for no server.
        yield from list_own(find_state_folder(os.environ))
    elif any(find_state_folder(os.environ).glob("conversations.db")):
        with open_store(os.environ) as store:
            yield from store.names()


def _find_servers(_: str) -> Iterator[str]:
    return (table.name for table in _load_settings().mcp)


def _find_settings(_: str) -> Iterator[str]:
    from asides.settings import SETTINGS

    return iter(SETTINGS)


def _find_templates(_: str) -> Iterator[str]:
    return _list_names(_load_settings(), "templates")


def _list_names(settings: Settings, table: str) -> Iterator[str]:
    """The names in a table of the settings; none where there is no such table."""
    entries: Any = getattr(settings, table, ())
    return (str(getattr(entry, "name", entry)) for entry in entries)


def _load_settings() -> Settings:
    from asides.cli.trust import is_trusted
    from asides.settings import load_settings

    return load_settings(os.environ, trusts=lambda path, content: is_trusted(os.environ, path, content))
