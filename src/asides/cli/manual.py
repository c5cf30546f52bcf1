"""`asides help`: the help of all commands or of one, and the manual page, from the same declarations."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator

from asides.cli.arguments import format_exit_codes, format_help, list_commands
from asides.cli.exit_codes import Exit
from asides.cli.parse_arguments import (
    ENVIRONMENT,
    OPTIONS,
    build_parser,
    format_option_help,
    list_actions,
    name_value,
)
from asides.cli.terminal import Terminal
from asides.packages import EXTRAS, explain_missing
from asides.values.error_words import suggest_name

_ROFF = {
    "\\": "\\e",
    "`": "\\(ga",
    "'": "\\(aq",
    "^": "\\(ha",
    "~": "\\(ti",
    "-": "\\-",
    "…": "...",
    "–": "\\(en",
    "→": "\\(->",
    "×": "\\(mu",
}
_FILES = (
    ("asides.toml", "the settings of the current folder, as far as it is trusted"),
    ("~/.config/asides/asides.toml", "your settings (in XDG_CONFIG_HOME, if that is set)"),
    ("~/.config/asides/keys.json", "the API keys that `asides keys` stores, for you alone"),
    ("~/.config/asides/trusted.json", "the settings files of other folders that you trust"),
    ("~/.local/state/asides/conversations.db", "saved conversations (in XDG_STATE_HOME, or ASIDES_STATE)"),
    ("~/.local/state/asides/input-history.jsonl", "what you typed into `asides chat`"),
)


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the help on stdout, or the manual page."""
    if arguments.man:
        terminal.write_answer(format_man_page())
    elif arguments.command == ["exit-codes"]:
        terminal.write_answer(format_exit_codes())
    elif not arguments.command:
        terminal.write_answer(format_help())
    else:
        terminal.write_answer(find_parser(arguments.command).format_help())
    return Exit.DONE


def find_parser(words: list[str]) -> argparse.ArgumentParser:
    """The parser of a command; its actions may follow it, as in `asides help config trust`."""
    from asides.values.errors import ConfigError  # `asides --help` needs no values.

    name, *inner = words
    commands = list_commands()
    if name not in commands:
        if name in EXTRAS:
            raise explain_missing(f"`asides {name}`", EXTRAS[name])
        raise ConfigError(_explain_unknown(name, list(commands)))
    parser = build_parser(name, commands[name])
    for word in inner:
        choices = [str(choice) for action in parser._actions for choice in action.choices or ()]
        if word not in choices:
            raise ConfigError(_explain_unknown(word, choices, f" of `{parser.prog}`"))
    return parser


def _explain_unknown(word: str, known: list[str], owner: str = "") -> str:
    hint = suggest_name(word, known, f"the commands are {', '.join(known)}." if known else "it has no commands.")
    return f"no command{owner} is called {word!r}; {hint}"


# --- the manual page --------------------------------------------------------------------------------------------------


def format_man_page() -> str:
    """The manual page asides(1), as roff."""
    lines = [
        '.\\" Made by scripts/man_page.py from the declarations of the arguments. Do not edit.',
        '.TH ASIDES 1 "" "asides" "User Commands"',
        ".SH NAME",
        "asides \\- ask language models, and keep their thinking separate from the answer",
        ".SH SYNOPSIS",
        "\\fBasides\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...]",
        ".br",
        '\\fBasides\\fR [\\fIOPTION\\fR ...] "\\fIQUESTION\\fR"',
        ".SH DESCRIPTION",
        _escape("Only the answer goes to standard output. Everything else goes to standard error."),
        _escape("Options and words may come in any order; after --, everything is a word."),
        ".SH COMMANDS",
    ]
    for name, command in list_commands().items():
        lines += _format_command(build_parser(name, command), command.summary)
    lines += [".SH OPTIONS", *_format_entries(iter(OPTIONS))]
    lines += [".SH EXIT STATUS", *_format_entries((str(code.value), code.meaning) for code in Exit)]
    lines += [".SH ENVIRONMENT", *_format_entries(iter(ENVIRONMENT))]
    lines += [".SH FILES", *_format_entries(iter(_FILES))]
    return "\n".join(lines) + "\n"


def _format_command(parser: argparse.ArgumentParser, summary: str) -> Iterator[str]:
    yield f".SS {_escape(' '.join(parser.format_usage().removeprefix('usage: ').split()))}"
    yield _escape(summary)
    for action in list_actions(parser):
        if not isinstance(action, argparse._HelpAction):
            yield ".TP"
            yield _format_name(action)
            yield _escape(format_option_help(parser, action)) or "\\&"
    if parser.epilog:
        yield ".PP"
        yield _escape(" ".join(parser.epilog.split()))


def _format_name(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" \\fI{_escape(name_value(action))}\\fR"
    if not action.option_strings:
        return value.strip()
    return ", ".join(f"\\fB{_escape(option)}\\fR" for option in action.option_strings) + value


def _format_entries(entries: Iterator[tuple[str, str]]) -> Iterator[str]:
    for name, text in entries:
        yield from (".TP", f"\\fB{_escape(name)}\\fR", _escape(text))


def _escape(text: str) -> str:
    escaped = "".join(_ROFF.get(character, character) for character in text)
    escaped = "".join(character if character.isascii() else f"\\[u{ord(character):04X}]" for character in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
