"""`asides chat`: questions and answers in turn, the earlier ones along. What could not be sent again is never kept.

Not here: how one question is asked and shown (asking).
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from contextlib import suppress
from importlib import import_module

import msgspec

from asides.cli.asking import Asking, tell_figures
from asides.cli.exit_codes import Exit, of_error
from asides.cli.question import Asked, message_of, read_asked, read_file
from asides.cli.render import error_line, tell_about
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.errors import AsidesError
from asides.messages import Message, Part, Text
from asides.reply import Reply
from asides.thinking import read_thinking

_HELP = """\
/thinking LEVEL   ask for it: off, auto, on, minimal … max, or a number of tokens
/show on|off      show it
/model NAME       go on with another model
/reset            forget what was said
/quit, /exit      leave (Ctrl-D does too); Ctrl-C stops an answer
Lines that begin with // are said with one slash."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Talk until /quit, Ctrl-D or the end of the input. Without a person at the keyboard the first failure ends it."""
    asked = read_asked(arguments, terminal)
    first = [read_file(path) for path in arguments.file]
    with Client(settings=asked.settings) as client:
        return Chat(arguments, asked, client, terminal, first).run()


class Chat:
    """A conversation at a terminal, or with lines that are piped in."""

    def __init__(
        self, arguments: Namespace, asked: Asked, client: Client, terminal: Terminal, files: list[Part]
    ) -> None:
        self._arguments = arguments
        self._asked = asked
        self._client = client
        self._terminal = terminal
        self._files = files
        self._said: list[Message] = []
        self._attended = sys.stdin is not None and sys.stdin.isatty()

    def run(self) -> int:
        """The exit code: 0 when the talk was ended, else that of the failure."""
        if self._attended:
            with suppress(ImportError):
                import_module("readline")  # Editing and the arrow keys come with the import.
            self._terminal.note(f"{self._asked.model}. /help lists the commands, Ctrl-D leaves.")
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
        try:
            reply = asking.run([*self._said, question], stream=not self._arguments.no_stream)
        except KeyboardInterrupt:
            if not self._attended:
                raise
            kept = self._keep_what_came(question, asking.partial)
            self._terminal.note(f"(stopped; {kept})")
            return Exit.INTERRUPTED
        except AsidesError as error:
            self._terminal.complain(error_line(error))
            self._terminal.note(f"({self._keep_what_came(question, error.partial)})")
            return of_error(error)
        code = tell_about(reply, self._asked.gate, self._terminal)
        tell_figures(reply, asking.progress, self._arguments, self._terminal)
        message = reply.to_message()
        if message is not None and (reply.text.strip() or reply.refusal or reply.tool_calls):
            self._keep(question, message)
        else:
            self._terminal.note("(the question was not kept)")
        return code

    def _keep(self, question: Message, answer: Message) -> None:
        self._said += [question, answer]
        self._files = []

    def _keep_what_came(self, question: Message, partial: Reply | None) -> str:
        """Keep the words of a broken answer, and them alone: half a thought and half a call cannot be sent back."""
        text = "" if partial is None else partial.text
        if not text.strip():
            return "the question was not kept"
        self._keep(question, Message("assistant", (Text(text),)))
        return "what was shown of the answer is kept"

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
                    self._said.clear()
                    self._terminal.note("(forgotten)")
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
        self._terminal.note(f"({self._asked.model} from here on)")
