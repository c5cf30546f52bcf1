"""The command `asides batch`. Its module is loaded when it runs."""

from __future__ import annotations

import argparse

from asides.cli.ask_arguments import add_call
from asides.cli.parse_arguments import Command


def declare_batch(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `asides batch`."""
    parser.add_argument(
        "action",
        choices=("run", "status", "resume", "cancel"),
        help="run FILE: ask every question of a file; status [OUTPUT]: say how far a batch is, or all of them; "
        "resume OUTPUT: ask what has no answer yet; cancel OUTPUT: stop it, from any process",
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
        help="run: live: single requests, several in parallel (default); vendor: the provider's own batches; "
        "ray: a Ray cluster",
    )
    many.add_argument("--concurrency", type=int, metavar="N", help="parallel requests of each process (default: 16)")
    many.add_argument("--rpm", type=float, metavar="N", help="at most N requests a minute")
    many.add_argument("--tpm", type=float, metavar="N", help="at most N tokens a minute, input and output")
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
    many.add_argument("--actors", type=int, metavar="N", help="--via ray: number of actors (default: one for each CPU)")
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


BATCH = Command(
    "Ask every question in a file; can be stopped and resumed.", declare_batch, "asides_batch.commands.batch"
)
