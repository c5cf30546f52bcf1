"""The history as input items: `spell_items(prompt, target, notices)`.

A turn goes back as the items that it came as, in their order, verbatim where nothing was changed. What the endpoint
demands of them is seen to here: a reasoning item stands before the item that followed it, or not at all; `summary` is
always there; and ids go along for a whole turn or for none of it. Not here: which thoughts go back (plan).
"""

from __future__ import annotations

import msgspec

from asides.dialects.message_encoder import (
    FlatMessageEncoder,
    Wire,
    data_url,
    encode_arguments,
    image_address,
    plain_content,
)
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
    read_arguments,
)
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought


def encode_items(prompt: Prompt, target: Target, notices: list[Notice]) -> list[Wire]:
    """Every message of the prompt as items, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, target, notices).run()


class _Speller(FlatMessageEncoder):
    """One history, while it is put into items."""

    def __init__(self, prompt: Prompt, target: Target, notices: list[Notice]) -> None:
        super().__init__(prompt, notices)
        self.target = target
        self.system_role = target.facts.system_role
        self.stored = prompt.state.store is True or prompt.state.continues
        self.custom_calls = {call.id for message in prompt.messages for call in message.tool_calls if call.custom}

    def _first(self) -> list[Wire]:
        return []  # the system prompt stands beside the items

    def _kind_of(self, part: Part) -> str:
        return type(part).__name__

    # --- system, user and tools -------------------------------------------------------------------------------------

    def _system(self, message: Message) -> list[Wire]:
        self._leave_out_all_but_text(message)
        return super()._system(message)

    def _result(self, result: ToolResult) -> Wire:
        return {
            "type": "custom_tool_call_output" if result.call_id in self.custom_calls else "function_call_output",
            "call_id": result.call_id,
            "output": result.content
            if isinstance(result.content, str)
            else [wire for part in result.content if (wire := self._input_part(part, "tool")) is not None],
        }

    def _said(self, parts: list[Part]) -> Wire:
        spelled = [wire for part in parts if (wire := self._input_part(part, "user")) is not None]
        return {"content": plain_content(spelled, "input_text")}

    def _input_part(self, part: Part, role: str) -> Wire | msgspec.Raw | None:
        match part:
            case Text():
                return {"type": "input_text", "text": part.text}
            case Image():
                return _image(part)
            case File():
                return _file(part)
            case _:
                return self._native(part, role)

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message) -> list[Wire]:
        items: list[Wire] = []
        for part in message.parts:
            match part:
                case Thought():
                    items += self._reasoning(part)
                case Text() | Refusal():
                    self._say(part, items)
                case ToolCall():
                    items.append(_call(part))
                case ServerTool() | UnknownPart():
                    item = msgspec.json.decode(part.json)
                    items += [item] if isinstance(item, dict) else []
                case _:
                    self._left_out(part, "assistant")
        items = [_simple(item) for item in self._paired(items)]
        if self.target.quirks.call_order == "grouped":
            items.sort(key=lambda item: item.get("type") == "function_call")
        return items if self._ids_agree(items) else [_without_id(item) for item in items]

    def _reasoning(self, thought: Thought) -> list[Wire]:
        entry = next((seal.entry for seal in thought.seals if seal.entry is not None), None)
        told = None if entry is None else msgspec.json.decode(entry)
        if isinstance(told, dict):
            item: Wire = {name: value for name, value in told.items() if value is not None}
            if item.get("type") == "reasoning":
                item.setdefault("summary", [])
                return [item] if self._carries_state(item) else []
        value = next((seal.value for seal in thought.seals if seal.kind == "encrypted" and seal.value), None)
        if value is not None:
            return [{"type": "reasoning", "summary": [], "encrypted_content": value}]
        if thought.kind == "raw" and thought.text and not self.target.quirks.encrypted_reasoning:
            content = [{"type": "reasoning_text", "text": thought.text}]
            return [{"type": "reasoning", "id": "rs_0", "summary": [], "content": content}]
        self._note("reasoning_not_sent", "a thought came without anything that this endpoint takes back")
        return []

    def _carries_state(self, item: Wire) -> bool:
        if item.get("encrypted_content") or self.stored or not self.target.quirks.encrypted_reasoning:
            return True
        # Its id alone means nothing to an endpoint that has stored nothing: "Item with id … not found".
        self._note("reasoning_not_sent", "a thought came without its encrypted content and nothing is stored")
        return False

    def _say(self, part: Text | Refusal, items: list[Wire]) -> None:
        entry = _entry_of(part.seals, "message") if isinstance(part, Text) else None
        if not items or items[-1].get("type") != "message" or entry is not None:
            beside: Wire = entry or {}
            begun: Wire = {"type": "message", "role": "assistant", **beside, "content": []}
            begun["annotated"] = beside.get("content") or []
            items.append(begun)
        content: list[Wire] = items[-1]["content"]
        annotated: list[Wire] = items[-1]["annotated"]
        place = len(content)
        shape = annotated[place] if place < len(annotated) else {}
        if isinstance(part, Refusal):
            content.append({"type": "refusal", "refusal": part.text})
        else:
            kept = shape if shape.get("type") in ("output_text", "text") else {}
            content.append({**kept, "type": "output_text", "text": part.text})

    def _paired(self, items: list[Wire]) -> list[Wire]:
        """The items without reasoning that nothing follows, which the endpoint refuses."""
        end = len(items)
        while end and items[end - 1].get("type") == "reasoning":
            end -= 1
        if end < len(items):
            self._note("reasoning_not_sent", "a thought that nothing followed cannot go back")
        return items[:end]

    def _ids_agree(self, items: list[Wire]) -> bool:
        """Whether ids may go along. They bind an item to the reasoning before it, so one that lacks its own, or a turn
        that lost its reasoning, goes without any."""
        if self.stored or not self.target.quirks.encrypted_reasoning:
            return True
        followers = [item for item in items if item.get("type") != "reasoning"]
        return len(followers) < len(items) and all(item.get("id") for item in items)


def _call(call: ToolCall) -> Wire:
    entry = _entry_of(call.seals, "function_call", "custom_tool_call")
    if call.custom:
        item = {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.raw_arguments or ""}
        return {**(entry or {}), **item}
    if entry is not None:
        told = entry.get("arguments")
        same = isinstance(told, str) and (call.raw_arguments == told or read_arguments(told) == call.arguments)
        if same and entry.get("name") == call.name:
            return {**entry, "call_id": call.id}
    arguments = encode_arguments(call) or "{}"
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _entry_of(seals: tuple[Seal, ...], *kinds: str) -> Wire | None:
    for seal in seals:
        if seal.entry is None:
            continue
        item = msgspec.json.decode(seal.entry)
        if isinstance(item, dict) and item.get("type") in kinds:
            return {name: value for name, value in item.items() if value is not None}
    return None


def _simple(item: Wire) -> Wire:
    """A message that nothing but its words is known of, in the plain form."""
    if "annotated" not in item:
        return item
    item = {name: value for name, value in item.items() if name != "annotated"}
    match item:
        case {"content": [{"type": "output_text", "text": str() as text}], **beside} if len(beside) == 2:
            return {"role": "assistant", "content": text}
        case _:
            return item


def _without_id(item: Wire) -> Wire:
    return {name: value for name, value in item.items() if name != "id"}


def _image(image: Image) -> Wire:
    spelled = {"type": "input_image", "image_url": image_address(image)}
    return spelled if image.detail is None else {**spelled, "detail": image.detail}


def _file(file: File) -> Wire:
    if file.id is not None:
        return {"type": "input_file", "file_id": file.id}
    if file.data is not None:
        return {"type": "input_file", "filename": file.name, "file_data": data_url(file.media_type, file.data)}
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    raise Unsupported("a file has neither data, an address nor an id; give File(data=…), File(url=…) or File(id=…).")
