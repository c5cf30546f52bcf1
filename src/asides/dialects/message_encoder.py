"""Encodes a history for every dialect, message by message, and adds notices for parts that cannot be sent.

A dialect provides a function that encodes a message. `HistoryEncoder` is for dialects with a flat list of messages,
`TurnHistoryEncoder` for those with turns. Not here: the fields of a dialect (its encode.py), content blocks
(turn_encoder), pictures and files (media).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import msgspec

from asides.dialects.http_body import encode_json
from asides.values.errors import Unsupported
from asides.values.message_facts import HAS_MEDIA, IS_PLAIN, Context, MessageFacts
from asides.values.messages import Message, Prompt, read_facts
from asides.values.notices import Notice
from asides.values.parts import Part, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal

Wire: TypeAlias = dict[str, Any]

STAND_IN = "skip_thought_signature_validator"
"""The documented signature for a call that this model did not sign, where its provider requires one."""

OPENING = "(The conversation begins here.)"
"""The user message that is added before a history that begins with the model, where a user must begin."""


# --- notices --------------------------------------------------------------------------------------------------------


def add_notice(notices: list[Notice], code: str, detail: str) -> None:
    """Add a notice about the messages, once."""
    notice = Notice(code, detail, "messages")
    if notice not in notices:
        notices.append(notice)


def leave_out(part: Part, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part that the dialect cannot send: nothing, and a notice."""
    kind = type(part).__name__
    add_notice(notices, "part_not_sent", f"this dialect cannot send {kind} parts of the role {role!r}")
    return []


def report_effort(notices: list[Notice]) -> None:
    """Add a notice for a message that changes the effort, for dialects that have none."""
    add_notice(notices, "effort_not_sent", "messages that change the effort do not exist here; set thinking= instead")


def leave_out_all_but_text(message: Message, notices: list[Notice]) -> None:
    """Add a notice for each part of a message that only takes text."""
    for part in message.parts:
        if not isinstance(part, Text):
            leave_out(part, message.role, notices)


def encode_native(part: UnknownPart, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part of unknown form: verbatim if the caller wrote it for this dialect; else leave it out."""
    return [msgspec.Raw(part.json.encode())] if part.origin is None else leave_out(part, role, notices)


# --- a history, message by message ------------------------------------------------------------------------------------

_ENCODER = msgspec.json.Encoder()

Turns: TypeAlias = list[tuple[str, list[Any]]]
"""Pairs of the kind of a turn and its parts."""


class EncodedMessage(msgspec.Struct, gc=False, eq=False):
    """The form of a message on the wire, in one context, with the notices about it."""

    wires: Sequence[Any]
    first: str = ""
    last: str = ""
    """The kinds of its first and its last turn."""
    turns: Turns | None = None
    """Its turns, unless they are only needed as a whole."""
    context: Context | None = None
    notices: tuple[Notice, ...] = ()
    arguments: tuple[bytes, ...] = ()

    def has_arguments_of(self, facts: MessageFacts) -> bool:
        """Whether the arguments of the calls are as before: nothing else in a message can be changed in place."""
        try:
            return not facts.calls or _encode_all_arguments(facts) == self.arguments
        except (TypeError, ValueError, RecursionError):
            return False  # the error of the whole request names the field


def _encode_all_arguments(facts: MessageFacts) -> tuple[bytes, ...]:
    return tuple([_ENCODER.encode(call.arguments) for call in facts.calls])


def _encode_nothing(_: Message) -> list[Any]:
    raise AssertionError("the history has ended")


class HistoryEncoder:
    """Encodes messages one after the other, as a flat list. `encode` encodes one of them.

    Each message is encoded once for a context, and its bytes are used again: a turn of a conversation encodes only its
    new messages. Without a context nothing is kept, and the result holds plain dicts. `encode` sets `keep` to
    False if its result depends on other messages.
    """

    def __init__(
        self,
        encode: Callable[[Message], list[Any]],
        notices: list[Notice],
        plain: Callable[[str, str], Wire],
        *,
        between: Callable[[str, str], list[Any]] | None = None,
    ) -> None:
        """`plain` is a short way for most messages: it encodes a role and a text as `encode` would."""
        self.encode = encode
        self.notices = notices
        self._plain = plain
        self.encoded: list[Any] = []
        self.keep = True
        self.last = ""
        """The kind of the last turn."""
        self._between = between
        """Returns what is sent between two messages of these roles."""

    def run(self, messages: Sequence[Message], context: Context | None) -> None:
        """Encode these messages after those before."""
        encoded, between = self.encoded, self._between
        for message, facts in zip(messages, read_facts(messages), strict=True):
            form = facts.encoded
            if form.context is not context or (facts.calls and not form.has_arguments_of(facts)):
                form = self.find_form(message, facts, context)
            if form.notices:
                self.add_notices(form.notices)
            if between is not None and form.wires:
                encoded += between(self.last, form.first)
                self.last = form.last
            encoded += form.wires

    def find_form(self, message: Message, facts: MessageFacts, context: Context | None) -> EncodedMessage:
        """Find the form that the message had before its latest one, or encode it."""
        earlier = facts.encoded_before
        if context is None or earlier.context is not context or not earlier.has_arguments_of(facts):
            make = self._make_plain_form if facts.traits & IS_PLAIN and context is not None else self._make_form
            return make(message, facts, context)
        facts.encoded, facts.encoded_before = earlier, facts.encoded
        return cast("EncodedMessage", earlier)

    def _make_form(self, message: Message, facts: MessageFacts, context: Context | None) -> EncodedMessage:
        # Base64 is made anew each time: it takes more room than time.
        self.keep = context is not None and not facts.traits & HAS_MEDIA
        others, self.notices[:] = self.notices[:], ()
        try:
            form = self.make_form(message)
            form.notices = tuple(self.notices)
        finally:
            self.notices[:] = others
        if self.keep:
            try:
                form.arguments = _encode_all_arguments(facts)
                form.wires = tuple([msgspec.Raw(_ENCODER.encode(wire)) for wire in form.wires])
            except (TypeError, ValueError, RecursionError):
                return form  # the error of the whole request names the field
            form.turns = None
            form.context = context
            facts.encoded, facts.encoded_before = form, facts.encoded
        return form

    def _make_plain_form(self, message: Message, facts: MessageFacts, context: Context | None) -> EncodedMessage:
        role, (part,) = message.role, message.parts
        wire = self._plain(role, cast("Text", part).text)
        try:
            form = EncodedMessage((msgspec.Raw(_ENCODER.encode(wire)),), role, role, None, context)
        except ValueError:
            return EncodedMessage([wire], role, role)  # half a character: the error of the whole request tells
        facts.encoded, facts.encoded_before = form, facts.encoded
        return form

    def make_form(self, message: Message) -> EncodedMessage:
        """Encode the message."""
        wires = self.encode(message)
        if self._between is None or not wires:
            return EncodedMessage(wires)
        return EncodedMessage(wires, wires[0]["role"], wires[-1]["role"])

    def end(self) -> list[Any]:
        """Return what was encoded. Nothing can follow: no encoder and its history refer to each other after a call."""
        self.encode = _encode_nothing
        return self.encoded

    def add_notices(self, notices: tuple[Notice, ...]) -> None:
        """Add the notices about one message, each once."""
        self.notices += [notice for notice in notices if notice not in self.notices]


class TurnHistoryEncoder(HistoryEncoder):
    """Encodes messages as turns: `encode` returns the turns of a message. Turns in a row become one if their kind is in
    `merges`. `finish` builds a turn from its kind and its parts.
    """

    def __init__(
        self,
        encode: Callable[[Message], Turns],
        notices: list[Notice],
        plain: Callable[[str, str], Wire],
        *,
        merges: tuple[str, ...],
        finish: Callable[[str, list[Any]], Wire],
    ) -> None:
        super().__init__(encode, notices, plain)
        self._merges = merges
        self._finish = finish
        self._before = Message("user"), EncodedMessage(())
        self._merged: list[Any] = []
        """The parts of the last turn, while those of other messages are added to it."""

    def run(self, messages: Sequence[Message], context: Context | None) -> None:
        """Encode these messages after those before."""
        encoded, merges, last = self.encoded, self._merges, self.last
        before, before_form = self._before
        for message, facts in zip(messages, read_facts(messages), strict=True):
            form = facts.encoded
            if form.context is not context or (facts.calls and not form.has_arguments_of(facts)):
                self.last = last
                form = self.find_form(message, facts, context)
            if form.notices:
                self.add_notices(form.notices)
            if not form.wires:
                continue
            if form.first == last and last in merges:
                self._merge(before, before_form, message, form)
            else:
                if self._merged:
                    self._finish_merged(last)
                encoded += form.wires
            last, before, before_form = form.last, message, form
        if self._merged:
            self._finish_merged(last)
        self.last, self._before = last, (before, before_form)

    def run_opening(self, messages: Sequence[Message]) -> int:
        """Encode the messages up to the first one that has a turn; return how many. None of them is kept: whether a
        message is the first decides what is added before it.
        """
        count = 0
        while not self.last and count < len(messages):
            count += 1
            self.run(messages[count - 1 : count], None)
        return count

    def make_form(self, message: Message) -> EncodedMessage:
        """Encode the message."""
        turns: Turns = self.encode(message)
        wires = [self._finish(kind, parts) for kind, parts in turns]
        return EncodedMessage(wires, turns[0][0], turns[-1][0], turns) if turns else EncodedMessage(())

    def unpack_last(self) -> Wire:
        """Return the last turn as a dict that can be changed."""
        last = self.encoded[-1]
        if isinstance(last, msgspec.Raw):
            last = self.encoded[-1] = self._finish(*self._find_turns(*self._before)[-1])
        return cast("Wire", last)

    def _merge(self, before: Message, before_form: EncodedMessage, message: Message, form: EncodedMessage) -> None:
        """Add the first turn of a message to the last turn of the one before; its other turns follow."""
        if not self._merged:
            self._merged = list(self._find_turns(before, before_form)[-1][1])
        self._merged += self._find_turns(message, form)[0][1]
        if len(form.wires) > 1:
            self._finish_merged(form.first)
            self.encoded += form.wires[1:]

    def _finish_merged(self, kind: str) -> None:
        self.encoded[-1] = self._finish(kind, self._merged)
        self._merged = []

    def _find_turns(self, message: Message, form: EncodedMessage) -> Turns:
        if form.turns is None:
            form.turns = cast("Turns", self.encode(message))  # its notices are there already
        return form.turns


# --- a flat list of messages ----------------------------------------------------------------------------------------


def encode_plain(role: str, text: str) -> Wire:
    """Encode a plain text, for the dialects whose messages are a role and a content."""
    return {"role": role, "content": text}


def read_system(prompt: Prompt) -> str | None:
    """Return the system prompt; None if it is blank."""
    return prompt.system if prompt.system and prompt.system.strip() else None


def put_system_first(prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages, with the system prompt as the first of them."""
    system = read_system(prompt)
    return prompt.messages if system is None else (Message("system", (Text(system),)), *prompt.messages)


def encode_system(message: Message, notices: list[Notice], role: str = "system") -> list[Wire]:
    """Encode a system message as a role and its text. A notice tells of other parts."""
    leave_out_all_but_text(message, notices)
    if message.effort is not None:
        report_effort(notices)
    return [{"role": role, "content": message.text}] if message.text.strip() else []


def encode_flat(
    messages: Iterable[Message],
    notices: list[Notice],
    *,
    user: Callable[[Message, list[Part]], Wire],
    assistant: Callable[[Message], list[Wire]],
    tool_result: Callable[[ToolResult], Wire],
) -> list[Wire]:
    """Encode a history as a flat list, in order. Tool results come before the other parts of their message.

    `user` is called with a message and its parts without results.
    """
    system = partial(encode_system, notices=notices)
    encode = build_flat_encoder(system=system, user=user, assistant=assistant, tool_result=tool_result)
    return [wire for message in messages for wire in encode(message)]


def build_flat_encoder(
    *,
    user: Callable[[Message, list[Part]], Wire],
    assistant: Callable[[Message], list[Wire]],
    tool_result: Callable[[ToolResult], Wire],
    system: Callable[[Message], list[Wire]],
) -> Callable[[Message], list[Wire]]:
    """Build the function that encodes one message of a flat list (see `encode_flat`)."""

    def encode(message: Message) -> list[Wire]:
        match message.role:
            case "system":
                return system(message)
            case "assistant":
                return assistant(message)
            case "user" | "tool":
                (facts,) = read_facts((message,))
                parts: list[Part] = list(message.parts)
                encoded: list[Wire] = []
                if facts.results:
                    encoded = [tool_result(part) for part in facts.results]
                    parts = [part for part in parts if not isinstance(part, ToolResult)]
                if not parts and (message.parts or message.role == "tool"):
                    return encoded
                if message.role == "tool":
                    raise Unsupported(
                        "a message of role 'tool' holds ToolResult parts; put other parts into a user message."
                    )
                return [*encoded, user(message, parts)]

    return encode


# --- values -------------------------------------------------------------------------------------------------------


def simplify_content(encoded: list[Any], text_type: str) -> str | list[Any]:
    """Return content that is only one text as a string, other content as the list of its parts."""
    match encoded:
        case []:
            return ""
        case [{"type": kind, "text": str() as text}] if kind == text_type:
            return text
        case _:
            return encoded


def encode_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as JSON text, or the text as it came if that was no JSON object."""
    raw = call.raw_arguments
    return encode_json(call.arguments).decode() if raw is None else raw


def shorten_call_id(call_id: str, most: int) -> str:
    """Return the id, or one derived from it if it is longer than a host takes. The call, its result and every later
    request have the same.
    """
    if len(call_id) <= most:
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"


def find_entry(seals: tuple[Seal, ...], kind: str) -> msgspec.Raw | None:
    """Return the verbatim entry of the first seal of this kind that has one."""
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    return None if entry is None else msgspec.Raw(entry.encode())
