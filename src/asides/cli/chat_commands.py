"""The slash commands of `asides chat`, and the state of a chat that they change."""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from asides.cli.inputs import read_file
from asides.cli.line_input import edit_text
from asides.cli.render import describe_error
from asides.cli.request import CallConfig
from asides.cli.saved_conversations import list_conversations, note_own, open_store
from asides.cli.terminal import Terminal, describe_figures
from asides.client import Client
from asides.conversations.store import StoreConflict
from asides.conversations.store.conversation_names import is_unnamed
from asides.conversations.sync import Conversation
from asides.flows.build_call import CallBuilder
from asides.flows.offline import explain_call
from asides.history.turns import begins_turn
from asides.values.error_words import find_near_name
from asides.values.errors import AsidesError, InvalidThinking
from asides.values.messages import Message
from asides.values.parts import Part, Text
from asides.values.thinking import read_thinking

# Never suggested for a mistyped word.
_DESTRUCTIVE = frozenset({"clear", "reset", "undo", "delete"})
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.IGNORECASE)


@dataclass
class ChatState:
    """A chat between two questions."""

    config: CallConfig
    client: Client
    conversation: Conversation
    begin_new: Callable[[], Conversation]
    """Opens an empty conversation, kept as the settings say."""
    files: list[Part] = field(default_factory=list[Part])
    """What goes with the next question."""
    last_input: str = ""
    """What /edit begins with: the last question, or a line that was left with Ctrl-C."""
    before_switch: CallConfig | None = None
    """The model before the last /model, until the new one has answered."""


class CommandResult(NamedTuple):
    """What is to be done after a command."""

    ends_chat: bool = False
    question: str | None = None
    """A question to ask now."""


class _Command(NamedTuple):
    usage: str
    summary: str
    run: Callable[[str], CommandResult | None]


class ChatCommands:
    """Runs the commands of a chat. Whatever fails is printed, and changes nothing."""

    def __init__(self, state: ChatState, terminal: Terminal, *, is_interactive: bool) -> None:
        self._state = state
        self._terminal = terminal
        self._is_interactive = is_interactive
        self._commands: dict[str, _Command] = {
            "edit": _Command(
                "/edit [TEXT]", "write in your editor ($VISUAL, $EDITOR), starting from the last input", self._edit
            ),
            "file": _Command("/file PATH", "attach a file to the next question; alone, count them", self._attach),
            "model": _Command("/model [NAME]", "switch to another model; alone, show the model", self._set_model),
            "thinking": _Command(
                "/thinking LEVEL", "ask for thinking: off, auto, on, minimal … max, or a number", self._set_thinking
            ),
            "show": _Command("/show on|off", "show the thinking, or hide it", self._set_show),
            "system": _Command("/system [TEXT]", "set the system prompt; alone, show it", self._set_system),
            "retry": _Command("/retry", "ask the last question again", self._retry),
            "undo": _Command("/undo", "remove the last question and its answer", self._undo),
            "clear": _Command("/clear, /reset", "begin a new conversation; a saved one stays saved", self._reset),
            "reset": _Command("", "", self._reset),
            "usage": _Command("/usage", "show the tokens of the conversation", self._show_usage),
            "copy": _Command("/copy", "copy the last answer to the clipboard", self._copy),
            "save": _Command("/save NAME, /keep", "save the conversation under a name", self._save),
            "keep": _Command("", "", self._save),
            "list": _Command("/list", "list the saved conversations", self._list),
            "delete": _Command("/delete NAME", "delete a saved conversation", self._delete),
            "help": _Command("/help", "show this list", self._help),
            "quit": _Command("/quit, /exit", "leave (so does Ctrl-D); Ctrl-C stops an answer", self._quit),
            "exit": _Command("", "", self._quit),
        }

    def run(self, line: str) -> CommandResult | None:
        """Run the command on this line; None when the line is a question. A text of several lines always is one."""
        found = None if "\n" in line.strip() else _COMMAND.fullmatch(line.strip())
        if found is None:
            return None
        command = self._commands.get(found[1].lower())
        if command is None:
            self._terminal.print_error(self._describe_unknown(found[1]))
            return CommandResult()
        try:
            return command.run((found[2] or "").strip()) or CommandResult()
        except AsidesError as error:
            self._terminal.print_error(describe_error(error))
            return CommandResult()

    def _describe_unknown(self, name: str) -> str:
        near = find_near_name(name.lower(), self._commands)
        advice = "/help lists them." if near is None or near in _DESTRUCTIVE else f"did you mean /{near}?"
        return f"no command is called /{name}; {advice} Begin a line with // to send one slash."

    def _help(self, _: str) -> None:
        width = max(len(command.usage) for command in self._commands.values())
        lines = [f"{each.usage:<{width}}  {each.summary}" for each in self._commands.values() if each.usage]
        lines += [
            "A pasted text is one input, also with several lines; Enter sends it.",
            "A line that begins with // is sent with one slash; one that begins with a blank is not remembered.",
        ]
        self._terminal.print_info("\n".join(lines))

    def _quit(self, _: str) -> CommandResult:
        return CommandResult(ends_chat=True)

    # --- the next question --------------------------------------------------------------------------------------------

    def _edit(self, text: str) -> CommandResult | None:
        if not self._is_interactive:
            self._terminal.print_error("/edit needs a terminal.")
            return None
        question = edit_text(text or self._state.last_input, os.environ)
        if not question.strip():
            self._terminal.print_note("(nothing was written, so nothing is sent)")
            return None
        self._terminal.print_note(question)
        return CommandResult(question=question)

    def _attach(self, argument: str) -> None:
        if not argument:
            count = len(self._state.files)
            self._terminal.print_info(f"{count or 'no'} {'file' if count == 1 else 'files'} for the next question.")
            return
        for path in _read_paths(argument):
            self._state.files.append(read_file(path))
            self._terminal.print_note(f"({path} goes with the next question)")

    def _retry(self, _: str) -> CommandResult | None:
        question = self._remove_last_question()
        if question is None:
            if self._state.last_input:
                return CommandResult(question=self._state.last_input)
            self._terminal.print_error("there is no question to ask again.")
            return None
        self._state.files[:0] = [part for part in question.parts if not isinstance(part, Text)]
        self._terminal.print_note(f"> {question.text}")
        return CommandResult(question=question.text)

    def _undo(self, _: str) -> None:
        question = self._remove_last_question()
        if question is None:
            self._terminal.print_error("there is no question to remove.")
        else:
            self._terminal.print_note(f"(removed {_shorten(question.text)!r} and what followed)")

    def _remove_last_question(self) -> Message | None:
        """Remove the last question with everything after it; None if there is none."""
        conversation = self._state.conversation
        messages = conversation.messages
        for place in range(len(messages) - 1, -1, -1):
            if begins_turn(messages[place]):
                conversation.truncate(place)
                return messages[place]
        return None

    def _copy(self, _: str) -> None:
        answers = [message.text for message in self._state.conversation.messages if message.role == "assistant"]
        if not any(answers):
            self._terminal.print_error("there is no answer to copy.")
        elif not self._terminal.out_is_terminal:
            self._terminal.print_error("/copy needs a terminal.")
        else:
            # The escape that terminals read as "put this on the clipboard" (OSC 52), also over ssh.
            encoded = base64.b64encode(answers[-1].encode()).decode()
            self._terminal.write_rendered(f"\x1b]52;c;{encoded}\x07")
            self._terminal.flush()
            self._terminal.print_note("(copied, if your terminal allows it)")

    def _show_usage(self, _: str) -> None:
        self._terminal.print_info(describe_figures(self._state.conversation.usage, None, None))

    # --- how to ask ---------------------------------------------------------------------------------------------------

    def _set_thinking(self, level: str) -> None:
        options = self._state.config.options
        if level:
            read_thinking(level)
            options["thinking"] = level
        else:
            options.pop("thinking", None)
        self._terminal.print_note(f"(thinking: {level or 'the default of the settings and the model'})")

    def _set_system(self, text: str) -> None:
        conversation = self._state.conversation
        if not text:
            self._terminal.print_info(conversation.system or "no system prompt is set.")
            return
        conversation.system = text
        self._terminal.print_note("(the system prompt is set)")

    def _set_show(self, word: str) -> None:
        if word not in ("on", "off"):
            self._terminal.print_error("write /show on or /show off.")
            return
        config = self._state.config
        settings = msgspec.structs.replace(config.settings, show_reasoning_thinking=word == "on")
        self._state.config = config._replace(settings=settings)
        self._terminal.print_note(f"(thinking is {'shown' if word == 'on' else 'hidden'})")

    def _set_model(self, name: str) -> None:
        state = self._state
        if not name:
            self._terminal.print_info(state.config.model)
            return
        # Everything that can be known without a request is checked first: the provider, the options and the key.
        config, reset = state.config.with_model(name), ""
        try:
            check_call(config)
        except InvalidThinking:
            # The new model cannot think as much as the last one was asked to.
            options = config.options.copy()
            if options.pop("thinking", None) is None:
                raise
            config, reset = config._replace(options=options), "; thinking is back to its default"
            check_call(config)
        state.before_switch = state.config
        state.config = config
        state.conversation.model = config.model
        self._terminal.print_note(f"({config.model} from here on{reset})")

    def _reset(self, _: str) -> None:
        state, before = self._state, self._state.conversation
        state.conversation = state.begin_new()
        state.conversation.system, state.conversation.model = before.system, before.model
        state.last_input = ""
        if before.name is not None and is_unnamed(before.name):
            with open_store(os.environ) as store:
                store.delete(before.name)
        saved = "" if before.name is None or is_unnamed(before.name) else f"; {before.name!r} stays saved"
        self._terminal.print_note(f"(a new conversation begins{saved})")

    # --- saved conversations ------------------------------------------------------------------------------------------

    def _save(self, name: str) -> None:
        if not name:
            self._terminal.print_error("write /save and a name.")
            return
        state, conversation = self._state, self._state.conversation
        if conversation.name is not None:
            earlier = conversation.name if is_unnamed(conversation.name) else None
            if not self._is_deleted() and earlier is None:
                self._terminal.print_error(f"this conversation is already saved as {conversation.name!r}.")
                return
            state.conversation = conversation.fork(name=name)
            with open_store(os.environ) as store:
                note_own(store, name, os.environ)
                if earlier is not None:
                    store.delete(earlier)
        else:
            store = open_store(os.environ)
            saved = Conversation(
                conversation.model, system=conversation.system, client=state.client, store=store, name=name
            )
            if saved.messages:
                self._terminal.print_error(f"there is a conversation {name!r} already. Choose another name.")
                return
            saved.extend(conversation.messages, usage=conversation.usage)
            note_own(store, name, os.environ)
            state.conversation = saved
        self._terminal.print_note(f"(saved as {name!r}; asides chat --conversation {shlex.quote(name)} continues it)")

    def _is_deleted(self) -> bool:
        """Whether another process has deleted the saved conversation."""
        try:
            self._state.conversation.refresh()
        except StoreConflict as conflict:
            return conflict.found is None
        return False

    def _list(self, _: str) -> None:
        with open_store(os.environ) as store:
            lines = list_conversations(store)
        self._terminal.print_info("\n".join(lines) or "no conversation is saved; /save NAME saves this one.")

    def _delete(self, name: str) -> None:
        if not name or name == self._state.conversation.name:
            self._terminal.print_error("write /delete and the name of a conversation, not of the one that is open.")
            return
        with open_store(os.environ) as store:
            deleted = store.delete(name)
        if deleted:
            self._terminal.print_note(f"({name!r} is deleted)")
        else:
            self._terminal.print_error(f"no conversation is called {name!r}; /list shows them.")


def check_call(config: CallConfig) -> None:
    """Raise what can be known without a request: a wrong option, a missing key."""
    explain_call(CallBuilder(settings=config.settings).build(config.models, "?", config.options, stream=True))


_MAX_SHOWN_QUESTION = 60


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN_QUESTION else f"{line[: _MAX_SHOWN_QUESTION - 1]}…"


def _read_paths(argument: str) -> list[str]:
    """The files that are named: one, whatever blanks are in its name, or several as in a shell."""
    if "://" in argument or Path(_expand_home(argument)).exists():
        return [argument if "://" in argument else _expand_home(argument)]
    with suppress(ValueError):  # A quotation mark that is not closed.
        return [_expand_home(word) for word in shlex.split(argument)]
    return [_expand_home(argument)]


def _expand_home(path: str) -> str:
    with suppress(RuntimeError):  # "~name" of an unknown user.
        return str(Path(path).expanduser())
    return path
