"""Declares the arguments of the commands that look after histories, keys and servers: doctor, keys, probe and
connect.
"""

from __future__ import annotations

import argparse

_LAST_PORT = 65535


def declare_doctor(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides doctor`."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a list of messages as OpenAI, Anthropic, Responses or Gemini have them, a whole request, a session file "
        "with a message in each line, or a saved conversation; `-` reads standard input. Without it, the servers of "
        "the settings `store` and `gateway.redis` are asked whether they can be used",
    )
    parser.add_argument("--to", metavar="PROVIDER:MODEL", help="the model that gets the history next")
    parser.add_argument(
        "--fix",
        metavar="FILE",
        help="write the repaired history here, in the same format; `-` prints it. If this is the input file, the "
        "original is kept as FILE.orig",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="instead, remove the envelopes of a relay from the history, and print it or write it to the FILE of --fix",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with the findings")
    about = parser.add_argument_group("what the file does not say")
    about.add_argument(
        "--from", dest="origin", metavar="PROVIDER:MODEL", help="the model that made the thinking in the file"
    )
    about.add_argument("--base-url", metavar="URL", help="the address of the model, if it is not the provider's own")
    about.add_argument("--other-account", action="store_true", help="the thinking was made in another account")
    about.add_argument(
        "--thinking",
        metavar="LEVEL",
        help="how the next request thinks, if the file has no settings: off, high, 8000 …",
    )
    about.add_argument(
        "--format",
        default="auto",
        metavar="FORMAT",
        help="the format of the file: openai, anthropic, responses, gemini or asides (default: detected)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only what would be refused")
    parser.epilog = (
        "Exit code: 0 if the history is sound or was repaired with --fix, or if the servers are sound; 1 if not; 2 if "
        "the history cannot be read."
    )


def declare_keys(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides keys`."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("set", "list", "remove", "path"),
        default="list",
        help="set: store a key, typed or piped; list: where keys come from (default); path: where the file is",
    )
    parser.add_argument("name", nargs="?", metavar="PROVIDER", help="whose key to set or to remove")
    # A key does not belong here; the command says so.
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--any-name", action="store_true", help="set: accept a name that only your code defines")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "The environment wins over the key file. No command shows a key."


def declare_probe(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides probe`."""
    parser.add_argument("base_url", metavar="BASE_URL", help="the address of the server, such as http://127.0.0.1:8000")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model to ask; default: the first that it lists")
    parser.add_argument("--name", metavar="NAME", help="the name of the row; default: from the address")
    parser.add_argument("--dialect", metavar="DIALECT", help="look only for this dialect, such as openai_chat")
    parser.add_argument(
        "--api-key", metavar="KEY", help="the API key; --key-env is safer: others can read command lines"
    )
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key; the row names it too")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="at most 6 requests instead of 12")
    extent.add_argument("--thorough", action="store_true", help="at most 40 requests: every endpoint and more settings")
    parser.add_argument("--max-requests", type=int, metavar="N", help="upper limit of answered requests")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of each reply (default: 512)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="for each request (default: 120)")
    parser.add_argument("--dry-run", action="store_true", help="print the requests with their bodies, and send nothing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("-y", "--yes", action="store_true", help="send without asking first")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print each request")
    parser.epilog = "What it prints is a settings file: asides probe URL >> ~/.config/asides/asides.toml"


def declare_connect(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides connect`."""
    parser.add_argument(
        "client",
        nargs="?",
        metavar="CLIENT",
        help="claude, codex, gemini, opencode, qwen, openwebui, openai (its libraries), or anthropic (its libraries)",
    )
    parser.add_argument("--url", metavar="URL", help="the address of the gateway (default: http://127.0.0.1:4242)")
    parser.add_argument(
        "-m", "--model", metavar="PROVIDER:MODEL", help="a model, an alias or a route (default: that of the settings)"
    )
    parser.add_argument(
        "--small-model", metavar="PROVIDER:MODEL", help="for the client's side requests (default: the same model)"
    )
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--key-env", metavar="NAME", help="the variable with the gateway's key (default: ASIDES_GATEWAY_KEY, if set)"
    )
    keys.add_argument(
        "--key", metavar="KEY", help="the key itself, as it is; --key-env is safer: others can read command lines"
    )
    parser.add_argument(
        "--dialect",
        choices=("chat", "responses", "anthropic", "gemini"),
        help="which dialect the client speaks, where it speaks several: opencode (default: chat)",
    )
    parser.add_argument(
        "--shell", choices=("bash", "zsh", "fish", "powershell"), help="the shell that reads the lines (default: yours)"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--write",
        action="store_true",
        help="put it into the client's own settings file; other settings stay, and the original file is kept beside it",
    )
    action.add_argument("--undo", action="store_true", help="remove from the file what --write added")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all of it")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only what the shell or the file gets")
    parser.epilog = 'In bash and zsh: eval "$(asides connect claude)". No key is written unless --key gives one.'


def parse_port(text: str) -> int:
    """A port, for argparse: 0 lets the system choose one."""
    if not (text.isdecimal() and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number: use 0 to {_LAST_PORT}")
    return int(text)
