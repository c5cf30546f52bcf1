"""Messages in the words of v2 chat: `spell_messages(prompt, notices)`, the history as the list that a request carries.

Not here: which thoughts go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.message_encoder import FlatMessageEncoder, Wire, encode_arguments, image_address, plain_content
from asides.values.messages import File, Image, Message, Part, Prompt, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought


def encode_messages(prompt: Prompt, notices: list[Notice]) -> list[Wire]:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller(FlatMessageEncoder):
    """One history, while it is put into the words of v2 chat."""

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _said(self, parts: list[Part]) -> Wire:
        spelled = [wire for part in parts if (wire := self._user_part(part)) is not None]
        return {"content": plain_content(spelled, "text")}

    def _user_part(self, part: Part) -> Wire | msgspec.Raw | None:
        match part:
            case Text():
                return {"type": "text", "text": part.text}
            case Image():
                return _image(part)
            case File() if part.data is not None and part.media_type.startswith("text/"):
                return {"type": "text", "text": part.data.decode("utf-8", "replace")}
            case _:
                return self._native(part, "user")

    def _result(self, result: ToolResult) -> Wire:
        if not isinstance(result.content, str) and any(not isinstance(part, Text) for part in result.content):
            self._note("result_part_not_sent", "tools answer in text here; an image or a file was left out")
        return {"role": "tool", "tool_call_id": result.call_id, "content": result.text}

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message) -> list[Wire]:
        content: list[Any] = []
        calls: list[Wire] = []
        seals: list[Seal] = []
        for part in message.parts:
            match part:
                case Thought():
                    if part.text:
                        content.append({"type": "thinking", "thinking": part.text})
                    seals += part.seals
                case Text():
                    if part.text:
                        content.append({"type": "text", "text": part.text})
                    seals += part.seals
                case Refusal():
                    content.append({"type": "text", "text": part.text})
                case ToolCall():
                    calls.append(_call(part))
                    seals += part.seals
                case UnknownPart():
                    content.append(msgspec.Raw(part.json.encode()))
                case _:
                    self._left_out(part, "assistant")
        if not content and not calls:
            self._note("message_not_sent", "an assistant message without content was left out")
            return []
        spelled: Wire = {"role": "assistant"}
        if content:
            spelled["content"] = content
        plan = next((seal.entry for seal in seals if seal.kind == PLAN and seal.entry), None)
        if plan is not None and calls:
            spelled["tool_plan"] = msgspec.Raw(plan.encode())
        if calls:
            spelled["tool_calls"] = calls
        citations = [
            entry
            for seal in seals
            if seal.kind == CITED and seal.entry
            for entry in msgspec.json.decode(seal.entry, type=list[msgspec.Raw])
        ]
        if citations:
            spelled["citations"] = citations
        return [spelled]


def _call(call: ToolCall) -> Wire:
    function = {"name": call.name, "arguments": encode_arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _image(image: Image) -> Wire:
    url = image_address(image)
    described = {"url": url} if image.detail is None else {"url": url, "detail": image.detail}
    return {"type": "image_url", "image_url": described}
