"""Encodes a history as contents and the texts of the system instruction: `encode_contents(prompt, target, notices)`.

history/plan has removed the thoughts and seals that do not go back.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container
from typing import Any

import msgspec

from asides.dialects.gemini.decode import METADATA, SIGNATURE, THOUGHT_PART
from asides.dialects.gemini.import_contents import USER_ROLES, read_response, unify_signature
from asides.dialects.media import split_data_url
from asides.dialects.message_encoder import (
    OPENING,
    STAND_IN,
    TurnHistory,
    Turns,
    Wire,
    add_notice,
    encode_native,
    leave_out,
    leave_out_all_but_text,
    read_system,
    report_effort,
    say_commentary,
)
from asides.dialects.verbatim import find_source
from asides.providers.provider import Target
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt, join_system_texts
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.values.traits import find_results, list_calls
from asides.wire.lenient import unify_base64


def encode_contents(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[list[Wire], list[str]]:
    """Encode every message as contents, in order; and list the texts of the system instruction."""
    encoder = _ContentEncoder(prompt, notices, must_sign=target.rule.signed_calls)
    for message in prompt.messages:
        turns = encoder.encode(message)
        if message.source is None:
            encoder.history.add(turns)
        else:
            encoder.history.restore(message, turns, "gemini", _is_same)
    return encoder.history.encode(), encoder.system


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: ids are optional, results have several forms, and base64 two alphabets."""
    match name:
        case "id":
            return theirs is None
        case "response":
            return read_response(theirs) == read_response(ours)
        case "thoughtSignature":
            return isinstance(theirs, str) and unify_signature(theirs) == ours
        case "data":
            return isinstance(theirs, str) and unify_base64(theirs) == unify_base64(ours)
        case _:
            return False


class _ContentEncoder:
    """Encodes the messages of one history. The kinds of its turns are "assistant", "user" and "results"."""

    def __init__(self, prompt: Prompt, notices: list[Notice], *, must_sign: bool) -> None:
        system = read_system(prompt)
        self.system = [] if system is None else [system]
        self.must_sign = must_sign
        """Whether the first call of a message must have a signature, for models that sign. Only the current turn is
        checked, but its calls stay as they were sent when it has ended: the provider's cache compares them."""
        self.notices = notices
        self.names = {call.id: call.name for call in list_calls(prompt.messages)}
        # The results for the calls of one turn belong together.
        self.history = TurnHistory(merges=("assistant", "results"), finish=_build_content, roles=("user", USER_ROLES))

    def encode(self, message: Message) -> Turns:
        """Encode one message."""
        notices, history = self.notices, self.history
        match message.role:
            case "system":
                self.system += _encode_system(message, notices, is_first=not history.last)
                return []
            case "assistant":
                keeps_blanks = find_source(message, "gemini") is not None
                parts = _encode_model(message, notices, must_sign=self.must_sign, keeps_blanks=keeps_blanks)
                turns: Turns = [("assistant", parts)] if parts else []
                if parts and not history.last:
                    detail = "conversations must begin with the user here; a short user message was added"
                    add_notice(notices, "turn_added", detail)
                    return [("user", [{"text": OPENING}]), *turns]
                return turns
            case "user" | "tool":
                found = find_results(message)
                inside = _list_results_with_parts(message)
                results = [
                    wire for each in found for wire in _encode_tool_result(each, self.names, notices, inside=inside)
                ]
                turns = [("results", results)] if results else []
                others: list[Part] = [part for part in message.parts if not isinstance(part, ToolResult)]
                if others or not message.parts:
                    parts = [wire for part in others for wire in _encode_user_part(part, notices)]
                    has_none = not message.parts and find_source(message, "gemini") is not None
                    turns.append(("user", parts or ([] if has_none else [{"text": ""}])))
                return turns


def _build_content(kind: str, parts: list[Any]) -> Wire:
    return {"role": "model" if kind == "assistant" else "user", "parts": parts}


# --- system, user, tools --------------------------------------------------------------------------------------------


def _encode_system(message: Message, notices: list[Notice], *, is_first: bool) -> list[str]:
    leave_out_all_but_text(message, notices)
    if message.effort is not None:
        report_effort(notices)
    if not message.text.strip():
        return []
    if not is_first:
        detail = "this dialect has one system instruction; a later one was added to it"
        add_notice(notices, "system_moved", detail)
    return [join_system_texts(message)]


def _encode_user_part(part: Part, notices: list[Notice]) -> list[Any]:
    match part:
        case Text():
            return [{"text": part.text}]
        case Image() | File():
            return [_encode_media(part, notices)]
        case UnknownPart():
            return encode_native(part, "user", notices)
        case _:
            return leave_out(part, "user", notices)


def _list_results_with_parts(message: Message) -> Container[object]:
    """List the results of a message that were read with their media inside, by the id of the call and the tool."""
    if not any(isinstance(part, ToolResult) and not isinstance(part.content, str) for part in message.parts):
        return ()
    source = find_source(message, "gemini")
    try:
        found = [] if source is None else msgspec.json.decode(source.json, type=list[dict[str, Any]])
    except (msgspec.DecodeError, RecursionError):
        return ()  # from a file that was edited
    answers = [answer for part in found if isinstance(answer := part.get("functionResponse"), dict)]
    return [answer.get(name) for answer in answers if answer.get("parts") for name in ("id", "name")]


def _encode_tool_result(
    result: ToolResult, names: dict[str, str], notices: list[Notice], *, inside: Container[object]
) -> list[Wire]:
    name = result.name or names.get(result.call_id)
    if name is None:
        raise Unsupported(f"a tool result names no tool, and no call has its id {result.call_id!r}.")
    value = None if result.is_error else result.read_object()
    answer = {"error" if result.is_error else "output": result.text} if value is None else value
    encoded: Wire = {"functionResponse": {"id": result.call_id, "name": name, "response": answer}}
    parts = () if isinstance(result.content, str) else result.content
    media = [_encode_media(part, notices) for part in parts if not isinstance(part, Text)]
    if media and (result.call_id in inside or name in inside):
        # Older models refuse it, so it is only for results that had it.
        encoded["functionResponse"]["parts"] = media
        media = []
    return [encoded, *media]


def _encode_media(media: Image | File, notices: list[Notice]) -> Wire:
    if isinstance(media, Image) and media.detail is not None:
        add_notice(notices, "detail_not_sent", "the detail of an image cannot be sent in this dialect")
    if media.data is not None:
        return {"inlineData": {"mimeType": media.media_type, "data": b64encode(media.data).decode()}}
    address = media.url or (media.id if isinstance(media, File) else None)
    if address is None:
        raise Unsupported("an image or a file has neither data nor an address; give data= or url=.")
    if (inline := split_data_url(address)) is not None:
        media_type, data = inline
        return {"inlineData": {"mimeType": media_type or media.media_type, "data": data}}
    kind = {"mimeType": media.media_type} if media.media_type else {}
    return {"fileData": {**kind, "fileUri": address}}


# --- the model ------------------------------------------------------------------------------------------------------


_BLANK = Text("")


def _encode_model(message: Message, notices: list[Notice], *, must_sign: bool, keeps_blanks: bool) -> list[Wire]:
    """Encode a turn of the model. With `must_sign`, the first call gets the stand-in if it has no signature."""
    encoded: list[Wire] = []
    for part in say_commentary(message).parts:
        parts = [{"text": ""}] if keeps_blanks and part == _BLANK else _encode_model_part(part, notices)
        if parts and must_sign and isinstance(part, ToolCall):
            must_sign = False
            if "thoughtSignature" not in parts[0]:
                parts[0]["thoughtSignature"] = STAND_IN
                detail = f"a call of {part.name} has no signature of this model; the documented stand-in was sent"
                add_notice(notices, "signature_stand_in", detail)
        encoded += parts
    if not encoded:
        add_notice(notices, "message_not_sent", "an assistant message without content was left out")
    return encoded


def _encode_model_part(part: Part, notices: list[Notice]) -> list[Wire]:
    match part:
        case Text():
            return [_sign({"text": part.text}, part.seals)] if part.text or _find_signature(part.seals) else []
        case Thought(text="", seals=(Seal(kind=kind, value=raw), *_)) if kind == THOUGHT_PART:
            return [msgspec.json.decode(raw, type=Wire)]
        case Thought():
            return [_sign({"text": part.text, "thought": True}, part.seals)]
        case ToolCall():
            call: Wire = {"id": part.id, "name": part.name, "args": part.arguments}
            if part.raw_arguments is not None and not part.arguments:
                detail = f"the arguments of {part.name} are not a JSON object; none were sent"
                add_notice(notices, "tool_arguments_dropped", detail)
            return [_sign({"functionCall": call}, part.seals)]
        case Refusal():
            return [{"text": part.text}] if part.text else []
        case Image() | File():
            return [_sign(_encode_media(part, notices), part.seals)]
        case ServerTool(name=name) if name in METADATA:
            return []  # it arrived beside the content, not as a part of it
        case ServerTool() | UnknownPart():
            return _encode_verbatim(part, notices)
        case _:
            return leave_out(part, "assistant", notices)


def _encode_verbatim(part: ServerTool | UnknownPart, notices: list[Notice]) -> list[Wire]:
    try:
        fields = msgspec.json.decode(part.json, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return leave_out(part, "assistant", notices)
    fields.pop("thoughtSignature", None)
    return [_sign(dict(fields), part.seals)]


def _find_signature(seals: tuple[Seal, ...]) -> str | None:
    return next((seal.value for seal in seals if seal.kind == SIGNATURE and seal.value), None)


def _sign(part: Wire, seals: tuple[Seal, ...]) -> Wire:
    signature = _find_signature(seals)
    return part if signature is None else {**part, "thoughtSignature": signature}
