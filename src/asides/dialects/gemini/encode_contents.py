"""The history in Gemini's words: `spell_contents(prompt, target, notices)`, what a request carries as contents.

Not here: which thoughts and seals go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

import re
from base64 import b64encode

import msgspec

from asides.dialects.gemini.decode import METADATA, SIGNATURE
from asides.dialects.message_encoder import OPENING, STAND_IN, MessageEncoder, Wire
from asides.providers.provider import Target
from asides.values.errors import Unsupported
from asides.values.messages import (
    File,
    Image,
    Message,
    Part,
    Prompt,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought

_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL)


def spell_contents(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[list[Wire], list[str]]:
    """Every message as contents, in order, and the texts that belong into the system instruction."""
    return _Speller(prompt, target, notices).run()


class _Speller(MessageEncoder):
    """One history, while it is put into contents."""

    def __init__(self, prompt: Prompt, target: Target, notices: list[Notice]) -> None:
        super().__init__(prompt, notices)
        self.target = target
        self.system = [] if self._preamble is None else [self._preamble]
        self.names = {call.id: call.name for message in prompt.messages for call in message.tool_calls}
        self.current_turn = max(
            (place for place, message in enumerate(prompt.messages) if _begins_a_turn(message)), default=-1
        )

    def run(self) -> tuple[list[Wire], list[str]]:
        contents: list[Wire] = []
        answers_last = False
        for place, message in enumerate(self.prompt.messages):
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            if message.role == "system":
                self._system(message, leading=not contents)
            elif message.role == "assistant":
                self._add_model(contents, self._model(message, place))
                answers_last = False
            else:
                if results:
                    parts = [wire for result in results for wire in self._result(result)]
                    if answers_last:
                        # The answers to the calls of one turn stand together.
                        contents[-1]["parts"] += parts
                    else:
                        contents.append({"role": "user", "parts": parts})
                    answers_last = True
                said: list[Part] = [part for part in message.parts if not isinstance(part, ToolResult)]
                if said or not message.parts:
                    contents += self._user(said)
                    answers_last = False
        return contents, self.system

    def _add_model(self, contents: list[Wire], spoken: list[Wire]) -> None:
        """A turn of the model's: it follows a person or results, else it is refused where it calls a function."""
        for content in spoken:
            if not contents:
                self._note("turn_added", "a conversation begins with a person here; a word of one was added")
                contents.append({"role": "user", "parts": [{"text": OPENING}]})
            if contents[-1]["role"] == "model":
                contents[-1]["parts"] += content["parts"]
            else:
                contents.append(content)

    def _left_out(self, part: Part, role: str) -> None:
        self._note("part_not_sent", f"a {type(part).__name__} part of the {role} cannot be sent in this dialect")

    # --- system, user, tools ----------------------------------------------------------------------------------------

    def _system(self, message: Message, *, leading: bool) -> None:
        self._leave_out_all_but_text(message)
        if message.text.strip():
            self.system.append(message.text)
            if not leading:
                self._note("system_moved", "this dialect has one system instruction; a later one was added to it")

    def _user(self, said: list[Part]) -> list[Wire]:
        parts = [wire for part in said if (wire := self._user_part(part)) is not None]
        return [{"role": "user", "parts": parts or [{"text": ""}]}]

    def _user_part(self, part: Part) -> Wire | msgspec.Raw | None:
        match part:
            case Text():
                return {"text": part.text}
            case Image() | File():
                return self._media(part)
            case _:
                return self._native(part, "user")

    def _result(self, result: ToolResult) -> list[Wire]:
        name = result.name or self.names.get(result.call_id)
        if name is None:
            raise Unsupported(f"a tool result names no tool, and no call has its id {result.call_id!r}.")
        answer = {"error" if result.is_error else "output": result.text}
        spelled: Wire = {"functionResponse": {"id": result.call_id, "name": name, "response": answer}}
        shown = () if isinstance(result.content, str) else result.content
        return [spelled, *(self._media(part) for part in shown if not isinstance(part, Text))]

    def _media(self, media: Image | File) -> Wire:
        if isinstance(media, Image) and media.detail is not None:
            self._note("detail_not_sent", "the detail of an image is not said in this dialect")
        if media.data is not None:
            return _inline(media.media_type, b64encode(media.data).decode())
        address = media.url or (media.id if isinstance(media, File) else None)
        if address is None:
            raise Unsupported("an image or a file has neither data nor an address; give data= or url=.")
        if (inside := _DATA_URL.fullmatch(address)) is not None:
            return _inline(inside["type"] or media.media_type, inside["data"])
        return {"fileData": {"mimeType": media.media_type, "fileUri": address}}

    # --- the model --------------------------------------------------------------------------------------------------

    def _model(self, message: Message, place: int) -> list[Wire]:
        unsigned = self.target.rule.signed_calls and place > self.current_turn
        parts: list[Wire] = []
        for part in message.parts:
            spelled = self._model_part(part)
            if spelled is None:
                continue
            if unsigned and isinstance(part, ToolCall):
                unsigned = False  # of several calls only the first is signed
                if "thoughtSignature" not in spelled:
                    spelled["thoughtSignature"] = STAND_IN
                    words = f"a call of {part.name} has no signature of this model; the documented stand-in was sent"
                    self._note("signature_stand_in", words)
            parts.append(spelled)
        if not parts:
            self._note("message_not_sent", "an assistant message without content was left out")
            return []
        return [{"role": "model", "parts": parts}]

    def _model_part(self, part: Part) -> Wire | None:
        match part:
            case Text():
                return _signed({"text": part.text}, part.seals) if part.text or _signature(part.seals) else None
            case Thought():
                return _signed({"text": part.text, "thought": True}, part.seals)
            case ToolCall():
                call: Wire = {"id": part.id, "name": part.name, "args": part.arguments}
                if part.raw_arguments is not None and not part.arguments:
                    self._note("tool_arguments_dropped", f"the arguments of {part.name} are no JSON object; none went")
                return _signed({"functionCall": call}, part.seals)
            case Refusal():
                return {"text": part.text} if part.text else None
            case Image() | File():
                return _signed(self._media(part), part.seals)
            case ServerTool(name=name) if name in METADATA:
                return None  # it stood beside the content, and was no part of it
            case ServerTool() | UnknownPart():
                return self._as_it_came(part)
            case _:
                self._left_out(part, "assistant")
                return None

    def _as_it_came(self, part: ServerTool | UnknownPart) -> Wire | None:
        try:
            held = msgspec.json.decode(part.json, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            self._left_out(part, "assistant")
            return None
        held.pop("thoughtSignature", None)
        return _signed(dict(held), part.seals)


def _begins_a_turn(message: Message) -> bool:
    return message.role == "user" and not all(isinstance(part, ToolResult) for part in message.parts)


def _signature(seals: tuple[Seal, ...]) -> str | None:
    return next((seal.value for seal in seals if seal.kind == SIGNATURE and seal.value), None)


def _signed(part: Wire, seals: tuple[Seal, ...]) -> Wire:
    signature = _signature(seals)
    return part if signature is None else {**part, "thoughtSignature": signature}


def _inline(media_type: str, data: str) -> Wire:
    return {"inlineData": {"mimeType": media_type, "data": data}}
