"""`asides chat`: questions and answers in turn, the earlier ones along. What could not be sent again is never kept.

Not here: how one question is asked and shown (asking), and where conversations are kept (kept).
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

from asides.cli.exit_codes import Exit, of_error
from asides.cli.history import listing, open_store, wanted_name
from asides.cli.inputs import Asked, message_of, read_asked, read_file
from asides.cli.render import error_line, tell_about
from asides.cli.request import Asking, read_tools, tell_figures
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.conversations.store.protocol import StoreConflict
from asides.conversations.sync import Conversation
from asides.values.errors import AsidesError
from asides.values.messages import Message, Part
from asides.values.reply import Reply
from asides.values.thinking import read_thinking

if TYPE_CHECKING:
    from asides.agents.config import AgentOptions

_HELP = """\
/thinking LEVEL   ask for it: off, auto, on, minimal … max, or a number of tokens
/show on|off      show it
/model NAME       go on with another model
/reset            forget what was said
/keep NAME        keep what was said, and what is said from now on, under a name
/list             what is kept; asides chat --conversation NAME goes on with it
/delete NAME      forget one that is kept
/quit, /exit      leave (Ctrl-D does too); Ctrl-C stops an answer
Lines that begin with // are said with one slash."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Talk until /quit, Ctrl-D or the end of the input. Without a person at the keyboard the first failure ends it."""
    with ExitStack() as opened:
        name = wanted_name(arguments, os.environ)
        store = None if name is None else opened.enter_context(open_store(os.environ))
        talk = Conversation(store=store, name=name)
        # Whoever is named wins; else it is who was spoken with before.
        arguments.model = arguments.model or talk.model
        asked = read_asked(arguments, terminal)
        if (system := asked.options.get("system")) is not None:
            talk.system = system
        first = [read_file(path) for path in arguments.file]
        tools = read_tools(arguments, terminal)
        client = opened.enter_context(Client(settings=asked.settings))
        return Chat(arguments, asked, client, terminal, talk, first, tools).run()


class Chat:
    """A conversation at a terminal, or with lines that are piped in."""

    def __init__(
        self,
        arguments: Namespace,
        asked: Asked,
        client: Client,
        terminal: Terminal,
        talk: Conversation,
        files: list[Part],
        tools: AgentOptions | None,
    ) -> None:
        self._arguments = arguments
        self._asked = asked
        self._client = client
        self._terminal = terminal
        self._talk = talk
        self._files = files
        self._tools = tools
        self._kept = False
        self._attended = sys.stdin is not None and sys.stdin.isatty()
        talk.model = asked.model

    def run(self) -> int:
        """The exit code: 0 when the talk was ended, else that of the failure."""
        if self._attended:
            with suppress(ImportError):
                import_module("readline")  # Editing and the arrow keys come with the import.
            self._terminal.note(f"{self._asked.model}. /help lists the commands, Ctrl-D leaves.")
            if self._talk.name is not None:
                self._terminal.note(
                    f"({len(self._talk)} messages in {self._talk.name!r}; what is said now is kept there)"
                )
        if reconfigure := getattr(sys.stdin, "reconfigure", None):
            reconfigure(errors="replace")
        while True:
            try:
                line = self._read()
            except EOFError:
                if self._attended:
                    self._terminal.figure("")
                return Exit.DONE
            except KeyboardInterrupt:
                if not self._attended:
                    raise
                self._terminal.note("\n(Ctrl-D or /quit leaves)")
                continue
            if not line.strip():
                continue
            command = _COMMAND.fullmatch(line.strip())
            if command is not None:
                if self._obey(command[1].lower(), (command[2] or "").strip()):
                    return Exit.DONE
                continue
            code = self._ask(line[1:] if line.startswith("//") else line)
            if code is not Exit.DONE and not self._attended:
                return code

    def _read(self) -> str:
        if not self._attended:
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

    # --- one turn -----------------------------------------------------------------------------------------------------

    def _ask(self, words: str) -> Exit:
        question = message_of(self._files, words)
        asking = Asking(self._client, self._asked, self._terminal)
        self._kept = False
        try:
            reply = self._put(question, asking)
        except KeyboardInterrupt:
            if not self._attended:
                raise
            self._terminal.note(f"(stopped; {self._what_is_kept()})")
            return Exit.INTERRUPTED
        except AsidesError as error:
            self._terminal.complain(error_line(error))
            self._terminal.note(f"({self._what_is_kept()})")
            return of_error(error)
        finally:
            if self._kept:
                self._files = []
        code = tell_about(reply, self._asked.gate, self._terminal)
        tell_figures(reply, asking.progress, self._arguments, self._terminal)
        if not self._kept:
            self._terminal.note("(the question was not kept)")
        return code

    def _put(self, question: Message, asking: Asking) -> Reply:
        """Ask it. However that ends, the conversation can be sent on."""
        stream = not self._arguments.no_stream
        if self._talk.system is not None:
            self._asked.options["system"] = self._talk.system
        if self._tools is not None:
            before = self._talk.messages
            try:
                return asking.run([question], stream=stream, tools=self._tools, conversation=self._talk)
            finally:
                self._kept = self._talk.messages is not before
        turn = self._talk.turn(question)
        turn.begin()
        try:
            return asking.run(turn.messages, stream=stream)
        finally:
            turn.end(asking.partial)
            self._kept = turn.kept

    def _what_is_kept(self) -> str:
        return "what was shown of the answer is kept" if self._kept else "the question was not kept"

    # --- commands -----------------------------------------------------------------------------------------------------

    def _obey(self, name: str, argument: str) -> bool:
        """Carry a command out; True when it was the last."""
        try:
            match name:
                case "quit" | "exit":
                    return True
                case "help":
                    self._terminal.figure(_HELP)
                case "reset":
                    self._forget()
                case "keep":
                    self._keep(argument)
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
                    self._terminal.complain(f"no command is called /{name}; /help lists them. // says one slash.")
        except AsidesError as error:
            self._terminal.complain(error_line(error))
        return False

    def _set_thinking(self, level: str) -> None:
        if level:
            read_thinking(level)
            self._asked.options["thinking"] = level
        else:
            self._asked.options.pop("thinking", None)
        self._terminal.note(f"(thinking: {level or 'as the settings and the model have it'})")

    def _set_show(self, word: str) -> None:
        if word not in ("on", "off"):
            self._terminal.complain("write /show on or /show off.")
            return
        settings = msgspec.structs.replace(self._asked.settings, show_reasoning_thinking=word == "on")
        self._asked = self._asked._replace(settings=settings)
        self._terminal.note(f"(thinking is {'shown' if word == 'on' else 'not shown'})")

    def _set_model(self, name: str) -> None:
        if not name:
            self._terminal.figure(self._asked.model)
            return
        self._asked = self._asked.towards(name)
        self._talk.model = self._asked.model
        self._terminal.note(f"({self._asked.model} from here on)")

    def _forget(self) -> None:
        try:
            self._talk.clear()
        except StoreConflict:
            # Somebody else said something; that was said in this conversation, too.
            self._talk.refresh()
            self._talk.clear()
        self._terminal.note("(forgotten)")

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _keep(self, name: str) -> None:
        if not name:
            self._terminal.complain("write /keep and a name for it.")
            return
        if self._talk.name is not None:
            if not self._is_gone():
                self._terminal.complain(f"this conversation is kept already, as {self._talk.name!r}.")
                return
            self._talk = self._talk.fork(name=name)
            self._tell_where(name)
            return
        store = open_store(os.environ)
        kept = Conversation(self._talk.model, system=self._talk.system, store=store, name=name)
        if kept.messages:
            self._terminal.complain(f"there is a conversation {name!r} already. To do: take another name.")
            return
        kept.extend(self._talk.messages, usage=self._talk.usage)
        self._talk = kept
        self._tell_where(name)

    def _is_gone(self) -> bool:
        """Whether somebody else deleted what is kept of this conversation."""
        try:
            self._talk.refresh()
        except StoreConflict as conflict:
            return conflict.found is None
        return False

    def _tell_where(self, name: str) -> None:
        self._terminal.note(f"(kept as {name!r}; asides chat --conversation {shlex.quote(name)} goes on with it)")

    def _list(self) -> None:
        with open_store(os.environ) as store:
            lines = listing(store)
        self._terminal.figure("\n".join(lines) or "nothing is kept; /keep NAME keeps this conversation.")

    def _delete(self, name: str) -> None:
        if not name or name == self._talk.name:
            self._terminal.complain("write /delete and the name of a conversation, not of the one that is open.")
            return
        with open_store(os.environ) as store:
            gone = store.delete(name)
        if gone:
            self._terminal.note(f"({name!r} is forgotten)")
        else:
            self._terminal.complain(f"no conversation is called {name!r}; /list shows them.")
