"""`asides stage`: the offline server, until Ctrl-C. Not here: the server itself, and what it plays (stage)."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from asides.cli.exit_codes import Exit
from asides.cli.terminal import Terminal
from asides.providers.find import plain_row
from asides.testing.stage import MODEL
from asides.testing.stage import run as play


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Its address on stdout, so that a script can read it; how to use it on stderr."""

    def ready(url: str) -> None:
        terminal.answer(f"{url}\n")
        terminal.flush()
        key = " --api-key …" if arguments.key else ""
        model = f"{plain_row('openai_chat').name}:{MODEL}"
        terminal.note(f'Try: asides ask -m {model} --base-url {url}{key} -t "What is 23 * 47?"')
        terminal.note("Ctrl-C ends it.")

    script = None if arguments.script is None else Path(arguments.script)
    play(arguments.host, arguments.port, script, ready, key=arguments.key)
    return Exit.DONE
