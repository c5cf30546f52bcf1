"""Messages in the words of Ollama's chat: `spell_messages(prompt, notices)`, the history as a request carries it.

Not here: which thoughts go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from asides.dialects.message_encoder import FlatMessageEncoder, Wire
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Message, Part, Prompt, Refusal, Text, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought, join_thoughts

_DATA_URL_MARK = ";base64,"


def encode_messages(prompt: Prompt, notices: list[Notice]) -> list[Wire]:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller(FlatMessageEncoder):
    """One history, while it is put into the words of Ollama's chat."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        super().__init__(prompt, notices)
        self.called: dict[str, str] = {}
        """The names of the tools that were called, by the ids of the calls."""

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _said(self, parts: list[Part]) -> Wire:
        return self._words(parts, "user")

    def _words(self, parts: list[Any], role: str) -> Wire:
        texts: list[str] = []
        images: list[str] = []
        for part in parts:
            match part:
                case Text():
                    texts.append(part.text)
                case Image():
                    images.append(_image(part))
                case File() if part.data is not None and part.media_type.startswith("text/"):
                    texts.append(part.data.decode("utf-8", "replace"))
                case _:
                    self._left_out(part, role)
        spelled: Wire = {"content": "\n\n".join(texts) if len(texts) > 1 else "".join(texts)}
        if images:
            spelled["images"] = images
        return spelled

    def _result(self, result: ToolResult) -> Wire:
        parts: list[Any] = [Text(result.content)] if isinstance(result.content, str) else list(result.content)
        spelled: Wire = {"role": "tool", **self._words(parts, "tool")}
        # The server tells results apart by the name of the tool; newer ones by the id of the call too.
        if name := result.name or self.called.get(result.call_id):
            spelled["tool_name"] = name
        spelled["tool_call_id"] = result.call_id
        return spelled

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message) -> list[Wire]:
        for part in message.parts:
            if not isinstance(part, (Thought, Text, ToolCall, Refusal, Image)):
                self._left_out(part, "assistant")
        said = [part for part in message.parts if isinstance(part, (Text, Refusal, Image))]
        thinking = join_thoughts([part.text for part in message.parts if isinstance(part, Thought)])
        calls = [self._call(call) for call in message.tool_calls]
        # A refusal has no place of its own here; it is what the model said.
        words = [Text(part.text) if isinstance(part, Refusal) else part for part in said]
        content = "".join(part.text for part in words if isinstance(part, Text))
        images = [_image(part) for part in words if isinstance(part, Image)]
        if not content and not calls and not thinking and not images:
            self._note("message_not_sent", "an assistant message without content was left out")
            return []
        spelled: Wire = {"role": "assistant", "content": content}
        if thinking:
            spelled["thinking"] = thinking
        if images:
            spelled["images"] = images
        if calls:
            spelled["tool_calls"] = calls
        return [spelled]

    def _call(self, call: ToolCall) -> Wire:
        self.called[call.id] = call.name
        if call.raw_arguments is not None:
            self._note("arguments_not_sent", "arguments that are no JSON object cannot be sent in this dialect")
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _image(image: Image) -> str:
    if image.data is not None:
        return b64encode(image.data).decode()
    url = image.url or ""
    if url.startswith("data:") and _DATA_URL_MARK in url:
        return url.partition(_DATA_URL_MARK)[2]
    raise Unsupported("this server takes pictures by their bytes, not by address; give Image(data=…).")
