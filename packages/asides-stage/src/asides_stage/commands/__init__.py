"""The command `asides stage`. Its module is loaded when it runs."""

from __future__ import annotations

import argparse

from asides.cli.parse_arguments import Command
from asides.cli.service_arguments import parse_port


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


STAGE = Command("Run an offline provider on this machine. Needs no key.", declare_stage, "asides_stage.commands.stage")
