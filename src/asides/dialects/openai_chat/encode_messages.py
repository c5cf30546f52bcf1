"""Messages in chat's words: `spell_messages(prompt, target, notices)`, the history as the list that a request carries.

Not here: which thoughts go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

import msgspec

from asides.dialects.message_encoder import (
    STAND_IN,
    FlatMessageEncoder,
    Wire,
    data_url,
    encode_arguments,
    image_address,
    plain_content,
)
from asides.providers.provider import ReplayAs, Target
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Message, Part, Prompt, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought

# Seals of this family hold one entry of the array each, whole.
DETAILS = "reasoning_details"
DETAILS_TEXT_FIELD = "reasoning"
_SIGNATURE = "thought_signature"

_BRIDGE = "Noted."
_STAND_IN_CARRIER = f'{{"google":{{"{_SIGNATURE}":"{STAND_IN}"}}}}'.encode()

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NINE_ALPHANUMERICS = re.compile(r"[A-Za-z0-9]{9}")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def encode_messages(prompt: Prompt, target: Target, notices: list[Notice]) -> list[Wire]:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, target, notices).run()


class _Speller(FlatMessageEncoder):
    """One history, while it is put into one host's words."""

    def __init__(self, prompt: Prompt, target: Target, notices: list[Notice]) -> None:
        rule, quirks = target.rule, target.quirks
        super().__init__(prompt, notices)
        self.quirks = quirks
        self.system_role = target.facts.system_role
        self.replay_as: ReplayAs = target.facts.replay_as
        self.thinking_in = target.facts.thinking_in
        self.marks_empty_thinking = quirks.empty_thinking and _thinks(prompt, target)
        pairs = [tag for tag in target.facts.tags if isinstance(tag, tuple)]
        self.opening, self.closing = pairs[0] if pairs else ("<think>", "</think>")
        self.signed_calls = rule.signed_calls

    def run(self) -> list[Wire]:
        """Every message of the prompt, in order."""
        spelled = super().run()
        if self.signed_calls:
            self._sign(spelled)
        match self.quirks.after_results:
            case "anyone":
                return spelled
            case "assistant":
                return self._with_bridges(spelled)

    def _sign(self, spelled: list[Wire]) -> None:
        """The first call of each step of the turn under way is signed; by a stand-in where this model did not."""
        for message in reversed(spelled):
            if message["role"] == "user":
                return
            calls = message.get("tool_calls")
            if calls and "extra_content" not in calls[0]:
                calls[0]["extra_content"] = msgspec.Raw(_STAND_IN_CARRIER)
                words = "a call has no signature of this model; the documented stand-in was sent"
                self._note("signature_stand_in", words)

    def _with_bridges(self, spelled: list[Wire]) -> list[Wire]:
        bridged: list[Wire] = []
        for message in spelled:
            if bridged and bridged[-1]["role"] == "tool" and message["role"] == "user":
                self._note("turn_added", "nobody but the model may speak behind results here; a word of it was added")
                bridged.append({"role": "assistant", "content": _BRIDGE})
            bridged.append(message)
        return bridged

    def _kind_of(self, part: Part) -> str:
        match part:
            case UnknownPart():
                return "an unknown part"
            case ToolCall():
                return "a tool call"
            case ToolResult():
                return "a tool result"
            case _:
                return super()._kind_of(part)

    # --- system, user and tools -------------------------------------------------------------------------------------

    def _system(self, message: Message) -> list[Wire]:
        self._leave_out_all_but_text(message)
        return [_named(message, spelled) for spelled in super()._system(message)]

    def _result(self, result: ToolResult) -> Wire:
        return {"role": "tool", "tool_call_id": self._call_id(result.call_id), "content": self._result_text(result)}

    def _result_text(self, result: ToolResult) -> str:
        if isinstance(result.content, str):
            return result.content
        pieces: list[str] = []
        for part in result.content:
            if isinstance(part, Text):
                pieces.append(part.text)
                continue
            self._note("result_part_not_sent", "tools answer in text here; a note took the place of an image or a file")
            what = "image" if isinstance(part, Image) else "file"
            pieces.append(f"[{what}, {part.media_type}: not shown]")
        return "\n".join(pieces)

    def _user(self, message: Message) -> list[Wire]:
        return [_named(message, spelled) for spelled in super()._user(message)]

    def _said(self, parts: list[Part]) -> Wire:
        spelled = [wire for part in parts if (wire := self._user_part(part)) is not None]
        return {"content": plain_content(spelled, "text")}

    def _user_part(self, part: Part) -> Wire | msgspec.Raw | None:
        match part:
            case Text():
                return {"type": "text", "text": part.text}
            case Image():
                return _image(part)
            case File():
                return _file(part)
            case _:
                return self._native(part, "user")

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message) -> list[Wire]:
        thoughts = [part for part in message.parts if isinstance(part, Thought)]
        refusal = "".join(part.text for part in message.parts if isinstance(part, Refusal))
        for part in message.parts:
            if not isinstance(part, (Thought, Text, ToolCall, Refusal)):
                self._left_out(part, "assistant")
        calls = [self._call(call) for call in message.tool_calls]
        fields = self._thinking_fields(thoughts, calls=bool(calls))
        content = self._content(message)
        if not content and not calls and not refusal and not fields:
            self._note("message_not_sent", "an assistant message without content was left out")
            return []
        spelled: Wire = {"role": "assistant"}
        if content:
            spelled["content"] = content
        elif not calls:
            # A turn that calls tools leaves empty content out, since some hosts refuse it; others must have the field.
            spelled["content"] = None if refusal else ""
        spelled |= fields
        if refusal:
            spelled["refusal"] = refusal
        if calls:
            spelled["tool_calls"] = calls
        return [_named(message, spelled)]

    def _content(self, message: Message) -> str | list[Wire]:
        inline = self.replay_as in ("content_list", "tags") and any(isinstance(part, Thought) for part in message.parts)
        if not inline:
            # Replies that call tools often have a blank line for content, which some hosts refuse when it comes back.
            return message.text if message.text.strip() else ""
        if self.replay_as == "tags":
            return "".join(self._tagged(part) for part in message.parts)
        return [wire for part in message.parts if (wire := _chunk(part)) is not None]

    def _tagged(self, part: Part) -> str:
        match part:
            case Text():
                return part.text
            case Thought() if part.text:
                return f"{self.opening}{part.text}{self.closing}"
            case _:
                return ""

    def _thinking_fields(self, thoughts: list[Thought], *, calls: bool) -> Wire:
        seals = [seal for thought in thoughts for seal in thought.seals]
        fields: Wire = {}
        match self.replay_as:
            case "details":
                entries = [msgspec.Raw(seal.entry.encode()) for seal in seals if _is_detail(seal) and seal.entry]
                if entries:
                    fields[DETAILS] = entries
                elif text := _joined(thoughts):
                    fields[DETAILS_TEXT_FIELD] = text
            case "field":
                for name in dict.fromkeys(map(self._field_of, thoughts)):
                    if text := _joined([thought for thought in thoughts if self._field_of(thought) == name]):
                        fields[name] = text
                if calls and not fields and self.marks_empty_thinking:
                    fields[self.quirks.replay_field] = ""
            case "content_list" | "tags":
                pass
        signature = next((seal for seal in seals if seal.kind == _SIGNATURE), None)
        if signature is not None:
            fields |= _carrier(signature) or {_SIGNATURE: signature.value}
        return fields

    def _field_of(self, thought: Thought) -> str:
        via = thought.via
        return via if via is not None and via in self.thinking_in else self.quirks.replay_field

    def _call(self, call: ToolCall) -> Wire:
        spelled: Wire = {
            "id": self._call_id(call.id),
            "type": "function",
            "function": {"name": call.name, "arguments": encode_arguments(call)},
        }
        for seal in call.seals:
            spelled |= _carrier(seal)
        return spelled

    def _call_id(self, call_id: str) -> str:
        if self.quirks.tool_call_ids == "any" or _NINE_ALPHANUMERICS.fullmatch(call_id):
            return call_id
        # The same in the call and in its result, and in every later request.
        number = int.from_bytes(hashlib.blake2b(call_id.encode(), digest_size=8).digest())
        letters: list[str] = []
        for _ in range(9):
            number, place = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[place])
        return "".join(letters)


def _thinks(prompt: Prompt, target: Target) -> bool:
    """Whether the model will think, as far as is known, and wants earlier thinking back."""
    if target.thinks(prompt.thinking) is False:
        return False
    return target.provider.replay_rule(target.family or target.model).when != "never"


def _named(message: Message, spelled: Wire) -> Wire:
    return spelled if message.name is None else {"role": spelled.pop("role"), "name": message.name, **spelled}


def _joined(thoughts: list[Thought]) -> str:
    return "\n\n".join(thought.text for thought in thoughts if thought.text)


def _is_detail(seal: Seal) -> bool:
    return seal.kind.startswith(DETAILS)


def _carrier(seal: Seal) -> Wire:
    """The object beside a message or a call that a signature came in, verbatim."""
    if seal.kind != _SIGNATURE or seal.entry is None:
        return {}
    return {"extra_content": msgspec.Raw(seal.entry.encode())}


def _chunk(part: Part) -> Wire | None:
    """A part of a content list that holds thinking beside text."""
    match part:
        case Text() if part.text:
            return {"type": "text", "text": part.text}
        case Thought() if part.text or part.seals:
            chunk: Wire = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}] if part.text else []}
            for seal in part.seals:
                if seal.kind == "signature":
                    chunk["signature"] = seal.value
            return chunk
        case _:
            return None


def _image(image: Image) -> Wire:
    url = image_address(image)
    described = {"url": url} if image.detail is None else {"url": url, "detail": image.detail}
    return {"type": "image_url", "image_url": described}


def _file(file: File) -> Wire:
    if file.id is not None:
        return {"type": "file", "file": {"file_id": file.id}}
    if file.data is not None:
        sound = _AUDIO_FORMATS.get(file.media_type)
        if sound is not None:
            return {"type": "input_audio", "input_audio": {"data": b64encode(file.data).decode(), "format": sound}}
        return {"type": "file", "file": {"filename": file.name, "file_data": data_url(file.media_type, file.data)}}
    if file.url is not None and file.url.startswith("data:"):
        return {"type": "file", "file": {"filename": file.name, "file_data": file.url}}
    if file.url is not None:
        raise Unsupported("chat completions take a file by its bytes or its id, not by address; give File(data=…).")
    raise Unsupported("a file has neither data nor an id; give File(data=…) or File(id=…).")
