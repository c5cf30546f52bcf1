"""`asides chat`: asks question after question and sends each with the earlier messages.

However a question ends, the next one can be asked. Not here: asking one question and showing its reply (request), and
the store of conversations (saved_conversations).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import Namespace
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from asides.cli.exit_codes import Exit, code_for_error
from asides.cli.inputs import build_message, open_tools, read_file
from asides.cli.render import describe_error, report_reply
from asides.cli.request import CallConfig, LiveRequest, print_figures, read_call_config
from asides.cli.saved_conversations import list_conversations, open_store, read_conversation_name
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.conversations.store import StoreConflict
from asides.conversations.sync import Conversation
from asides.values.errors import AsidesError
from asides.values.messages import Message
from asides.values.parts import Part
from asides.values.reply import Reply
from asides.values.thinking import read_thinking

if TYPE_CHECKING:
    from asides.agents.config import AgentOptions

_HELP = """\
/thinking LEVEL   ask for thinking: off, auto, on, minimal … max, or a number of tokens
/show on|off      show the thinking, or hide it
/model NAME       switch to another model
/reset            forget the conversation
/keep NAME        save the conversation under a name, and all that follows
/list             list the saved conversations; asides chat --conversation NAME continues one
/delete NAME      delete a saved conversation
/quit, /exit      leave (so does Ctrl-D); Ctrl-C stops an answer
A line that begins with // is sent with one slash."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Chat until /quit, Ctrl-D or the end of the input. Without a person at the keyboard, the first failure ends it."""
    with ExitStack() as stack:
        name = read_conversation_name(arguments, os.environ)
        store = None if name is None else stack.enter_context(open_store(os.environ))
        conversation = Conversation(store=store, name=name)
        # A model on the command line wins over the one of the conversation.
        arguments.model = arguments.model or conversation.model
        config = read_call_config(arguments, terminal)
        if isinstance(system := config.options.get("system"), str):
            conversation.system = system
        files = [read_file(path) for path in arguments.file]
        tools = stack.enter_context(open_tools(arguments, config.settings, terminal))
        client = stack.enter_context(Client(settings=config.settings))
        return Chat(arguments, config, client, terminal, conversation, files, tools).run()


class Chat:
    """A conversation at a terminal, or with piped lines."""

    def __init__(
        self,
        arguments: Namespace,
        config: CallConfig,
        client: Client,
        terminal: Terminal,
        conversation: Conversation,
        files: list[Part],
        tools: AgentOptions | None,
    ) -> None:
        self._arguments = arguments
        self._config = config
        self._client = client
        self._terminal = terminal
        self._conversation = conversation
        self._files = files
        self._tools = tools
        self._is_recorded = False
        """Whether the last question is in the conversation."""
        self._interactive = sys.stdin is not None and sys.stdin.isatty()
        conversation.model = config.model

    def run(self) -> int:
        """Chat; return 0 when the user ended it, else the code of the failure."""
        if self._interactive:
            self._greet()
        if reconfigure := getattr(sys.stdin, "reconfigure", None):
            reconfigure(errors="replace")
        while True:
            try:
                line = self._read_line()
            except EOFError:
                if self._interactive:
                    self._terminal.print_info("")
                return Exit.DONE
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                self._terminal.print_note("\n(Ctrl-D or /quit leaves)")
                continue
            if not line.strip():
                continue
            command = _COMMAND.fullmatch(line.strip())
            if command is not None:
                if self._run_command(command[1].lower(), (command[2] or "").strip()):
                    return Exit.DONE
                continue
            code = self._ask(line[1:] if line.startswith("//") else line)
            if code is not Exit.DONE and not self._interactive:
                return code

    def _greet(self) -> None:
        with suppress(ImportError):
            import_module("readline")  # Importing it gives input() line editing and the arrow keys.
        self._terminal.print_note(f"{self._config.model}. /help lists the commands, Ctrl-D leaves.")
        if self._conversation.name is not None:
            self._terminal.print_note(
                f"({len(self._conversation)} messages in {self._conversation.name!r}; new ones are saved there)"
            )

    def _read_line(self) -> str:
        if not self._interactive:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if self._terminal.out_is_terminal:
            return input("> ")
        # input() would write its prompt to stdout, which is for answers.
        sys.stderr.write("> ")
        sys.stderr.flush()
        return input()

    # --- one question -------------------------------------------------------------------------------------------------

    def _ask(self, words: str) -> Exit:
        question = build_message(self._files, words)
        request = LiveRequest(self._client, self._config, self._terminal)
        self._is_recorded = False
        try:
            reply = self._send(question, request)
        except KeyboardInterrupt:
            if not self._interactive:
                raise
            self._terminal.print_note(f"(stopped; {self._describe_record()})")
            return Exit.INTERRUPTED
        except AsidesError as error:
            self._terminal.print_error(describe_error(error))
            self._terminal.print_note(f"({self._describe_record()})")
            return code_for_error(error)
        finally:
            if self._is_recorded:
                self._files = []
        code = report_reply(reply, self._config.visibility, self._terminal)
        print_figures(reply, request.stopwatch, self._arguments, self._terminal)
        if not self._is_recorded:
            self._terminal.print_note(f"({self._describe_record()})")
        return code

    def _send(self, question: Message, request: LiveRequest) -> Reply:
        """Ask, and record the question and the answer in the conversation."""
        stream = not self._arguments.no_stream
        if self._conversation.system is not None:
            self._config.options["system"] = self._conversation.system
        if self._tools is not None:
            before = self._conversation.messages
            try:
                return request.run([question], stream=stream, tools=self._tools, conversation=self._conversation)
            finally:
                self._is_recorded = self._conversation.messages is not before
        turn = self._conversation.turn(question)
        turn.begin()
        try:
            return request.run(turn.messages, stream=stream)
        finally:
            turn.end(request.partial)
            self._is_recorded = turn.is_recorded

    def _describe_record(self) -> str:
        if self._is_recorded:
            return "the answer so far stays in the conversation"
        return "the question was dropped"

    # --- commands -----------------------------------------------------------------------------------------------------

    def _run_command(self, name: str, argument: str) -> bool:
        """Run a slash command; return True when it ends the chat."""
        try:
            match name:
                case "quit" | "exit":
                    return True
                case "help":
                    self._terminal.print_info(_HELP)
                case "reset":
                    self._reset()
                case "keep":
                    self._save(argument)
                case "list":
                    self._list()
                case "delete":
                    self._delete(argument)
                case "thinking":
                    self._set_thinking(argument)
                case "show":
                    self._set_show(argument)
                case "model":
                    self._set_model(argument)
                case _:
                    self._terminal.print_error(
                        f"no command is called /{name}; /help lists them. Begin a line with // to send one slash."
                    )
        except AsidesError as error:
            self._terminal.print_error(describe_error(error))
        return False

    def _set_thinking(self, level: str) -> None:
        if level:
            read_thinking(level)
            self._config.options["thinking"] = level
        else:
            self._config.options.pop("thinking", None)
        self._terminal.print_note(f"(thinking: {level or 'the default of the settings and the model'})")

    def _set_show(self, word: str) -> None:
        if word not in ("on", "off"):
            self._terminal.print_error("write /show on or /show off.")
            return
        settings = msgspec.structs.replace(self._config.settings, show_reasoning_thinking=word == "on")
        self._config = self._config._replace(settings=settings)
        self._terminal.print_note(f"(thinking is {'shown' if word == 'on' else 'hidden'})")

    def _set_model(self, name: str) -> None:
        if not name:
            self._terminal.print_info(self._config.model)
            return
        self._config = self._config.with_model(name)
        self._conversation.model = self._config.model
        self._terminal.print_note(f"({self._config.model} from here on)")

    def _reset(self) -> None:
        try:
            self._conversation.clear()
        except StoreConflict:
            # Another process added messages to this conversation. Clear those too.
            self._conversation.refresh()
            self._conversation.clear()
        self._terminal.print_note("(the conversation is empty)")

    # --- saved conversations ------------------------------------------------------------------------------------------

    def _save(self, name: str) -> None:
        if not name:
            self._terminal.print_error("write /keep and a name for it.")
            return
        if self._conversation.name is not None:
            if not self._is_deleted():
                self._terminal.print_error(f"this conversation is already saved as {self._conversation.name!r}.")
                return
            self._conversation = self._conversation.fork(name=name)
        else:
            store = open_store(os.environ)
            saved = Conversation(self._conversation.model, system=self._conversation.system, store=store, name=name)
            if saved.messages:
                self._terminal.print_error(f"there is a conversation {name!r} already. To do: choose another name.")
                return
            saved.extend(self._conversation.messages, usage=self._conversation.usage)
            self._conversation = saved
        self._terminal.print_note(f"(saved as {name!r}; asides chat --conversation {shlex.quote(name)} continues it)")

    def _is_deleted(self) -> bool:
        """Whether another process has deleted the saved conversation."""
        try:
            self._conversation.refresh()
        except StoreConflict as conflict:
            return conflict.found is None
        return False

    def _list(self) -> None:
        with open_store(os.environ) as store:
            lines = list_conversations(store)
        self._terminal.print_info("\n".join(lines) or "no conversation is saved; /keep NAME saves this one.")

    def _delete(self, name: str) -> None:
        if not name or name == self._conversation.name:
            self._terminal.print_error("write /delete and the name of a conversation, not of the one that is open.")
            return
        with open_store(os.environ) as store:
            deleted = store.delete(name)
        if deleted:
            self._terminal.print_note(f"({name!r} is deleted)")
        else:
            self._terminal.print_error(f"no conversation is called {name!r}; /list shows them.")
