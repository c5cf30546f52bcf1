"""`asides serve`: runs the gateway until Ctrl-C. Not here: the gateway itself (gateway)."""

from __future__ import annotations

from argparse import Namespace

from asides.cli.exit_codes import Exit
from asides.cli.terminal import Terminal
from asides.gateway.gateway_settings import GatewaySettings
from asides.gateway.run_gateway import run_gateway


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the gateway. Its address goes to stdout, so that a script can read it."""

    def announce(url: str) -> None:
        terminal.write_answer(f"{url}\n")
        terminal.flush()

    run_gateway(GatewaySettings(host=arguments.host, port=arguments.port), announce)
    return Exit.DONE
