"""What may be typed: the options of every command, declared. Not here: what becomes of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from asides.cli.exit_codes import Exit


class Command(NamedTuple):
    """A command: what it is for, what it takes, and the module that does it, loaded when it is asked for."""

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    module: str
    function: str = "run"


class Parser(argparse.ArgumentParser):
    """argparse, with errors of two lines: what is wrong, and where the help is."""

    def error(self, message: str) -> NoReturn:
        """End the process with the code for a wrong use."""
        self.exit(Exit.USAGE, f"asides: {message}\nTry `{self.prog} --help`.\n")


def parse(name: str, command: Command, arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments of one command. Options and words may come in any order; behind `--` all are words."""
    parser = Parser(prog=f"asides {name}", description=command.summary, allow_abbrev=False)
    command.declare(parser)
    # argparse has changed its mind about "--" between versions, so it never sees one.
    words = list(arguments)
    literal: list[str] = []
    if "--" in words:
        place = words.index("--")
        words, literal = words[:place], words[place + 1 :]
    read = parser.parse_intermixed_args(words)
    if literal:
        if not hasattr(read, "prompt"):
            parser.error(f"unexpected arguments: {' '.join(literal)}")
        read.prompt = [*read.prompt, *literal]
    return read


_LAST_PORT = 65535


def _port(words: str) -> int:
    if not (words.isdecimal() and int(words) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{words!r} is no port; there are 0 to {_LAST_PORT}")
    return int(words)


# --- ask, chat, explain ---------------------------------------------------------------------------------------------


def _model(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_argument_group("who is asked")
    asked.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model; else the setting `model`")
    asked.add_argument("--base-url", metavar="URL", help="another address for the provider")
    asked.add_argument("--api-key", metavar="KEY", help="the key; better in the environment, where nobody reads along")


def _thinking(parser: argparse.ArgumentParser) -> None:
    thinking = parser.add_argument_group("thinking")
    thinking.add_argument(
        "--thinking",
        metavar="LEVEL",
        help="ask for it: off, auto, on, minimal, low, medium, high, xhigh, max, or a number of tokens",
    )
    shown = thinking.add_mutually_exclusive_group()
    shown.add_argument("-t", "--show-thinking", action="store_true", default=None, help="show it, on stderr")
    shown.add_argument(
        "--hide-thinking",
        action="store_false",
        dest="show_thinking",
        default=None,
        help="do not, whatever the settings say",
    )
    thinking.add_argument(
        "--on-conflict",
        choices=("raise", "adjust"),
        help="what to do when the model does not allow what is asked: stop (the default), or send the nearest",
    )


def _asking(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    _thinking(parser)
    said = parser.add_argument_group("what is said")
    said.add_argument("-s", "--system", metavar="TEXT", help="how the model is to behave")
    said.add_argument(
        "-f", "--file", action="append", default=[], metavar="FILE", help="an image, PDF or text, or a URL; repeatable"
    )
    said.add_argument("--schema", metavar="FILE", help="a JSON schema that the answer has to fit")
    said.add_argument("--max-tokens", type=int, metavar="N", help="the whole output, thinking included")
    said.add_argument("--temperature", type=float, metavar="X")
    said.add_argument("--top-p", type=float, metavar="X")
    said.add_argument("--stop", action="append", metavar="TEXT", help="stop where this comes up; repeatable")
    said.add_argument("--seed", type=int, metavar="N")
    said.add_argument("--extra", metavar="JSON", help="fields of the provider's own, laid over the request")
    carried = parser.add_argument_group("how it is carried out")
    carried.add_argument("--no-stream", action="store_true", help="ask for the answer in one piece")
    carried.add_argument("--timeout", type=float, metavar="SECONDS", help="the longest silence to bear")
    carried.add_argument("--retries", type=int, metavar="N", help="attempts after the first")


def _tools(parser: argparse.ArgumentParser) -> None:
    tools = parser.add_argument_group("tools")
    tools.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function that the model may call; FILE.py:FUNCTION too; without FUNCTION all @asides.tool; repeatable",
    )
    tools.add_argument("--confirm", action="store_true", help="ask before a tool is run")
    tools.add_argument("--max-turns", type=int, metavar="N", help="how often the model is asked at most")


def _figures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--usage", action="store_true", help="tokens, on stderr when the answer is over")
    parser.add_argument("--elapsed", action="store_true", help="seconds spent thinking and in all, on stderr")


def _quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no warnings and no live line")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object with separate fields")


def _words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="the question; what is piped in is put behind it")
    parser.add_argument("--no-stdin", action="store_true", help="do not read the standard input")


def _ask(parser: argparse.ArgumentParser) -> None:
    _words(parser)
    _json(parser)
    _figures(parser)
    _quiet(parser)
    _asking(parser)
    _tools(parser)


def _kept(parser: argparse.ArgumentParser, named: str) -> None:
    kept = parser.add_argument_group("what is kept").add_mutually_exclusive_group()
    kept.add_argument("--conversation", metavar="NAME", help=named)
    kept.add_argument("--continue", dest="go_on", action="store_true", help="go on with the one that was kept last")


def _chat(parser: argparse.ArgumentParser) -> None:
    _figures(parser)
    _quiet(parser)
    _asking(parser)
    _tools(parser)
    _kept(parser, "keep it under this name, or go on with the one kept there")
    parser.epilog = "In the chat: /help lists the commands, Ctrl-C stops an answer, Ctrl-D or /quit leaves."


def _explain(parser: argparse.ArgumentParser) -> None:
    _words(parser)
    _json(parser)
    _quiet(parser)
    _asking(parser)
    _tools(parser)
    _kept(parser, "as the next question of this conversation, which `chat` has kept")


# --- without a network ----------------------------------------------------------------------------------------------


def _recorded(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help=f"{what}; `-` or nothing: standard input")
    _json(parser)
    _quiet(parser)


def _decode(parser: argparse.ArgumentParser) -> None:
    _recorded(parser, "the bytes of a response, as they were recorded")
    _figures_of_usage(parser)
    parser.add_argument("-t", "--show-thinking", action="store_true", default=None, help="show the thinking, on stderr")
    parser.add_argument("second", nargs="?", metavar="FILE", help=argparse.SUPPRESS)  # decode DIALECT FILE, as in code
    parser.add_argument("--dialect", metavar="NAME", help="the language it is in (openai_chat)")
    parser.add_argument("--provider", metavar="NAME", help="who sent it; else the plain row of the dialect")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model that it came from")
    framing = parser.add_mutually_exclusive_group()
    framing.add_argument("--stream", action="store_true", default=None, help="a stream was asked for (the bytes count)")
    framing.add_argument("--whole", action="store_false", dest="stream", default=None, help="one document was")
    parser.add_argument("--status", type=int, default=200, metavar="N", help="its HTTP status (%(default)s)")


def _figures_of_usage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--usage", action="store_true", help="tokens, on stderr")


def _separate(parser: argparse.ArgumentParser) -> None:
    _recorded(parser, "a text with thinking inside")
    parser.add_argument("-t", "--show-thinking", action="store_true", help="show the thinking, on stderr")
    parser.add_argument(
        "--tags", nargs=2, action="append", metavar=("OPEN", "CLOSE"), help="a pair of tags, and no others; repeatable"
    )
    parser.add_argument("--position", choices=("auto", "leading", "anywhere"), default="auto", help="where tags count")
    parser.add_argument(
        "--starts-inside",
        nargs="?",
        choices=("auto", "yes", "no"),
        default="auto",
        const="yes",
        help="whether the text begins in the middle of the thinking (auto: held until it is known)",
    )


# --- what is known --------------------------------------------------------------------------------------------------


def _providers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one provider, with everything that is known of it")
    _json(parser)


def _models(parser: argparse.ArgumentParser) -> None:
    about = "of one provider, or about one model"
    parser.add_argument("name", nargs="?", metavar="PROVIDER[:MODEL]", help=about)
    parser.add_argument("-m", "--model", metavar="PROVIDER[:MODEL]", help=about)
    _json(parser)
    asked = parser.add_argument_group("what the provider offers today")
    asked.add_argument("--refresh", action="store_true", help="ask it for its models, and compare with what is known")
    asked.add_argument("--base-url", metavar="URL", help="another address for the provider")
    asked.add_argument("--api-key", metavar="KEY", help="the key; better in the environment, where nobody reads along")


def _config(parser: argparse.ArgumentParser) -> None:
    _json(parser)


def _stage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="%(default)s")
    parser.add_argument("--port", type=_port, default=8765, help="%(default)s; 0 takes a free one")
    parser.add_argument("--script", metavar="FILE", help="the scenes to play, as JSON; else it answers by itself")
    parser.add_argument("--key", metavar="KEY", help="the key that clients must bring")


COMMANDS: dict[str, Command] = {
    "ask": Command("Ask a model one question. The answer goes to stdout, alone.", _ask, "asides.cli.ask"),
    "chat": Command("Talk with a model; what was said before goes along.", _chat, "asides.cli.chat"),
    "explain": Command(
        "Show the request that `ask` would send, and why it looks so. Sends nothing.", _explain, "asides.cli.explain"
    ),
    "decode": Command("Take a recorded response apart: answer and thinking.", _decode, "asides.cli.decode"),
    "separate": Command(
        "Take the thinking out of a text with tags in it, while it comes.", _separate, "asides.cli.separate"
    ),
    "providers": Command(
        "Which providers are known, or all about one.", _providers, "asides.cli.providers", "run_providers"
    ),
    "models": Command("What is known of models: who thinks, and how.", _models, "asides.cli.providers", "run_models"),
    "config": Command(
        "Every setting, its value and where it comes from.", _config, "asides.cli.providers", "run_config"
    ),
    "stage": Command("Play a provider on this machine, without a network or a key.", _stage, "asides.cli.stage"),
}


def describe() -> str:
    """The help of `asides` itself."""
    commands = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    codes = "\n".join(f"  {code.value:<10} {code.meaning}" for code in Exit)
    return (
        "usage: asides COMMAND [OPTION …]\n\n"
        "Ask language models: the answer on stdout, their thinking apart.\n\n"
        f"commands:\n{commands}\n\n"
        "options:\n  -h, --help   this text; `asides COMMAND --help` for a command\n  --version    the version\n\n"
        f"exit codes:\n{codes}\n\n"
        "environment:\n"
        "  ASIDES_…     settings, such as ASIDES_MODEL; `asides config` lists them\n"
        "  NO_COLOR     no colours\n"
        "  ASIDES_DEBUG=1  tracebacks\n"
    )
