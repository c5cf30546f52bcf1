"""What the help says about `asides` itself: its options, its variables, and the arguments of `help` and `completion`.

Not here: the other commands (arguments), and showing the help (manual).
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable

ENVIRONMENT = (
    ("ASIDES_…", "settings, such as ASIDES_MODEL; `asides config` lists them"),
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
    # The scripts ask for what changes with these.
    parser.add_argument("--candidates", metavar="KIND", help=argparse.SUPPRESS)
    parser.add_argument("--beginning", default="", metavar="TEXT", help=argparse.SUPPRESS)
    parser.epilog = (
        'bash: eval "$(asides completion bash)" in ~/.bashrc.  zsh: the same with zsh in ~/.zshrc, after compinit.  '
        "fish: asides completion fish > ~/.config/fish/completions/asides.fish"
    )
