"""The writer of a reply for a relayed request: `open_writer(served, caller, target)`.

It writes the events of any provider in the caller's dialect, with the caller's names of its tools; what it leaves out
is in its `notices`. It also writes the error that ends a stream, and signs of life. Not here: the bytes
(dialects/*/server), and the ids of calls (call_ids).
"""

from __future__ import annotations

from collections.abc import Callable

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest, Writer
from asides.dialects.server_half import ReplyWriter
from asides.providers.provider import Target
from asides.relay.translate.translate_fields import UntranslatableField, find_tool_map


def open_writer(
    served: ServedRequest, caller: str, target: Target, make_writer: Callable[..., Writer] | None = None
) -> Writer:
    """Make the writer of one reply. All of our dialects give a ReplyWriter; another one gives its own. `make_writer`:
    for a second form of the caller's dialect.
    """
    make = make_writer or find_dialect(caller).writer
    writer = make(model=served.model, stream=served.stream, include_usage=served.include_usage)
    if isinstance(writer, ReplyWriter):
        tools = find_tool_map(served, caller, target).received
        writer.serve(served, tools, foreign=caller != target.dialect)
    return writer


def write_refusal(caller: str, error: UntranslatableField) -> bytes:
    """Write the body of the error for a request that cannot be translated, with the status 400."""
    write = find_dialect(caller).write_error
    match caller:
        case "anthropic" if error.details is not None:
            from asides.dialects.anthropic.server.write_reply import write_error as write_detailed

            return write_detailed(400, str(error), error.kind, details=error.details)
        case "openai_chat" | "openai_responses":
            from asides.dialects.openai_chat.server.write_reply import write_error as write_with_param

            return write_with_param(400, str(error), error.kind, param=error.param)
        case _:
            return write(400, str(error), error.kind)
