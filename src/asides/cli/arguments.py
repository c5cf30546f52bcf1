"""Declares the commands and their arguments for argparse."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Mapping
from functools import cache

from asides.cli.ask_arguments import add_address, add_call
from asides.cli.exit_codes import Exit
from asides.cli.parse_arguments import (
    ENVIRONMENT,
    OPTIONS,
    Command,
    declare_completion,
    declare_help,
    format_list,
)
from asides.cli.service_arguments import declare_connect, declare_doctor, declare_keys, declare_probe
from asides.packages import COMMANDS as GROUP
from asides.packages import EXTRAS, list_entries, load_entry

# --- ask, chat, explain -----------------------------------------------------------------------------------------------


def _add_tools(parser: argparse.ArgumentParser) -> None:
    tools = parser.add_argument_group("tools")
    tools.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function the model may call, also as FILE.py:FUNCTION; without FUNCTION, every @asides.tool of the "
        "module; repeatable",
    )
    tools.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="SERVER",
        help="an MCP server whose tools the model may call: a command line, a URL, a NAME from [mcp.NAME] of the "
        "settings, or a JSON file with mcpServers; repeatable",
    )
    tools.add_argument("--confirm", action="store_true", help="ask before each tool call")
    tools.add_argument("--max-turns", type=int, metavar="N", help="limit of requests to the model in one run")


def _add_figures(parser: argparse.ArgumentParser) -> None:
    _add_usage(parser)
    parser.add_argument("--elapsed", action="store_true", help="print seconds of thinking and in total on stderr")


def _add_usage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--usage", action="store_true", help="print token counts, thinking time and cost on stderr")


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no warnings and no live status line")


def _add_plain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="print Markdown as it is, also on a terminal")


def _add_json(parser: argparse.ArgumentParser, help_text: str = "print one JSON object with separate fields") -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def _add_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="the question; piped text is added after it")
    parser.add_argument("--no-stdin", action="store_true", help="do not read standard input")


def _add_conversation(parser: argparse.ArgumentParser, help_text: str) -> None:
    saved = parser.add_argument_group("saved conversations").add_mutually_exclusive_group()
    saved.add_argument("--conversation", metavar="NAME", help=help_text)
    saved.add_argument(
        "-c",
        "--continue",
        dest="continue_last",
        action="store_true",
        help="continue the conversation that was saved last",
    )


def _add_each(parser: argparse.ArgumentParser) -> None:
    many = parser.add_argument_group("many questions")
    many.add_argument(
        "--each",
        metavar="FILE",
        help='ask every question of a file: one JSON text, or object such as {"prompt": …}, a line (.txt: plain '
        "lines); `-` reads standard input",
    )
    many.add_argument("--concurrency", type=int, metavar="N", help="parallel requests (default: 8)")
    many.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="append the answers here, one JSON object a line; questions that are answered in it are not asked again",
    )


def _declare_ask(parser: argparse.ArgumentParser) -> None:
    _add_prompt(parser)
    _add_each(parser)
    _add_json(parser)
    parser.add_argument("-x", "--extract", action="store_true", help="print only the code of the last fenced block")
    _add_plain(parser)
    _add_figures(parser)
    _add_quiet(parser)
    add_call(parser)
    _add_tools(parser)
    _add_conversation(parser, "save the question and the answer under this name, or continue what is saved there")
    parser.epilog = '`asides "QUESTION"` is short for `asides ask "QUESTION"`.'


def _declare_chat(parser: argparse.ArgumentParser) -> None:
    _add_plain(parser)
    _add_figures(parser)
    _add_quiet(parser)
    add_call(parser)
    _add_tools(parser)
    _add_conversation(parser, "save the chat under this name, or continue the one saved there")
    parser.add_argument("--no-keep", action="store_true", help="do not keep this chat")
    parser.epilog = "In the chat: /help lists the commands, Ctrl-C stops an answer, Ctrl-D or /quit leaves."


def _declare_explain(parser: argparse.ArgumentParser) -> None:
    _add_prompt(parser)
    _add_json(parser)
    _add_quiet(parser)
    add_call(parser)
    _add_tools(parser)
    _add_conversation(parser, "explain the next question of this saved conversation")


def _declare_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "show", "search", "export", "rename", "rm"),
        help="list: the saved conversations, the last one first (default); show NAME: print one; search WORD …: find "
        "messages with all these words; export NAME: print one in the format of --format; rename NAME NEW: give it "
        "another name; rm NAME …: delete",
    )
    parser.add_argument(
        "words", nargs="*", metavar="NAME", help="names, or the words to search; show and export take the last one"
    )
    _add_json(parser, "print JSON (list, show, search)")
    _add_plain(parser)
    parser.add_argument("-t", "--show-thinking", action="store_true", help="with the thinking, where it was saved")
    parser.add_argument(
        "--format",
        default="json",
        metavar="FORMAT",
        help="the format of export: json, our own, which Conversation.load reads (default); markdown; or messages as "
        "openai, anthropic or responses have them",
    )
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="at most N conversations or messages")
    parser.add_argument("--all", action="store_true", help="rm: delete every conversation")
    parser.add_argument("-y", "--yes", action="store_true", help="rm: delete without asking")
    _add_quiet(parser)


# --- without a network ------------------------------------------------------------------------------------------------


def _add_recording(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help=f"{what}; `-` or nothing reads standard input"
    )
    _add_json(parser)
    _add_quiet(parser)


def _declare_decode(parser: argparse.ArgumentParser) -> None:
    _add_recording(parser, "the recorded bytes of a response")
    _add_usage(parser)
    parser.add_argument("-t", "--show-thinking", action="store_true", default=None, help="print the thinking on stderr")
    parser.add_argument("second", nargs="?", metavar="FILE", help=argparse.SUPPRESS)  # decode DIALECT FILE, as in code
    parser.add_argument(
        "--dialect", metavar="NAME", help="the wire language of the response; default: recognised from its bytes"
    )
    parser.add_argument("--provider", metavar="NAME", help="who sent it; default: the plain provider of the dialect")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model that it came from")
    framing = parser.add_mutually_exclusive_group()
    framing.add_argument(
        "--stream", action="store_true", default=None, help="the request asked for a stream (what arrived is detected)"
    )
    framing.add_argument(
        "--whole", action="store_false", dest="stream", default=None, help="the request asked for one document"
    )
    parser.add_argument("--status", type=int, default=200, metavar="N", help="its HTTP status (default: %(default)s)")


def _declare_separate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a text with thinking inside, or files of rows; `-` or nothing reads standard input",
    )
    _add_json(parser, "print one JSON object with separate fields; with rows, the report as JSON")
    _add_quiet(parser)
    parser.add_argument("-t", "--show-thinking", action="store_true", help="print the thinking on stderr")
    parser.add_argument(
        "--tags", nargs=2, action="append", metavar=("OPEN", "CLOSE"), help="use only this pair of tags; repeatable"
    )
    parser.add_argument("--position", choices=("auto", "leading", "anywhere"), help="where in the text tags count")
    parser.add_argument(
        "--starts-inside",
        nargs="?",
        choices=("auto", "yes", "no"),
        const="yes",
        help="whether the text begins inside the thinking (auto: print nothing until that is known)",
    )
    _add_rows(parser)


def _add_rows(parser: argparse.ArgumentParser) -> None:
    rows = parser.add_argument_group(
        "rows of files (JSON lines, JSON arrays, CSV, Parquet; also with gzip or zstd)",
        "With one of the first three, every row gets the columns answer, thinking and commentary.",
    )
    rows.add_argument("--column", metavar="NAME", help="the column with the text of a model")
    rows.add_argument("--messages", metavar="NAME", help="the column with a conversation, in any known format")
    rows.add_argument(
        "--response", action="store_true", help="each row, or its --column, is the body of a recorded response"
    )
    rows.add_argument("-o", "--output", metavar="FILE", help="write the rows here; a run that was stopped continues")
    for name in ("answer", "thinking", "commentary"):
        rows.add_argument(f"--{name}-column", default=name, metavar="NAME", help=f"the new column for the {name}")
    rows.add_argument("--verdict-column", metavar="NAME", help="a new column that says what was found in the row")
    rows.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="read tags as this model writes them")
    rows.add_argument("--to", metavar="FORMAT", help="write the conversation in this format as well, such as harmony")
    rows.add_argument("--into", metavar="NAME", help="the column for --to (default: the one that is read)")
    rows.add_argument("--prompt-column", metavar="NAME", help="with --column and --to: the column with the question")
    rows.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="VERDICT",
        help="count rows with this verdict as decided, such as unclosed or empty_answer; repeatable",
    )
    rows.add_argument(
        "--undecided", metavar="FILE", help="list the undecided rows here (default: OUTPUT.undecided.jsonl)"
    )
    rows.add_argument("--show", type=int, default=0, metavar="N", help="show the content of N rows of each verdict")
    rows.add_argument("--stats", action="store_true", help="add lengths and shares to the report, by model and day")
    rows.add_argument("--stats-page", metavar="FILE", help="write these statistics as an HTML page with plots")
    rows.add_argument("--processes", type=int, default=1, metavar="N", help="number of processes (default: 1)")
    rows.add_argument(
        "--via", choices=("ray",), help="separate files and folders on a Ray cluster; -o names a folder for the results"
    )
    rows.add_argument(
        "--ray-address", metavar="ADDRESS", help="--via ray: the cluster (default: RAY_ADDRESS, or local)"
    )
    rows.add_argument("--actors", type=int, metavar="N", help="--via ray: number of actors (default: one for each CPU)")
    rows.add_argument("--input-format", metavar="FORMAT", help="jsonl, json, csv or parquet, if the name does not say")
    rows.add_argument("--output-format", metavar="FORMAT", help="the same for the output")


def _declare_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files or folders: JSON lines, logs, JSON, CSV, Parquet and SQLite databases; `-` reads standard input",
    )
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model of texts that name none; some have own tags")
    parser.add_argument(
        "--tags", nargs=2, action="append", metavar=("OPEN", "CLOSE"), help="look only for this pair; repeatable"
    )
    parser.add_argument(
        "--position", choices=("auto", "leading", "anywhere"), default="auto", help="where in an answer tags count"
    )
    parser.add_argument("--places", type=int, default=20, metavar="N", help="how many places to list (default: 20)")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="also print the content of N places of each kind"
    )
    parser.add_argument(
        "--fix", metavar="OUT", help="write a cleaned copy to this file; of several files, to this folder"
    )
    _add_json(parser, "print the report as one JSON object")
    _add_quiet(parser)


# --- providers, models, config, stage ---------------------------------------------------------------------------------


def _declare_providers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one provider, with everything known about it")
    _add_json(parser, "print JSON")


def _declare_models(parser: argparse.ArgumentParser) -> None:
    about = "the models of one provider, or one model"
    parser.add_argument("name", nargs="?", metavar="PROVIDER[:MODEL]", help=about)
    parser.add_argument("-m", "--model", metavar="PROVIDER[:MODEL]", help=about)
    parser.add_argument("--all", action="store_true", help="every rule of every provider")
    _add_json(parser, "print every rule as JSON, or those of the provider or model")
    offered = parser.add_argument_group("what the provider offers today")
    offered.add_argument(
        "--refresh", action="store_true", help="ask the provider for its models, and compare them with the rules"
    )
    add_address(offered)


def _declare_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("get", "set", "unset", "trust", "untrust"),
        help="get, set, unset: one setting, written to your own file; trust: let ./asides.toml set everything, as long "
        "as it does not change; untrust: undo that",
    )
    parser.add_argument("words", nargs="*", metavar="NAME [VALUE]", help="the setting, such as timeouts.idle")
    parser.add_argument("-y", "--yes", action="store_true", help="trust without asking")
    _add_json(parser, "print JSON")


COMMANDS: dict[str, Command] = {
    "ask": Command("Ask a model one question. Only the answer goes to stdout.", _declare_ask, "asides.cli.ask"),
    "chat": Command("Chat with a model, question after question.", _declare_chat, "asides.cli.chat"),
    "history": Command(
        "List, show, search, export and delete saved conversations.", _declare_history, "asides.cli.history"
    ),
    "explain": Command(
        "Show the request that `ask` would send, and why. Sends nothing.", _declare_explain, "asides.cli.explain"
    ),
    "decode": Command("Split a recorded response into answer and thinking.", _declare_decode, "asides.cli.decode"),
    "separate": Command(
        "Remove inline thinking from a text or from files of rows.",
        _declare_separate,
        "asides.cli.separate",
    ),
    "audit": Command("Find thinking where it must not be.", _declare_audit, "asides.cli.audit"),
    "doctor": Command(
        "Find what a model would refuse in a history, and repair it; check servers.",
        declare_doctor,
        "asides.cli.doctor",
    ),
    "providers": Command("List the providers, or show one in full.", _declare_providers, "asides.cli.providers"),
    "models": Command(
        "List the models to write after -m, and what is known about each.", _declare_models, "asides.cli.models"
    ),
    "probe": Command(
        "Detect how an unknown server returns thinking; print a provider entry.", declare_probe, "asides.cli.probe"
    ),
    "keys": Command("Store API keys, and list where keys come from.", declare_keys, "asides.cli.keys"),
    "config": Command(
        "Show settings and their origins, change one, or trust a folder's file.", _declare_config, "asides.cli.config"
    ),
    "connect": Command(
        "Print or write the settings that point a client at the gateway.", declare_connect, "asides.cli.connect"
    ),
    "help": Command("Show the help of a command, or print the manual page.", declare_help, "asides.cli.manual"),
    "completion": Command(
        "Print a script that completes commands in your shell.", declare_completion, "asides.cli.completion"
    ),
}


@cache
def list_commands() -> Mapping[str, Command]:
    """The commands of the library, and behind them those of the packages that are installed."""
    return {**COMMANDS, **{name: load_entry(GROUP, name) for name in list_entries(GROUP) if name not in COMMANDS}}


_GROUPS = {
    "ask": ("ask", "chat", "history", "explain"),
    "set up": ("keys", "models", "providers", "config", "completion", "help"),
    "serve and scale": ("serve", "connect", "gateway", "store", "batch"),
    "recorded responses, histories, servers": ("decode", "separate", "audit", "doctor", "probe", "stage"),
}
_EXAMPLES = (
    'asides "Why is the sky blue?"',
    'git diff | asides "Write a commit message."',
    "asides chat -m anthropic:claude-haiku-4-5 -t",
)


def format_help() -> str:
    """The help of `asides` itself, wrapped to the terminal."""
    about = "Ask language models. The answer goes to stdout, the thinking is kept separate."
    listed = "".join(f"  {example}\n" for example in _EXAMPLES)
    return (
        "usage: asides COMMAND [OPTION …]\n"
        '       asides [OPTION …] "QUESTION"\n\n'
        f"{textwrap.fill(about, max(shutil.get_terminal_size().columns, 20))}\n\n"
        f"examples:\n{listed}\n{_format_commands()}"
        f"options:\n{format_list(OPTIONS, 15)}\n"
        f"environment:\n{format_list(ENVIRONMENT, 15)}\n"
        "`asides help exit-codes` lists the exit codes.\n"
    )


def _format_commands() -> str:
    """The commands in their groups, also those whose package is missing; at the end those that no group names."""
    commands = list_commands()
    grouped = {name for names in _GROUPS.values() for name in names}
    groups = {**_GROUPS, "more": tuple(name for name in commands if name not in grouped)}
    lists = {
        title: format_list(
            (name, commands[name].summary if name in commands else f"(needs asides[{EXTRAS[name]}])") for name in names
        )
        for title, names in groups.items()
    }
    return "".join(f"{title}:\n{listed}\n" for title, listed in lists.items() if listed)


def format_exit_codes() -> str:
    """The exit codes of all commands, wrapped to the terminal."""
    return f"exit codes:\n{format_list((str(code.value), code.meaning) for code in Exit)}"
