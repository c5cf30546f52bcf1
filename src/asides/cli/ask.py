"""`asides ask`: one question, one answer. `asides "question"` is short for it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING

from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_tools, read_prompt
from asides.cli.markdown import find_last_code
from asides.cli.render import (
    encode_failure,
    encode_run,
    print_json,
    report_failure,
    report_reply,
)
from asides.cli.request import CallConfig, LiveRequest, print_figures, read_call_config, take_leading_model
from asides.cli.saved_conversations import SavedConversation, describe_conversation, find_conversation, keep_unnamed
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.flows.reply_fields import ThinkingVisibility, encode_error, encode_reply
from asides.values.errors import AsidesError, ConfigError
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.conversations.sync import Conversation
    from asides.values.messages import Message

_INTERRUPTED = {"type": "Interrupted", "message": "stopped with Ctrl-C"}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Ask, show the answer, and return the exit code."""
    if arguments.each is not None:
        from asides.cli.each import run_each

        return run_each(arguments, terminal)
    if arguments.output is not None or arguments.concurrency is not None:
        raise ConfigError("-o and --concurrency belong to --each FILE, which asks every question of a file.")
    if arguments.extract and arguments.json:
        raise ConfigError("-x prints code and --json prints an object. Use one of them.")
    request: LiveRequest | None = None
    visibility: ThinkingVisibility | None = None
    message: Message | None = None
    conversation: Conversation | None = None
    with ExitStack() as stack:
        try:
            take_leading_model(arguments, terminal)
            saved = find_conversation(arguments, os.environ, stack)
            # A model on the command line wins over the one of the conversation.
            arguments.model = arguments.model or saved.model
            config = read_call_config(arguments, terminal)
            visibility = config.visibility
            tools = stack.enter_context(open_tools(arguments, config.settings, terminal))
            client = stack.enter_context(Client(settings=config.settings))
            conversation = _open_conversation(saved, client, config)
            message = _read_question(conversation, arguments, terminal)
            if conversation.messages and terminal.err_is_terminal:
                terminal.print_note(f"(continues {describe_conversation(conversation)})")
            request = LiveRequest(
                client,
                config,
                terminal,
                show_answer=not (arguments.json or arguments.extract),
                render=not arguments.plain,
            )
            # However it ends, what arrived of the answer is kept.
            stack.callback(_keep, conversation, request, client, config, terminal)
            reply = request.run_turn(conversation, message, stream=not arguments.no_stream, tools=tools)
        except AsidesError as error:
            if arguments.json:
                result = None if request is None else request.result
                print_json(terminal, encode_failure(encode_error(error), visibility, error.partial, result))
            raise
        except KeyboardInterrupt:
            partial, result = (None, None) if request is None else (request.partial, request.result)
            if conversation is not None and request is not None and not request.is_recorded and message is not None:
                # `asides -c` continues this question, and not the conversation before it.
                conversation.append(message)
                request.is_recorded = True
            if arguments.json:
                print_json(terminal, encode_failure(_INTERRUPTED, visibility, partial, result))
            incomplete = partial is not None and partial.text
            terminal.print_error("stopped; the answer is incomplete." if incomplete else "stopped.")
            return Exit.INTERRUPTED
        if arguments.json:
            fields = (
                encode_reply(reply, visibility) if request.result is None else encode_run(request.result, visibility)
            )
            named = {} if conversation.name is None else {"conversation": conversation.name}
            print_json(terminal, {**fields, "elapsed": request.stopwatch.seconds, **named})
            code = report_failure(reply, terminal)
        else:
            if arguments.extract:
                _print_code(reply, terminal)
            code = report_reply(reply, visibility, terminal)
        print_figures(request.result or reply, request.stopwatch, arguments, terminal)
        terminal.flush()
    return code


def _print_code(reply: Reply, terminal: Terminal) -> None:
    """Print the code of the last fenced block; without one, the whole answer."""
    code = find_last_code(reply.text)
    terminal.write_answer(reply.text if code is None else code)
    terminal.end_answer()
    if code is None:
        terminal.print_note("the answer has no code block; all of it was printed")


def _read_question(conversation: Conversation, arguments: Namespace, terminal: Terminal) -> Message | None:
    """The question; None for the one that was stopped with Ctrl-C, if `asides -c` adds no words to it."""
    stopped = bool(conversation.messages) and conversation.messages[-1].role == "user"
    has_input = not arguments.no_stdin and not (sys.stdin is not None and sys.stdin.isatty())
    given = arguments.prompt or arguments.file or arguments.template or arguments.tools or arguments.mcp
    return None if stopped and not has_input and not given else read_prompt(arguments, terminal)


def _open_conversation(saved: SavedConversation, client: Client, config: CallConfig) -> Conversation:
    conversation = saved.open(client)
    conversation.model = config.model
    if isinstance(system := config.options.get("system"), str):
        conversation.system = system
    return conversation


def _keep(
    conversation: Conversation, request: LiveRequest, client: Client, config: CallConfig, terminal: Terminal
) -> None:
    """Keep a question that was asked without a name, for `--continue`, if the settings say so."""
    settings = config.settings
    if conversation.name is not None or not request.is_recorded or settings.keep_conversations == "none":
        return
    try:
        keep_unnamed(conversation, client, os.environ, all_of_them=settings.keep_conversations == "all")
    except (AsidesError, OSError) as error:
        # It is on by default, and not every machine has a folder for it.
        if settings.origin("keep_conversations") != "default" or settings.store is not None:
            terminal.print_note(f"warning: the question is not kept: {error}")
