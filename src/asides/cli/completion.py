"""Completion in shells, by argcomplete: `asides completion` prints the script that a shell reads, and the script runs
`asides` at every Tab, which answers from the declarations of the arguments.
"""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import argcomplete
import argcomplete.shell_integration
from argcomplete.completers import DirectoriesCompleter, FilesCompleter, SuppressCompleter

from asides.cli.arguments import list_commands
from asides.cli.exit_codes import Exit
from asides.cli.parse_arguments import OPTIONS, Parser, build_parser
from asides.cli.terminal import Terminal
from asides.values.errors import ConfigError

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
    "LEVEL": "level",
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


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the script of a shell."""
    if arguments.shell is None:
        raise ConfigError("name a shell: asides completion bash, zsh or fish. `asides help completion` says where.")
    script = argcomplete.shell_integration.shellcode(["asides"], shell=arguments.shell)
    terminal.write_answer(f"{script.strip()}\n")
    return Exit.DONE


def complete_line(line: str) -> None:
    """Answer a script: write what may follow on this line to the file descriptor that argcomplete uses, and exit."""
    with suppress(Exception):  # A shell completes nothing rather than show an error.
        if "--" not in line.split()[:-1]:
            parser = build_line_parser(line)
            argcomplete.autocomplete(
                parser,
                always_complete_options=False,
                default_completer=SuppressCompleter(),
                validator=_begins_with,
            )
    os._exit(0)


def _begins_with(candidate: str, beginning: str) -> bool:
    """A name may hold anything: a line break would make two candidates of it, a hyphen an option."""
    is_safe = candidate.isprintable() and (beginning.startswith("-") or not candidate.startswith("-"))
    return is_safe and candidate.startswith(beginning)


def build_line_parser(line: str) -> argparse.ArgumentParser:
    """The parser of a line: `asides COMMAND …`, or a bare question, which takes the options of `asides ask`."""
    words = line.split()[1:]
    commands = list_commands()
    is_first = not words or (len(words) == 1 and not line[-1:].isspace())
    if words and words[0] not in commands and not (is_first and not words[0].startswith("-")):
        parser = build_parser("ask", commands["ask"])
        for option, about in OPTIONS[1:]:
            parser.add_argument(*option.split(", "), action="store_true", help=about)
        _attach(parser, "ask")
        return parser
    parser = Parser(prog="asides", add_help=False)
    inside = parser.add_subparsers(parser_class=Parser)
    for name, command in commands.items():
        inner = inside.add_parser(name, help=command.summary)
        if name in words[:1]:
            command.declare(inner)
            _attach(inner, name)
    return parser


def _attach(parser: argparse.ArgumentParser, command: str) -> None:
    """Give every argument its completer."""
    for action in parser._actions:
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        kind = _BY_NAME.get((command, action.dest)) or _BY_NAME.get(action.dest) or _BY_METAVAR.get(metavar)
        if action.choices is None and kind is not None:
            action.completer = _COMPLETERS[kind]  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


# --- candidates -------------------------------------------------------------------------------------------------------


def _find_models(prefix: str, **_: Any) -> Iterator[str]:
    """Providers with a colon; behind the colon, the models that the rules name."""
    from asides.providers.find import find_provider
    from asides.providers.model_names import list_model_names

    settings = _load_settings()
    yield from _list_names(settings, "aliases")
    provider, colon, _rest = prefix.partition(":")
    if not colon:
        yield from (f"{name}:" for name in _find_providers())
        return
    yield from (f"{provider}:{name}" for name in list_model_names(find_provider(provider, settings.providers)))


def _find_providers(**_: Any) -> Iterator[str]:
    from asides.providers.find import list_providers

    return (row.name for row in list_providers(_load_settings().providers))


def find_conversations(**_: Any) -> Iterator[str]:
    """The names of saved conversations."""
    from asides.cli.own_conversations import list_own
    from asides.cli.saved_conversations import find_store_url, open_store
    from asides.settings_files import find_state_folder

    if find_store_url(os.environ) is not None:
        # A server would make Tab slow.
        yield from list_own(find_state_folder(os.environ))
    elif any(find_state_folder(os.environ).glob("conversations.db")):
        with open_store(os.environ) as store:
            yield from store.names()


def _find_servers(prefix: str, **_: Any) -> Iterator[str]:
    names = [table.name for table in _load_settings().mcp if table.name.startswith(prefix)]
    yield from names or FilesCompleter()(prefix)


def _find_settings(parsed_args: Namespace, **_: Any) -> Iterator[str]:
    from asides.settings import SETTINGS

    # The first word is get, set or unset.
    return iter(SETTINGS if parsed_args.action else ())


def _find_templates(**_: Any) -> Iterator[str]:
    return _list_names(_load_settings(), "templates")


def _find_levels(**_: Any) -> Iterator[str]:
    return iter(_LEVELS)


def _find_dialects(**_: Any) -> Iterator[str]:
    from asides.dialects import DIALECTS

    return iter(DIALECTS)


def _find_commands(**_: Any) -> Iterator[str]:
    return iter(list_commands())


_COMPLETERS: dict[str, Callable[..., Any]] = {
    "file": FilesCompleter(),
    "folder": DirectoriesCompleter(),
    "level": _find_levels,
    "mcp": _find_servers,
    "model": _find_models,
    "provider": _find_providers,
    "conversation": find_conversations,
    "setting": _find_settings,
    "template": _find_templates,
    "dialect": _find_dialects,
    "command": _find_commands,
}


def _list_names(settings: Settings, table: str) -> Iterator[str]:
    """The names in a table of the settings; none where there is no such table."""
    entries: Any = getattr(settings, table, ())
    return (str(getattr(entry, "name", entry)) for entry in entries)


def _load_settings() -> Settings:
    from asides.cli.trust import is_trusted
    from asides.settings import load_settings

    return load_settings(os.environ, trusts=lambda path, content: is_trusted(os.environ, path, content))
