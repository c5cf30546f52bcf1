"""Encodes a planned prompt as an interaction: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, the steps of the history, contents.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.gemini_interactions.import_steps import (
    CONTENT_TYPES,
    WRAPPED,
    import_steps,
    read_result,
    read_system_instruction,
)
from asides.dialects.gemini_interactions.wire import CITED, DIALECT, SAMPLING, SIGNATURE
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_cache,
    report_tool_settings,
    write_sampling,
)
from asides.dialects.media import find_media_type, read_text_file, split_data_url
from asides.dialects.message_encoder import (
    STAND_IN,
    Wire,
    add_notice,
    encode_flat,
    encode_native,
    leave_out,
    leave_out_all_but_text,
    read_system,
    report_effort,
    say_commentary,
)
from asides.dialects.verbatim import WholeFields, find_source, write_fields, write_source
from asides.providers.provider import Target
from asides.providers.switches.write import write as write_thinking
from asides.values.errors import ConfigError, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, join_system_texts
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides.wire.lenient import read_part_json, unify_base64

MODES = {"auto": "auto", "none": "none", "required": "any"}
REPLY_PATH = "/interactions"
_WHOLE = WholeFields(
    ("tools", "response_format", "system_instruction", "generation_config.tool_choice"),
    schemas=frozenset({"parameters", "schema"}),
    same=lambda name, ours, theirs: name == "system_instruction" and read_system_instruction(theirs) == ours,
)
_RESOLUTIONS = ("low", "medium", "high", "ultra_high")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, build_url(target), accept, body), tuple(notices)


def build_url(target: Target) -> str:
    """Build the address. The model is in the body."""
    path = urlsplit(target.base_url).path.rstrip("/")
    return join_url(target, path if path.endswith(REPLY_PATH) else path + REPLY_PATH)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    report_cache(prompt, notices)
    steps, system = encode_steps(prompt, target, notices)
    body: dict[str, Any] = {} if "agent" in prompt.extra else {target.rule.named_in: target.model}
    if system:
        body["system_instruction"] = "\n\n".join(system)
    body["input"] = _simplify_input(steps)
    body |= _encode_tools(prompt, notices)
    config = _build_config(prompt, target, notices)
    if "model" not in body:
        notices += [Notice("setting_dropped", f"agents have no {name}", name) for name in config]
    elif config:
        body["generation_config"] = config
    if prompt.output is not None:
        body["response_format"] = _encode_output(prompt.output)
    if prompt.stream:
        body["stream"] = True
    if prompt.metadata is not None:
        body["labels"] = prompt.metadata
    if prompt.user is not None:
        notices.append(Notice("setting_dropped", "this dialect has no user", "user"))
    body |= _encode_state(prompt, notices)
    return write_fields(prompt, merge_fields(body, prompt.extra), DIALECT, _WHOLE, notices)


def _simplify_input(steps: list[Any]) -> Any:
    """Return the input: a text, a content or contents that came alone stay alone; beside others they become a step."""
    if len(steps) == 1 and not _is_step(steps[0]):
        return steps[0]
    return [step if _is_step(step) else {"type": "user_input", "content": _list_contents(step)} for step in steps]


def _is_step(step: Any) -> bool:
    return isinstance(step, msgspec.Raw) or (isinstance(step, dict) and step.get("type") not in CONTENT_TYPES)


def _list_contents(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [{"type": "text", "text": given}]
    return given if isinstance(given, list) else [given]


def _encode_state(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    """Encode where a conversation continues, and whether to store it: the server stores by default."""
    state = prompt.state
    notices += [
        Notice("setting_dropped", f"this dialect has no {name}", name)
        for name in ("conversation", "truncation", "include", "context", "mode")
        if getattr(state, name)
    ]
    encoded: dict[str, Any] = {}
    needs_store = state.resume or state.previous_response_id is not None or prompt.extra.get("background") is True
    if state.store is False or (state.store is None and not needs_store):
        encoded["store"] = False
    elif prompt.source is not None and prompt.source.dialect == DIALECT and "store" in prompt.source.fields:
        encoded["store"] = True
    if state.previous_response_id is not None:
        encoded["previous_interaction_id"] = state.previous_response_id
    return encoded


def _build_config(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    config = write_sampling(prompt, SAMPLING, notices)
    if prompt.max_tokens is not None:
        config["max_output_tokens"] = prompt.max_tokens
    if prompt.stop:
        config["stop_sequences"] = list(prompt.stop)
    thinking, told = write_thinking(prompt.thinking, target, DIALECT, source=prompt.source)
    notices += told
    config |= thinking.get("generation_config", {})
    if prompt.tools and prompt.tool_choice is not None:
        config["tool_choice"] = _encode_choice(prompt.tool_choice)
    return config


def _encode_choice(choice: str) -> str | dict[str, Any]:
    if choice in MODES:
        return MODES[choice]
    return {"allowed_tools": {"mode": "any", "tools": [choice]}}


def _encode_output(output: OutputSchema | Literal["json"]) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": "text", "mime_type": "application/json"}
    if isinstance(output, OutputSchema):
        encoded["schema"] = output.schema
    return encoded


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    if prompt.parallel_tool_calls is not None:
        detail = "parallel calls cannot be set in this dialect; the model decides"
        notices.append(Notice("setting_dropped", detail, "parallel_tool_calls"))
    if not prompt.tools:
        if "tools" not in prompt.extra:
            notices += report_tool_settings(prompt, "tool_choice")
        return {}
    return {"tools": [_encode_tool(tool) for tool in prompt.tools]}


_OWN_TOOLS = (
    *("google_search", "google_maps", "code_execution", "url_context", "file_search", "mcp_server", "retrieval"),
    "computer_use",
)


def _encode_tool(tool: Tool) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=tool.native.get("type") in _OWN_TOOLS)
    encoded: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["parameters"] = _drop_empty_required(tool.parameters)
    return encoded


def _drop_empty_required(schema: Any) -> Any:
    """Drop each empty `required`, which the server refuses (earendil-works/pi#2172, 2026-03)."""
    if isinstance(schema, list):
        return [_drop_empty_required(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _drop_empty_required(inner) for name, inner in schema.items() if not (name == "required" and inner == [])
    }


# --- steps of the history ---------------------------------------------------------------------------------------------


def encode_steps(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[list[Wire], list[str]]:
    """Encode every message as steps, in order; and list the texts of the system instruction."""
    system = read_system(prompt)
    encoder = _StepEncoder(notices, [] if system is None else [system], must_sign=target.rule.signed_calls)
    steps = encode_flat(
        prompt.messages,
        notices,
        system=encoder.encode_system,
        user=encoder.encode_user,
        assistant=encoder.encode_assistant,
        tool_result=encoder.encode_tool_result,
        restore=_restore,
    )
    return steps, encoder.system


class _StepEncoder:
    """Encodes the steps of one history."""

    def __init__(self, notices: list[Notice], system: list[str], *, must_sign: bool) -> None:
        self.notices = notices
        self.system = system
        self.must_sign = must_sign
        """Whether the first call of a message needs a signed thought before it."""
        self.begun = False
        self.signs_inside = False
        """Whether the calls of the message were read with their signatures in them."""

    def encode_system(self, message: Message) -> list[Wire]:
        leave_out_all_but_text(message, self.notices)
        if message.effort is not None:
            report_effort(self.notices)
        if message.text.strip():
            if self.begun:
                detail = "this dialect has one system instruction; a later one was added to it"
                add_notice(self.notices, "system_moved", detail)
            self.system.append(join_system_texts(message))
        return []

    def encode_user(self, _: Message, parts: list[Part]) -> Wire:
        self.begun = True
        contents = [content for part in parts for content in _encode_content(part, "user", self.notices)]
        return {"type": "user_input", "content": contents or [{"type": "text", "text": ""}]}

    def encode_tool_result(self, result: ToolResult) -> Wire:
        self.begun = True
        step: Wire = {"type": "function_result", "call_id": result.call_id}
        if result.name:
            step["name"] = result.name
        if isinstance(result.content, str):
            step["result"] = result.content
        else:
            contents = [content for part in result.content for content in _encode_content(part, "tool", self.notices)]
            step["result"] = contents
        return {**step, "is_error": True} if result.is_error else step

    def encode_assistant(self, message: Message) -> list[Wire]:
        self.begun = True
        steps: list[Wire] = []
        is_signed = not self.must_sign
        own = find_source(message, DIALECT)
        self.signs_inside = own is not None and any(step.get("signature") for step in _find_calls(own.json))
        for part in say_commentary(message).parts:
            added = self.encode_part(part)
            is_signed = is_signed or any(step.get("type") == "thought" or "signature" in step for step in added)
            if isinstance(part, ToolCall) and not is_signed:
                is_signed = True
                steps.append({"type": "thought", "signature": STAND_IN})
                detail = f"a call of {part.name} has no signature of this model; the documented stand-in was sent"
                add_notice(self.notices, "signature_stand_in", detail)
            for step in added:
                _add_step(step, steps)
        if not steps:
            add_notice(self.notices, "message_not_sent", "an assistant message without content was left out")
        return steps

    def encode_part(self, part: Part) -> list[Wire]:
        match part:
            case Thought():
                return self.encode_thought(part)
            case Text():
                if not part.text and not part.seals:
                    return []
                content: Wire = {"type": "text", "text": part.text}
                if (cited := _find_entry(part.seals, CITED)) is not None:
                    content["annotations"] = cited
                return [*_list_signatures(part.seals), {"type": "model_output", "content": [content]}]
            case ToolCall():
                if part.raw_arguments is not None and not part.arguments:
                    detail = f"the arguments of {part.name} are not a JSON object; none were sent"
                    add_notice(self.notices, "tool_arguments_dropped", detail)
                call = {"type": "function_call", "id": part.id, "name": part.name, "arguments": part.arguments}
                if self.signs_inside and (found := _list_signatures(part.seals)):
                    return [{**call, "signature": found[0]["signature"]}]
                return [*_list_signatures(part.seals), call]
            case Refusal():
                return [{"type": "model_output", "content": [{"type": "text", "text": part.text}]}] if part.text else []
            case Image() | File():
                contents = _encode_content(part, "assistant", self.notices)
                return [*_list_signatures(part.seals), {"type": "model_output", "content": contents}]
            case ServerTool() | UnknownPart():
                step = read_part_json(part.json)
                if not isinstance(step, dict) or not isinstance(step.get("type"), str):
                    return leave_out(part, "assistant", self.notices)
                return [step]
            case _:
                return leave_out(part, "assistant", self.notices)

    def encode_thought(self, thought: Thought) -> list[Wire]:
        seal = next((seal for seal in thought.seals if seal.kind == SIGNATURE and seal.value), None)
        if seal is None:
            # A thought without a signature is refused (googleapis/js-genai#1735, 2026-06-25).
            add_notice(self.notices, "reasoning_not_sent", "a thought without a signature cannot go back")
            return []
        step: Wire = {"type": "thought", "signature": seal.value}
        if (summary := _find_entry(thought.seals, SIGNATURE)) is not None:
            step["summary"] = summary
        elif thought.text:
            step["summary"] = [{"type": "text", "text": thought.text}]
        return [step]


def _add_step(step: Wire, steps: list[Wire]) -> None:
    """Add a step; the contents of one output after another are one output, as the model writes it."""
    last = steps[-1] if steps else {}
    if step["type"] == "model_output" == last.get("type") and last.keys() == step.keys() == {"type", "content"}:
        last["content"] = [*last["content"], *step["content"]]
    else:
        steps.append(step)


def _find_calls(source: str) -> list[Wire]:
    try:
        steps = msgspec.json.decode(source, type=list[Any])
    except (msgspec.DecodeError, RecursionError):
        return []  # from a file that was edited
    return [step for step in steps if isinstance(step, dict) and step.get("type") == "function_call"]


def _list_signatures(seals: tuple[Seal, ...]) -> list[Wire]:
    """List a signature that a client wrote on a call or a text: here it is a thought before it."""
    return [{"type": "thought", "signature": seal.value} for seal in seals if seal.kind == SIGNATURE and seal.value]


def _find_entry(seals: tuple[Seal, ...], kind: str) -> list[Any] | None:
    """Return the list in the entry of the first such seal; None if there is none, or if it is of another dialect."""
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    try:
        found = None if entry is None else msgspec.json.decode(entry)
    except msgspec.DecodeError:
        return None
    is_own = isinstance(found, list) and all(isinstance(item, dict) and "type" in item for item in found)
    return found if is_own else None


def _restore(message: Message, encoded: list[Wire]) -> list[Wire]:
    """Return the steps that a message was read from, if they say the same."""
    source = find_source(message, DIALECT)
    written = write_source(message, encoded, DIALECT, same=_is_same)
    if source is not None and source.turn and written is not encoded:
        return [{**WRAPPED, "content": written}]
    return written


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: results have several forms, names may be left out, and base64 two alphabets."""
    if not name:
        is_turn = isinstance(ours, dict) and bool(ours.get("type") == "user_input")
        return is_turn and not _is_step(theirs) and _is_same_content(ours, theirs)
    match name:
        case "result":
            try:
                return bool(read_result(ours) == read_result(theirs))
            except ConfigError:
                return False  # from a file that was edited
        case "name" | "mime_type":
            return theirs is None
        case "data" | "signature":
            return isinstance(theirs, str) and unify_base64(theirs) == unify_base64(ours)
        case "content" | "summary":
            return isinstance(theirs, str) and ours == [{"type": "text", "text": theirs}]
        case _:
            return False


def _is_same_content(step: Wire, theirs: Any) -> bool:
    """Whether contents without a step are equivalent to a step."""
    given = _list_contents(theirs)
    try:
        read = import_steps([{"type": "user_input", "content": given}])
        return len(read) == 1 and read[0].parts == import_steps([step])[0].parts
    except ConfigError:
        return False  # from a file that was edited


# --- contents ---------------------------------------------------------------------------------------------------------


def _encode_content(part: Part, role: str, notices: list[Notice]) -> list[Wire]:
    match part:
        case Text():
            return [{"type": "text", "text": part.text}]
        case File() if part.media_type != "text/csv" and (text := read_text_file(part)) is not None:
            return [{"type": "text", "text": text}]  # documents are of the types that offices write
        case Image() | File():
            return [_encode_media(part, notices)]
        case UnknownPart():
            return encode_native(part, role, notices)
        case _:
            return leave_out(part, role, notices)


def _encode_media(media: Image | File, notices: list[Notice]) -> Wire:
    kind, given = find_media_type(media), media.media_type
    name = kind.partition("/")[0]
    encoded: Wire = {"type": name if name in ("image", "audio", "video") else "document"}
    if isinstance(media, Image) and media.detail is not None:
        if media.detail in _RESOLUTIONS:
            encoded["resolution"] = media.detail
        else:
            add_notice(notices, "detail_not_sent", "this detail of an image cannot be sent in this dialect")
    if media.data is not None:
        return {**encoded, "data": b64encode(media.data).decode(), "mime_type": given}
    address = media.url or (media.id if isinstance(media, File) else None)
    if address is None:
        raise Unsupported("an image or a file has neither data nor an address; give data= or url=.")
    if (inline := split_data_url(address)) is not None:
        return {**encoded, "data": inline[1], "mime_type": inline[0] or given}
    return {**encoded, "uri": address, **({"mime_type": given} if given else {})}
