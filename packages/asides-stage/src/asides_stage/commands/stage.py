"""`asides stage`: runs the offline provider until Ctrl-C."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from asides.cli.exit_codes import Exit
from asides.cli.terminal import Terminal
from asides.providers.find import plain_row
from asides_stage.stage import MODEL, RefusedRequest
from asides_stage.stage import run as run_stage


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the stage. Print its address on stdout, so that a script can read it; an example and what the rules refuse
    on stderr."""

    def announce(url: str) -> None:
        terminal.write_answer(f"{url}\n")
        terminal.flush()
        key = " --api-key …" if arguments.key else ""
        model = f"{plain_row('openai_chat').name}:{MODEL}"
        terminal.print_note(f'Try: asides ask -m {model} --base-url {url}{key} -t "What is 23 * 47?"')
        terminal.print_note("Ctrl-C ends it.")

    def report(refusal: RefusedRequest) -> None:
        verb = "would be refused" if arguments.rules == "lenient" else "refused"
        terminal.print_note(f"{verb}: {refusal.path}: {refusal.kind or 'no kind'}: {refusal.text}")

    script = None if arguments.script is None else Path(arguments.script)
    run_stage(
        arguments.host,
        arguments.port,
        script,
        announce,
        key=arguments.key,
        rules=arguments.rules,
        date=arguments.date,
        on_refusal=report,
    )
    return Exit.DONE
