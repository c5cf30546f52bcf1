"""The commands of the gateway: `asides serve`, `gateway` and `store`. Their modules are loaded when they run."""

from __future__ import annotations

import argparse

from asides.cli.parse_arguments import Command
from asides.cli.service_arguments import parse_port


def declare_serve(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides serve`. Without one, the setting of [gateway] counts."""
    parser.add_argument("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=parse_port, help="its port (default: 4242); 0 picks a free one")
    parser.add_argument("--workers", type=int, metavar="N", help="number of processes (default: 1)")
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
        "The address is printed on stdout. Ctrl-C and SIGTERM let open replies finish, a second one stops "
        "immediately; SIGHUP, and a change of asides.toml, reload the settings."
    )


def declare_gateway(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides gateway`."""
    parser.add_argument(
        "action",
        choices=("key", "usage", "export", "import"),
        help="key create, key list, key revoke ID|NAME: the keys of clients; usage: the tokens and costs of requests; "
        "export [FILE], import FILE: keys and conversations as JSON lines, from and to any store",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="after `key`: create, list, or revoke with an ID or NAME; after `export` and `import`: a file",
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
        help="a model, route or alias that it may ask, such as 'anthropic:*' (repeatable; default: all)",
    )
    made.add_argument("--rpm", type=int, metavar="COUNT", help="limit of requests per minute")
    made.add_argument("--tpm", type=int, metavar="COUNT", help="limit of tokens per minute, input and output")
    made.add_argument("--budget-day", metavar="DOLLARS", help="limit in US dollars per day (UTC)")
    made.add_argument("--budget-month", metavar="DOLLARS", help="limit in US dollars per month (UTC)")
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
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="the folder of the gateway (default: as for `asides serve`); export and import use it even with the "
        "setting `store`",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="revoke without asking first")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only what was asked for")
    parser.epilog = (
        "The keys are in the database of the setting `store`, else in the gateway's folder; running gateways accept "
        "a new key immediately. A key is printed only when it is made: the database keeps its digest."
    )


def declare_store(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides store`."""
    parser.add_argument(
        "action",
        choices=("migrate", "check"),
        help="migrate [URL]: create and upgrade the tables of a PostgreSQL database; check [PLACE]: show what a "
        "store has, and what is wrong with it",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PLACE",
        help="a PostgreSQL database, as postgresql://user@host/name, or a folder with SQLite files, or one of them; "
        "default: the setting store, else the folder of saved conversations",
    )
    parser.add_argument("--dry-run", action="store_true", help="migrate: print the missing steps without doing them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.epilog = (
        "Exit code of check: 0 if nothing is wrong, 1 if something is. Put a password into ASIDES_STORE, PGPASSWORD or "
        "~/.pgpass: others can read command lines."
    )


SERVE = Command("Run the gateway: every client on any model.", declare_serve, "asides_gateway.commands.serve")
GATEWAY = Command(
    "Make, list and revoke the keys of a gateway, show what was used, and export or import.",
    declare_gateway,
    "asides_gateway.commands.gateway",
)
STORE = Command("Create, upgrade and check the store of a gateway.", declare_store, "asides_gateway.commands.store")
