"""`asides ask`: one question, one answer."""

from __future__ import annotations

from argparse import Namespace

from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_tools, read_prompt
from asides.cli.render import (
    ThinkingVisibility,
    encode_error,
    encode_failure,
    encode_reply,
    encode_run,
    print_json,
    report_failure,
    report_reply,
)
from asides.cli.request import LiveRequest, print_figures, read_call_config, take_leading_model
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.values.errors import AsidesError

_INTERRUPTED = {"type": "Interrupted", "message": "stopped with Ctrl-C"}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Ask, show the answer, and return the exit code."""
    request: LiveRequest | None = None
    visibility: ThinkingVisibility | None = None
    try:
        take_leading_model(arguments, terminal)
        config = read_call_config(arguments, terminal)
        visibility = config.visibility
        with open_tools(arguments, config.settings, terminal) as tools:
            message = read_prompt(arguments, terminal)
            with Client(settings=config.settings) as client:
                request = LiveRequest(client, config, terminal, show_answer=not arguments.json)
                reply = request.run([message], stream=not arguments.no_stream, tools=tools)
    except AsidesError as error:
        if arguments.json:
            result = None if request is None else request.result
            print_json(terminal, encode_failure(encode_error(error), visibility, error.partial, result))
        raise
    except KeyboardInterrupt:
        partial, result = (None, None) if request is None else (request.partial, request.result)
        if arguments.json:
            print_json(terminal, encode_failure(_INTERRUPTED, visibility, partial, result))
        incomplete = partial is not None and partial.text
        terminal.print_error("stopped; the answer is incomplete." if incomplete else "stopped.")
        return Exit.INTERRUPTED
    if arguments.json:
        fields = encode_reply(reply, visibility) if request.result is None else encode_run(request.result, visibility)
        print_json(terminal, {**fields, "elapsed": request.stopwatch.seconds})
        code = report_failure(reply, terminal)
    else:
        code = report_reply(reply, visibility, terminal)
    print_figures(reply, request.stopwatch, arguments, terminal)
    return code
