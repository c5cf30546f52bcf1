"""`asides ask`: one question, one answer."""

from __future__ import annotations

from argparse import Namespace

from asides.cli.exit_codes import Exit
from asides.cli.gate import Gate
from asides.cli.inputs import read_asked, read_prompt
from asides.cli.render import (
    broken_object,
    code_with_reason,
    error_object,
    print_json,
    reply_object,
    run_object,
    tell_about,
)
from asides.cli.request import Asking, read_tools, tell_figures
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.values.errors import AsidesError

_INTERRUPTED = {"type": "Interrupted", "message": "stopped with Ctrl-C"}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Ask, show the answer, and say by the exit code how it went."""
    asking: Asking | None = None
    gate: Gate | None = None
    try:
        asked = read_asked(arguments, terminal)
        gate = asked.gate
        tools = read_tools(arguments, terminal)
        message = read_prompt(arguments, terminal)
        with Client(settings=asked.settings) as client:
            asking = Asking(client, asked, terminal, shows_answer=not arguments.json)
            reply = asking.run([message], stream=not arguments.no_stream, tools=tools)
    except AsidesError as error:
        if arguments.json:
            came = None if asking is None else asking.result
            print_json(terminal, broken_object(error.partial, error_object(error), gate, came))
        raise
    except KeyboardInterrupt:
        partial = None if asking is None else asking.partial
        if arguments.json:
            print_json(terminal, broken_object(partial, _INTERRUPTED, gate, None if asking is None else asking.result))
        terminal.complain("stopped; the answer is not whole." if partial is not None and partial.text else "stopped.")
        return Exit.INTERRUPTED
    if arguments.json:
        said = reply_object(reply, gate) if asking.result is None else run_object(asking.result, gate)
        print_json(terminal, {**said, "elapsed": asking.progress.seconds})
        code = code_with_reason(reply, terminal)
    else:
        code = tell_about(reply, gate, terminal)
    tell_figures(reply, asking.progress, arguments, terminal)
    return code
