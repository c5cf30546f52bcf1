"""Encodes a history for every dialect, message by message, and adds notices for parts that cannot be sent.

A dialect provides a function that encodes a message. `encode_flat` is for dialects with a flat list of messages,
`TurnHistory` for those with turns.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, TypeAlias

import msgspec

from asides.dialects.http_body import encode_json
from asides.dialects.verbatim import Accepts, Same, find_source, read_turn_fields, write_source
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt, Source, join_system_texts
from asides.values.notices import Notice
from asides.values.parts import Commentary, Part, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal

Wire: TypeAlias = dict[str, Any]

STAND_IN = "skip_thought_signature_validator"
"""The documented signature for a call that this model did not sign, where its provider requires one."""

OPENING = "(The conversation begins here.)"
"""The user message added before a history that begins with the model, for hosts that require a user first."""


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


def report_field(notices: list[Notice], name: str) -> None:
    """Add a notice for a field of a message that the host refuses."""
    add_notice(notices, "field_not_sent", f"this host refuses unknown fields in messages; {name!r} was left out")


def report_effort(notices: list[Notice]) -> None:
    """Add a notice for a message that changes the effort, for dialects that have none."""
    add_notice(notices, "effort_not_sent", "messages that change the effort do not exist here; set thinking= instead")


def leave_out_all_but_text(message: Message, notices: list[Notice]) -> None:
    """Add a notice for each non-text part of a message that accepts only text."""
    for part in message.parts:
        if not isinstance(part, Text):
            leave_out(part, message.role, notices)


def encode_native(part: UnknownPart, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part of unknown form: verbatim if the caller wrote it for this dialect; else leave it out."""
    return [msgspec.Raw(part.json.encode())] if part.origin is None else leave_out(part, role, notices)


def say_commentary(message: Message) -> Message:
    """Return a message with its commentary as ordinary text, for dialects that have no place for it: a blank line
    separates it from the text after it.
    """
    parts = message.parts
    if not any(isinstance(part, Commentary) for part in parts):
        return message
    last = max(place for place, part in enumerate(parts) if isinstance(part, (Text, Commentary)))
    said = [
        Text(f"{part.text}\n\n" if place < last else part.text) if isinstance(part, Commentary) else part
        for place, part in enumerate(parts)
    ]
    return msgspec.structs.replace(message, parts=tuple(said))


# --- a history, message by message ------------------------------------------------------------------------------------

Turns: TypeAlias = list[tuple[str, list[Any]]]
"""Pairs of the kind of a turn and its parts."""


class TurnHistory:
    """Collects the turns of a history. Turns in a row become one if their kind is in `merges`. `finish` builds a turn
    from its kind and its parts. `roles` are a role and its other names, which a source may have.
    """

    def __init__(
        self,
        *,
        merges: tuple[str, ...],
        finish: Callable[[str, list[Any]], Wire],
        roles: tuple[str, tuple[str, ...]] = ("", ()),
    ) -> None:
        self._merges = merges
        self._roles = roles
        self._finish = finish
        self._turns: Turns = []
        self._beside: list[tuple[int, Source]] = []
        """Sources with fields beside the parts, each with the number of its turn."""
        self._accepts: Accepts | None = None
        self.last = ""
        """The kind of the last turn."""

    def restore(
        self, message: Message, turns: Turns, dialect: str, same: Same | None = None, accepts: Accepts | None = None
    ) -> None:
        """Add the turns of a message that was read from a document, with the JSON that it was read from."""
        if not turns:
            return
        *before, (kind, parts) = turns
        written = write_source(message, parts, dialect, same=same, accepts=accepts)
        self.add([*before, (kind, written)])
        source = find_source(message, dialect)
        if source is not None and source.turn and written is not parts:
            self._beside.append((len(self._turns) - 1, source))
            self._accepts = accepts

    def add(self, turns: Turns) -> None:
        """Add the turns of a message."""
        for kind, parts in turns:
            if kind == self.last and kind in self._merges:
                self._turns[-1][1].extend(parts)
            else:
                self._turns.append((kind, list(parts)))
                self.last = kind

    def encode(self) -> list[Wire]:
        """Encode the turns."""
        encoded = [self._finish(kind, parts) for kind, parts in self._turns]
        for number, source in self._beside:
            beside = read_turn_fields(source, encoded[number], self._accepts, self._roles)
            encoded[number] = {
                name: value for name, value in (encoded[number] | beside).items() if beside.get(name, value) is not None
            }
        return encoded


# --- a flat list of messages ----------------------------------------------------------------------------------------


def read_system(prompt: Prompt) -> str | None:
    """Return the system prompt; None if it is blank."""
    return prompt.system if prompt.system and prompt.system.strip() else None


def put_system_first(prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages, with the system prompt as the first of them."""
    system = read_system(prompt)
    if system is None:
        return prompt.messages
    read = None if prompt.source is None else prompt.source.system
    first = read if read is not None and join_system_texts(read) == system else Message("system", (Text(system),))
    return (first, *prompt.messages)


def encode_system(message: Message, notices: list[Notice], role: str = "system") -> list[Wire]:
    """Encode a system message as a role and its text. Other parts are dropped with a notice."""
    leave_out_all_but_text(message, notices)
    if message.effort is not None:
        report_effort(notices)
    text = join_system_texts(message)
    return [{"role": role, "content": text}] if text.strip() else []


def encode_flat(
    messages: Iterable[Message],
    notices: list[Notice],
    *,
    user: Callable[[Message, list[Part]], Wire],
    assistant: Callable[[Message], list[Wire]],
    tool_result: Callable[[ToolResult], Wire],
    system: Callable[[Message], list[Wire]] | None = None,
    restore: Callable[[Message, list[Wire]], list[Wire]] | None = None,
    has_commentary: bool = False,
) -> list[Wire]:
    """Encode a history as a flat list, in order. Tool results come before the other parts of their message.

    `user` is called with a message and its parts without results. Without `system`, `encode_system` is used.
    `restore` returns the JSON that a message was read from, where that says the same (`write_source`).
    `has_commentary`: the dialect marks commentary; otherwise it becomes text (`say_commentary`).
    """
    encoded: list[Wire] = []
    for message in messages:
        start = len(encoded)
        match message.role:
            case "system":
                encoded += encode_system(message, notices) if system is None else system(message)
            case "assistant":
                encoded += assistant(message if has_commentary else say_commentary(message))
            case "user" | "tool":
                others: list[Part] = []
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        encoded.append(tool_result(part))
                    else:
                        others.append(part)
                if others and message.role == "tool":
                    raise Unsupported(
                        "a message of role 'tool' holds ToolResult parts; put other parts into a user message."
                    )
                if others or (not message.parts and message.role == "user"):
                    encoded.append(user(message, others))
        if message.source is not None and restore is not None:
            encoded[start:] = restore(message, encoded[start:])
    return encoded


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
    """Return the arguments of a call as JSON text, or the received text if it was not a JSON object."""
    raw = call.raw_arguments
    return encode_json(call.arguments).decode() if raw is None else raw


# "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40" (2026-11).
ID_UP_TO_40 = re.compile(r".{0,40}", re.DOTALL)
# "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64" (2026-11).
ID_UP_TO_64 = re.compile(r".{0,64}", re.DOTALL)
ANY_ID = re.compile(r".*", re.DOTALL)
WORD_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# docs.aws.amazon.com bedrock APIReference API_runtime_ToolUseBlock, 2026-11. Claude takes fewer.
PUNCTUATED_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
NINE_ALPHANUMERICS = re.compile(r"[a-zA-Z0-9]{9}")
_ALPHABET = digits + ascii_uppercase + ascii_lowercase


def fit_call_id(call_id: str, accepted: re.Pattern[str]) -> str:
    """Return the id, or one derived from it if a host does not accept it. The call, its result and every later request
    have the same. Ids of one history are unique before (history/turns) and after.
    """
    if accepted.fullmatch(call_id):
        return call_id
    data = call_id.encode("utf-8", "replace")
    if accepted is not NINE_ALPHANUMERICS:
        return f"call_{hashlib.blake2b(data, digest_size=12).hexdigest()}"
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
    letters: list[str] = []
    for _ in range(9):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


class CallIds:
    """The ids of calls in one history, as a host accepts them.

    An id that was read from requests in the host's own dialect goes back as it came if it fits `as_read`, unless a
    message with it was changed: a call and its result have the same id.
    """

    def __init__(
        self,
        messages: Iterable[Message],
        dialect: str,
        accepted: re.Pattern[str],
        as_read: re.Pattern[str] | None = None,
    ) -> None:
        self._messages = messages
        self._dialect = dialect
        self._accepted = accepted
        self._as_read = as_read
        self._kept: set[str] | None = None

    def fit(self, call_id: str) -> str:
        """Return the id, or one derived from it."""
        if self._accepted.fullmatch(call_id):
            return call_id
        if self._as_read is not None and self._as_read.fullmatch(call_id) and call_id in self._find_kept():
            return call_id
        return fit_call_id(call_id, self._accepted)

    def is_kept(self, call_id: str) -> bool:
        """Whether every message with this id still has its source."""
        return call_id in self._find_kept()

    def _find_kept(self) -> set[str]:
        """Find the ids of messages that still have their source. Few histories have an id that is not accepted."""
        if self._kept is None:
            found: dict[bool, set[str]] = {True: set(), False: set()}
            for message in self._messages:
                ids = {part.id for part in message.parts if isinstance(part, ToolCall)}
                ids |= {part.call_id for part in message.parts if isinstance(part, ToolResult)}
                found[find_source(message, self._dialect) is not None] |= ids
            self._kept = found[True] - found[False]
        return self._kept


def find_entry(seals: tuple[Seal, ...], kind: str) -> msgspec.Raw | None:
    """Return the verbatim entry of the first seal of this kind that has one."""
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    return None if entry is None else msgspec.Raw(entry.encode())
