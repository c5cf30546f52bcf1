"""Parses the arguments of one command with argparse, and says what is meant where an option is not known.

Also what the help says about `asides` itself, with the arguments of `help` and `completion`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from asides.cli.exit_codes import Exit


class Command(NamedTuple):
    """A command: its summary, its arguments, and the module with its `run`, which is loaded when needed."""

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    module: str


_UNKNOWN = "unrecognized arguments: "
_NO_ACTION = "the following arguments are required: action"
# What other programs call our options.
_SYNONYMS = {
    "--effort": "--thinking",
    "--reasoning": "--thinking",
    "--reasoning-effort": "--thinking",
    "--think": "--thinking",
    "--key": "--api-key",
    "--url": "--base-url",
    "--endpoint": "--base-url",
    "--system-prompt": "--system",
    "--attachment": "--file",
    "--attach": "--file",
    "--image": "--file",
    "--tool": "--tools",
    "--verbose": "--show-thinking",
}
_WRONG_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)
# What other programs call our actions.
_SYNONYMS_OF_ACTIONS = {
    "add": ("set",),
    "del": ("rm", "remove", "unset"),
    "delete": ("rm", "remove", "unset"),
    "find": ("search",),
    "ls": ("list",),
    "mv": ("rename",),
    "remove": ("rm", "unset"),
    "rm": ("remove", "unset"),
}


class Parser(argparse.ArgumentParser):
    """argparse, with errors of two lines: what is wrong, and where the help is."""

    color: bool
    """Python 3.14 colours the help on a terminal. Ours goes through `Terminal`, which shows escapes as characters."""

    def error(self, message: str) -> NoReturn:
        """End the process with the exit code for wrong usage."""
        if message.startswith(_UNKNOWN):
            message = self._explain_unknown(message.removeprefix(_UNKNOWN))
        elif (wrong := _WRONG_CHOICE.search(message)) is not None:
            message += _suggest_choice(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        elif message.startswith(_NO_ACTION):
            message = f"`{self.prog}` needs an action: {self._list_actions()}"
        from asides.values.errors import redact_keys

        self.exit(Exit.USAGE, f"asides: {redact_keys(message)}\nTry `{self.prog} --help`.\n")

    def _list_actions(self) -> str:
        """What the command can do, as a choice."""
        words = [str(word) for action in self._actions if action.dest == "action" for word in action.choices or ()]
        return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))

    def _explain_unknown(self, arguments: str) -> str:
        """The error for arguments that argparse does not know; for an option, with the likely intended one."""
        option = next((word for word in arguments.split() if word.startswith("-")), None)
        known = self._option_string_actions
        if option is None:
            named = next((word for word in arguments.split() if ":" in word), None)
            hint = f"; for a model, write -m {named}" if named is not None and "--model" in known else ""
            return f"unexpected arguments: {arguments}{hint}"
        option = option.partition("=")[0]
        hint = ""
        if option in ("-V", "--version"):
            hint = "; `asides --version` shows the version"
        elif owners := _find_owners(option):
            hint = f"; it belongs to {', '.join(owners)}"
        elif (meant := _find_meant(option, known)) is not None:
            hint = f"; did you mean {meant}?"
        elif not option.startswith("--"):
            hint = "; words that begin with - come after --"
        return f"`{self.prog}` has no option {option}{hint}"


def _find_meant(option: str, known: Mapping[str, argparse.Action]) -> str | None:
    """The option that was probably meant; None where nothing is near."""
    from asides.values.error_words import find_near_name  # Parsing needs nothing else of the library.

    shown = [name for name, action in known.items() if action.help != argparse.SUPPRESS and name.startswith("--")]
    written = f"--{option.lstrip('-').replace('_', '-').lower()}"
    for candidate in (written, _SYNONYMS.get(written, "")):
        if candidate in shown:
            return candidate
    beginning = [name for name in shown if name.startswith(written)]
    if len(beginning) == 1:
        return beginning[0]
    near = find_near_name(written[2:], (name[2:] for name in shown), cutoff=0.7)
    return None if near is None else f"--{near}"


def _suggest_choice(word: str, choices: list[str]) -> str:
    """The choice that was probably meant, as a question; "" where nothing is near."""
    from asides.values.error_words import find_near_name

    same = [choice for choice in _SYNONYMS_OF_ACTIONS.get(word, ()) if choice in choices]
    near = same[0] if same else find_near_name(word, choices, cutoff=0.7)
    return "" if near is None else f"; did you mean {near}?"


def _find_owners(option: str) -> list[str]:
    """The other commands that have this option."""
    from asides.cli.arguments import list_commands

    parsers = {name: build_parser(name, command) for name, command in list_commands().items()}
    return [f"`asides {name}`" for name, parser in parsers.items() if option in parser._option_string_actions]


def build_parser(name: str, command: Command) -> Parser:
    """The parser of one command."""
    parser = Parser(prog=f"asides {name}", description=command.summary, allow_abbrev=False)
    parser.color = False
    command.declare(parser)
    # The help lists the options below; a usage of all of them fills the screen.
    parser.usage = " ".join(["%(prog)s [OPTION …]", *map(_format_word, list_words(parser))])
    return parser


def _format_word(action: argparse.Action) -> str:
    name = name_value(action)
    if action.nargs in ("*", "+"):
        name = f"{name} …"
    return f"[{name}]" if action.nargs in ("?", "*") else name


def parse_arguments(name: str, command: Command, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of one command. Options and words may come in any order; after `--`, all are words."""
    parser = build_parser(name, command)
    # argparse treats "--" differently between versions, so it never gets one.
    words = list(arguments)
    literal: list[str] = []
    if "--" in words:
        place = words.index("--")
        words, literal = words[:place], words[place + 1 :]
    parsed = parser.parse_intermixed_args(words)
    if literal and not hasattr(parsed, "prompt") and not hasattr(parsed, "words"):
        parser.error(f"unexpected arguments: {' '.join(literal)}")
    if hasattr(parsed, "words"):
        parsed.words = [*parsed.words, *literal]
    if hasattr(parsed, "prompt"):
        # The words before "--"; only among them may the first be a model.
        parsed.free_words = len(parsed.prompt)
        parsed.prompt = [*parsed.prompt, *literal]
    return parsed


def list_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments of a command that its help shows, in its order."""
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


def list_words(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments without a hyphen that the help shows."""
    return [action for action in list_actions(parser) if not action.option_strings]


def name_value(action: argparse.Action) -> str:
    """The name of a value, as the help shows it."""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is None and action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.metavar or action.dest.upper()


def format_option_help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help of an argument, its default filled in."""
    return parser._get_formatter()._expand_help(action) if action.help else ""


# --- the help of `asides` itself --------------------------------------------------------------------------------------

ENVIRONMENT = (
    ("ASIDES_…", "settings, such as ASIDES_MODEL; `asides config` lists them"),
    ("ASIDES_CONFIG", "the settings file to read instead of the ones found"),
    ("ASIDES_STATE", "the folder of saved conversations and of the input history"),
    ("ASIDES_STAGE=1", "send every request to an offline server; needs no key"),
    ("ASIDES_DEBUG=1", "show tracebacks"),
    ("NO_COLOR", "no colours"),
)


OPTIONS = (
    ("-h, --help", "show this help; `asides help COMMAND` shows the help of a command"),
    ("-V, --version", "show the version"),
)
"""The options of `asides` itself."""


def format_list(entries: Iterable[tuple[str, str]], column: int = 10) -> str:
    """Names and their texts, which begin at a column and are wrapped to the terminal."""
    lines: list[str] = []
    for name, text in entries:
        first, *rest = textwrap.wrap(text, max(shutil.get_terminal_size().columns - column - 3, 20))
        lines += [f"  {name:<{column}} {first}", *(f"  {'':<{column}} {line}" for line in rest)]
    return "".join(f"{line}\n" for line in lines)


def declare_help(parser: argparse.ArgumentParser) -> None:
    """The arguments of `asides help`."""
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command to explain; default: all of them")
    parser.add_argument("--man", action="store_true", help="print the manual page: asides help --man | man -l -")


def declare_completion(parser: argparse.ArgumentParser) -> None:
    """The arguments of `asides completion`."""
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the shell to print a script for")
    parser.epilog = (
        'bash: eval "$(asides completion bash)" in ~/.bashrc.  zsh: the same with zsh in ~/.zshrc, after compinit.  '
        "fish: asides completion fish > ~/.config/fish/completions/asides.fish"
    )
