"""Messages in the words of v2 chat: `spell_messages(prompt, notices)`, the history as the list that a request carries.

Not here: which thoughts go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.errors import Unsupported
from asides.messages import File, Image, Message, Part, Prompt, Refusal, Text, ToolCall, ToolResult, Unknown
from asides.notices import Notice
from asides.thinking import Seal, Thought

Wire: TypeAlias = dict[str, Any]


def spell_messages(prompt: Prompt, notices: list[Notice]) -> list[Wire]:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller:
    """One history, while it is put into words."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.notices = notices

    def run(self) -> list[Wire]:
        spelled: list[Wire] = []
        if self.prompt.system and self.prompt.system.strip():
            spelled.append({"role": "system", "content": self.prompt.system})
        for message in self.prompt.messages:
            match message.role:
                case "system":
                    if message.text.strip():
                        spelled.append({"role": "system", "content": message.text})
                case "assistant":
                    spelled += self._assistant(message)
                case "user" | "tool":
                    spelled += [self._result(part) for part in message.parts if isinstance(part, ToolResult)]
                    spelled += self._user(message)
        return spelled

    def _note(self, code: str, detail: str) -> None:
        notice = Notice(code, detail, "messages")
        if notice not in self.notices:
            self.notices.append(notice)

    def _left_out(self, part: Part, role: str) -> None:
        what = f"a part of type {type(part).__name__}"
        self._note("part_not_sent", f"{what} in the words of the {role} cannot be sent in this dialect")

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _user(self, message: Message) -> list[Wire]:
        said = [part for part in message.parts if not isinstance(part, ToolResult)]
        if not said and (message.parts or message.role == "tool"):
            return []
        if message.role == "tool":
            raise Unsupported("a message of role 'tool' holds ToolResult parts; put other words into a user message.")
        spelled = [wire for part in said if (wire := self._user_part(part)) is not None]
        match spelled:
            case []:
                content: str | list[Any] = ""
            case [{"type": "text", "text": str() as text}]:
                content = text
            case _:
                content = spelled
        return [{"role": "user", "content": content}]

    def _user_part(self, part: Part) -> Wire | msgspec.Raw | None:
        match part:
            case Text():
                return {"type": "text", "text": part.text}
            case Image():
                return _image(part)
            case File() if part.data is not None and part.media_type.startswith("text/"):
                return {"type": "text", "text": part.data.decode("utf-8", "replace")}
            case Unknown(origin=None):
                # Written by the caller in this dialect's own form; whoever writes a native part means it.
                return msgspec.Raw(part.json.encode())
            case _:
                self._left_out(part, "user")
                return None

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
                case Unknown():
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
    arguments = call.raw_arguments
    if arguments is None:
        arguments = msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _image(image: Image) -> Wire:
    if image.data is not None:
        url = f"data:{image.media_type};base64,{b64encode(image.data).decode()}"
    elif image.url is not None:
        url = image.url
    else:
        raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
    described = {"url": url} if image.detail is None else {"url": url, "detail": image.detail}
    return {"type": "image_url", "image_url": described}
