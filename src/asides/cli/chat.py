"""`asides chat`: asks question after question and sends each with the earlier messages.

However a question ends, the next one can be asked.
"""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING

from asides.cli.chat_commands import ChatCommands, ChatState, check_call
from asides.cli.exit_codes import Exit, code_for_error
from asides.cli.inputs import build_message, open_tools, read_file
from asides.cli.line_input import LineReader, open_input_history
from asides.cli.render import describe_error, report_reply
from asides.cli.request import CallConfig, LiveRequest, print_figures, read_call_config
from asides.cli.saved_conversations import (
    SavedConversation,
    describe_conversation,
    find_conversation,
    keep_for_chat,
    make_unnamed,
)
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.conversations.store.conversation_names import is_unnamed
from asides.values.errors import AsidesError, NotFound

if TYPE_CHECKING:
    from asides.agents.config import AgentOptions
    from asides.conversations.sync import Conversation


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Chat until /quit, Ctrl-D or the end of the input. Without a person at the keyboard, the first failure ends it."""
    with ExitStack() as stack:
        saved = keep_for_chat(find_conversation(arguments, os.environ, stack), os.environ)
        # A model on the command line wins over the one of the conversation.
        arguments.model = arguments.model or saved.model
        config = read_call_config(arguments, terminal)
        check_call(config)
        keeps_chat = not arguments.no_keep and config.settings.keep_conversations != "none"
        if saved.name is None and keeps_chat:
            saved = _keep_chat(saved, config, stack, terminal)
        client = stack.enter_context(Client(settings=config.settings))
        conversation = saved.open(client)
        if isinstance(system := config.options.get("system"), str):
            conversation.system = system
        conversation.model = config.model
        files = [read_file(path) for path in arguments.file]
        tools = stack.enter_context(open_tools(arguments, config.settings, terminal))
        keeps_input = config.settings.keep_input_history
        reader = LineReader(terminal, open_input_history(os.environ, terminal) if keeps_input else None)

        def begin_new() -> Conversation:
            new = SavedConversation(None, None, None)
            if keeps_chat:
                new = _keep_chat(new, config, stack, terminal)
            return new.open(client)

        state = ChatState(config, client, conversation, begin_new, files)
        return Chat(arguments, state, terminal, reader, tools).run()


_LEAVING = ("exit", "quit")


def _keep_chat(saved: SavedConversation, config: CallConfig, stack: ExitStack, terminal: Terminal) -> SavedConversation:
    """Keep the chat under a generated name. Where that fails by default, say so and chat without."""
    try:
        return make_unnamed("chat", os.environ, stack)
    except (AsidesError, OSError) as error:
        if config.settings.origin("keep_conversations") != "default" or config.settings.store is not None:
            raise
        terminal.print_note(f"warning: this chat is not kept: {error}")
        return saved


class Chat:
    """A conversation at a terminal, or with piped lines."""

    def __init__(
        self,
        arguments: Namespace,
        state: ChatState,
        terminal: Terminal,
        reader: LineReader,
        tools: AgentOptions | None,
    ) -> None:
        self._arguments = arguments
        self._state = state
        self._terminal = terminal
        self._reader = reader
        self._tools = tools
        self._interactive = reader.is_interactive
        self._commands = ChatCommands(state, terminal, is_interactive=reader.is_interactive)

    def run(self) -> int:
        """Chat; return 0 when the user ended it, else the code of the failure."""
        if self._interactive:
            self._greet()
        while True:
            try:
                line = self._reader.read()
            except EOFError:
                if self._interactive:
                    self._terminal.print_info("")
                return Exit.DONE
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                self._state.last_input = self._reader.unfinished or self._state.last_input
                self._terminal.print_note("\n(Ctrl-D or /quit leaves)")
                continue
            if not line.strip():
                continue
            if line.strip().lower() in _LEAVING:
                return Exit.DONE
            question: str | None = line.removeprefix("/") if line.startswith("//") else line
            result = None if line.startswith("//") else self._commands.run(line)
            if result is not None:
                if result.ends_chat:
                    return Exit.DONE
                question = result.question
            if question is None:
                continue
            code = self._ask(question)
            if code is not Exit.DONE and not self._interactive:
                return code

    def _greet(self) -> None:
        state = self._state
        self._terminal.print_note(f"{state.config.model}. /help lists the commands, Ctrl-D leaves.")
        if state.conversation.name is not None and is_unnamed(state.conversation.name) and state.conversation.messages:
            self._terminal.print_note(f"(continues {describe_conversation(state.conversation)})")
        elif state.conversation.name is not None and not is_unnamed(state.conversation.name):
            self._terminal.print_note(
                f"({len(state.conversation)} messages in {state.conversation.name!r}; new ones are saved there)"
            )

    # --- one question -------------------------------------------------------------------------------------------------

    def _ask(self, words: str) -> Exit:
        state = self._state
        state.last_input = words
        request = LiveRequest(state.client, state.config, self._terminal, render=not self._arguments.plain)
        try:
            fill_prompt = getattr(self._arguments, "fill_prompt", None)
            question = build_message(state.files, words if fill_prompt is None else fill_prompt(words))
            reply = request.run_turn(
                state.conversation, question, stream=not self._arguments.no_stream, tools=self._tools
            )
        except KeyboardInterrupt:
            if not self._interactive:
                raise
            self._terminal.print_note(f"(stopped; {_describe_record(request)})")
            return Exit.INTERRUPTED
        except AsidesError as error:
            self._terminal.print_error(describe_error(error))
            self._terminal.print_note(f"({_describe_record(request)})")
            self._go_back(error)
            return code_for_error(error)
        finally:
            if request.is_recorded:
                state.files.clear()
        state.before_switch = None
        code = report_reply(reply, state.config.visibility, self._terminal, ask_with="write /thinking low")
        print_figures(request.result or reply, request.stopwatch, self._arguments, self._terminal)
        if not request.is_recorded:
            self._terminal.print_note(f"({_describe_record(request)})")
        return code

    def _go_back(self, error: AsidesError) -> None:
        """Return to the model before /model, if the provider does not know the new one."""
        state = self._state
        if state.before_switch is not None and isinstance(error, NotFound):
            state.config, state.before_switch = state.before_switch, None
            state.conversation.model = state.config.model
            self._terminal.print_note(f"(back to {state.config.model})")


def _describe_record(request: LiveRequest) -> str:
    if request.is_recorded:
        return "the answer so far stays in the conversation"
    return "the question was dropped"
