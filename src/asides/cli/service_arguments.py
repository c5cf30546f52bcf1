"""Declares the arguments of the commands that look after histories, keys and servers: doctor, clean, keys, probe,
stage, serve, connect, store and batch.
"""

from __future__ import annotations

import argparse

from asides.cli.ask_arguments import add_call

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
        "Exit code: 0 if the history was sound, or the servers are; 1 if not, also with --fix; 2 if the history cannot "
        "be read."
    )


def declare_clean(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides clean`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="JSON with a conversation in any format, or a session file with one object in each line; `-` reads "
        "standard input",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the history here instead of printing it. If this is the input file, the original is kept as "
        "FILE.orig",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say what was removed")


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
    parser.add_argument("--any-name", action="store_true", help="set: accept a name that only your own code knows")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "The environment wins over the key file. No command shows a key."


def declare_probe(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides probe`."""
    parser.add_argument("base_url", metavar="BASE_URL", help="the address of the server, such as http://127.0.0.1:8000")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model to ask; default: the first that it lists")
    parser.add_argument("--name", metavar="NAME", help="the name of the row; default: from the address")
    parser.add_argument("--dialect", metavar="DIALECT", help="look for this dialect alone, such as openai_chat")
    parser.add_argument(
        "--api-key", metavar="KEY", help="the API key; --key-env is safer: others can read command lines"
    )
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key; the row names it too")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="at most 6 requests instead of 12")
    extent.add_argument("--thorough", action="store_true", help="at most 40 requests: every endpoint and more settings")
    parser.add_argument("--max-requests", type=int, metavar="N", help="the most requests that are answered")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of each reply (default: 512)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="for each request (default: 120)")
    parser.add_argument("--dry-run", action="store_true", help="print the requests with their bodies, and send nothing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("-y", "--yes", action="store_true", help="send without asking first")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print each request")
    parser.epilog = "What it prints is a settings file: asides probe URL >> ~/.config/asides/asides.toml"


def declare_stage(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides stage`."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=parse_port, default=8765, help="its port (default: %(default)s); 0 picks a free one"
    )
    parser.add_argument("--script", metavar="FILE", help="a JSON file with the scenes to play; default: do sums")
    parser.add_argument("--key", metavar="KEY", help="the API key that clients must send")
    parser.add_argument(
        "--rules",
        choices=("strict", "lenient"),
        default="strict",
        help="strict: refuse what the real servers refuse; lenient: answer it, and report it (default: %(default)s)",
    )
    parser.add_argument("--date", metavar="DAY", help="the day whose rules apply, such as 2026-11-15 (default: today)")


def declare_serve(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides serve`. Without one, the setting of [gateway] counts."""
    parser.add_argument("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=parse_port, help="its port (default: 4242); 0 picks a free one")
    parser.add_argument("--workers", type=int, metavar="N", help="the processes that answer (default: 1)")
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="a file with the keys that clients have to send one of, one in each line; ASIDES_GATEWAY_KEY or `asides "
        "keys set gateway` do as well. An address that other machines reach needs one",
    )
    kept = parser.add_argument_group("what is kept")
    kept.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where reasoning state and conversations are kept (default: where `asides history` finds them); with the "
        "setting `store` (ASIDES_STORE) they are in PostgreSQL",
    )
    kept.add_argument(
        "--state",
        choices=("off", "carry-only", "memory", "store"),
        help="reasoning state between turns: not at all, only with the client, in memory, or also in the folder "
        "(default)",
    )
    answers = parser.add_argument_group("what is answered")
    answers.add_argument("--no-page", action="store_false", default=None, dest="page", help="do not serve the page")
    answers.add_argument(
        "--thinking-field",
        choices=("reasoning_content", "reasoning", "thinking", "reasoning_details"),
        metavar="NAME",
        help="the field for thinking in chat completions: reasoning_content (default), reasoning, thinking or "
        "reasoning_details",
    )
    answers.add_argument("--max-body", type=float, metavar="MB", help="the longest request in megabytes (default: 64)")
    answers.add_argument(
        "--ping", type=float, metavar="SECONDS", help="send a ping after this much silence of the model (default: 10)"
    )
    answers.add_argument(
        "--drain", type=float, metavar="SECONDS", help="how long replies may take to end after Ctrl-C (default: 30)"
    )
    parser.add_argument(
        "--log", choices=("text", "json", "off"), help="a line for each request, on stderr (default: text)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print the greeting")
    parser.epilog = (
        "The address is printed on stdout. Ctrl-C and SIGTERM let replies end, a second one does not; SIGHUP, and a "
        "change of asides.toml, reload the settings."
    )


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
        help="put it into the client's own settings file; everything else in there stays, and the file as it was is "
        "kept beside it",
    )
    action.add_argument("--undo", action="store_true", help="take out of the file what --write put in")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all of it")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only what the shell or the file gets")
    parser.epilog = 'In bash and zsh: eval "$(asides connect claude)". No key is written unless --key gives one.'


def declare_gateway(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides gateway`."""
    parser.add_argument(
        "action",
        choices=("key", "usage"),
        help="key create, key list, key revoke ID|NAME: the keys of clients; usage: the tokens and costs of requests",
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="after `key`: create, list, or revoke with an ID or NAME"
    )
    made = parser.add_argument_group("key create")
    made.add_argument("--name", metavar="TEXT", help="what the key is for, as the list shows it")
    made.add_argument(
        "--tenant", metavar="TEXT", help="share reasoning state and conversations with the other keys of this tenant"
    )
    made.add_argument(
        "-m",
        "--model",
        action="append",
        metavar="PATTERN",
        help="a model, route or alias that it may ask, such as 'anthropic:*' (again for more; default: all)",
    )
    made.add_argument("--rpm", type=int, metavar="COUNT", help="the most requests in a minute")
    made.add_argument("--tpm", type=int, metavar="COUNT", help="the most tokens in a minute, input and output")
    made.add_argument("--budget-day", metavar="DOLLARS", help="the most US dollars in a day (UTC)")
    made.add_argument("--budget-month", metavar="DOLLARS", help="the most US dollars in a month (UTC)")
    made.add_argument(
        "--expires",
        metavar="WHEN",
        help="when it expires: after 12h, 30d or 4w, or at a date in UTC such as 2027-01-31",
    )
    used = parser.add_argument_group("usage")
    used.add_argument(
        "--since",
        metavar="WHEN",
        help="add up the last 24h, 7d or 4w, or since a date in UTC such as 2026-11-01 (default: 7d)",
    )
    used.add_argument("--by", metavar="WHAT", help="add up by key, tenant, model, day or client (default: key)")
    used.add_argument("--csv", action="store_true", help="print CSV, for a spreadsheet")
    parser.add_argument("--folder", metavar="FOLDER", help="the folder of the gateway (default: as for `asides serve`)")
    parser.add_argument("-y", "--yes", action="store_true", help="revoke without asking first")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only what was asked for")
    parser.epilog = (
        "The keys are in the database of the setting `store`, else in the gateway's folder; running gateways accept "
        "a new key at once. A key is printed only when it is made: the database keeps its digest."
    )


def declare_store(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides store`."""
    parser.add_argument(
        "action",
        choices=("migrate", "check", "copy"),
        help="migrate [URL]: create and upgrade the tables of a PostgreSQL database; check [PLACE]: show what a "
        "store has, and what is wrong with it; copy FROM [TO]: copy one store to another, or the rest of it",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PLACE",
        help="a PostgreSQL database, as postgresql://user@host/name, or a folder with SQLite files, or one of them; "
        "default: the setting store, else the folder of saved conversations",
    )
    parser.add_argument("--dry-run", action="store_true", help="migrate: print the missing steps without doing them")
    parser.add_argument(
        "--replace", action="store_true", help="copy: overwrite what is different at the target; without it, that stays"
    )
    parser.add_argument(
        "--ledger", metavar="FILE", help="copy: also copy the ledger of a batch, from or to this SQLite file"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say how far it is")
    parser.epilog = (
        "Exit code of check: 0 if nothing is wrong, 1 if something is; of copy: 0 if it is complete, 9 if not. Put a "
        "password into ASIDES_STORE, PGPASSWORD or ~/.pgpass: others can read command lines."
    )


def declare_batch(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides batch`."""
    parser.add_argument(
        "action",
        choices=("run", "status", "resume", "cancel"),
        help="run FILE: ask every question of a file; status [OUTPUT]: say how far a batch is, or all of them; "
        "resume OUTPUT: go on with what has no answer; cancel OUTPUT: stop it, whoever runs it",
    )
    parser.add_argument(
        "path",
        nargs="?",
        metavar="FILE",
        help='run: the questions, one JSON text or object such as {"prompt": …} a line, a Parquet file, or a batch '
        "file of OpenAI or Anthropic; `-` reads standard input; otherwise: the output of the batch",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where the answers go, one JSON object a line, in the order of the rows; a name that ends with .parquet "
        "is written as Parquet",
    )
    many = parser.add_argument_group("batch")
    many.add_argument(
        "--via",
        choices=("live", "vendor", "ray"),
        help="run: live: one request after the other, some at once (default); vendor: the provider's own batches; "
        "ray: a Ray cluster",
    )
    many.add_argument(
        "--concurrency", type=int, metavar="N", help="how many are asked at once, by each process (default: 16)"
    )
    many.add_argument("--rpm", type=float, metavar="N", help="at most so many requests a minute")
    many.add_argument("--tpm", type=float, metavar="N", help="at most so many tokens a minute, input and output")
    many.add_argument(
        "--max-cost", metavar="DOLLARS", help="stop before the batch costs more; needs known prices and --max-tokens"
    )
    many.add_argument(
        "--replace", action="store_true", help="run: ask all again if the model or the options are not those of before"
    )
    many.add_argument("--dry-run", action="store_true", help="run: check every row and estimate the cost, send nothing")
    many.add_argument(
        "--ledger",
        metavar="PLACE",
        help="what is answered: a SQLite file (default: beside the output), or postgresql://user@host/name for several "
        "machines",
    )
    many.add_argument("--name", metavar="NAME", help="the name of the batch in a ledger that several machines share")
    many.add_argument("--actors", type=int, metavar="N", help="--via ray: so many actors (default: one for each CPU)")
    many.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="--via ray: the cluster, as host:port; `auto` finds the one of this machine, `local` starts one here "
        "(default: RAY_ADDRESS, or local)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object (run, status, resume, cancel)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no warnings and no live status line")
    add_call(
        parser,
        show="keep the thinking, in the ledger and in the output",
        hide="do not keep the thinking, whatever the settings say",
    )


def parse_port(text: str) -> int:
    """A port, for argparse: 0 lets the system choose one."""
    if not (text.isdecimal() and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: use 0 to {_LAST_PORT}")
    return int(text)
