"""Encodes a planned prompt as a Converse request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, messages.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from asides.dialects.anthropic.encode import list_thinking_betas
from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.bedrock.wire import SAMPLING
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    merge_fields,
    report_cache,
    report_output_not_sent,
    report_unsupported,
    write_sampling,
)
from asides.dialects.media import find_media_type, read_text_file, refuse_sound_and_video, split_data_url
from asides.dialects.message_encoder import PUNCTUATED_ID, Wire, add_notice, find_entry
from asides.dialects.turn_encoder import BlockFormat, EncodedTurns, encode_turns
from asides.dialects.verbatim import WholeFields, write_fields
from asides.providers.find import quote_model
from asides.providers.provider import Target
from asides.providers.quirks import fits_any
from asides.providers.switches.write import write as write_thinking
from asides.values.errors import Unsupported
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides.values.traits import list_calls

EVENT_STREAM = "application/vnd.amazon.eventstream"

# The settings that a model refuses with its highest effort (AWS nova2-userguide, extended-thinking, 2026-08).
_NOT_WITH_HIGH = ("maxTokens", "temperature", "topP")


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: the schema of an answer is text."""
    if name != "schema" or not isinstance(ours, str) or not isinstance(theirs, str):
        return False
    try:
        return bool(msgspec.json.decode(ours) == msgspec.json.decode(theirs))
    except msgspec.DecodeError:
        return False


_WHOLE = WholeFields(
    ("toolConfig.tools", "toolConfig.toolChoice", "system", "outputConfig.textFormat"),
    schemas=frozenset({"json", "schema"}),
    same=_is_same,
)


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = EVENT_STREAM if prompt.stream else "application/json"
    return build_post(target, build_url(target, prompt.stream), accept, body), tuple(notices)


def build_url(target: Target, streams: bool) -> str:
    """Build the address: its path names the model, and whether to stream."""
    base = urlsplit(target.base_url)
    model = quote_model(target.model)
    path = f"{base.path.rstrip('/')}/model/{model}/{'converse-stream' if streams else 'converse'}"
    return urlunsplit((base.scheme, base.netloc, path, base.query, ""))


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    replay = target.provider.replay_rule(target.family or target.model).when
    # Claude's newer models accept a conversation that begins with an assistant message (recorded).
    is_claude = "claude_rules" in target.facts.enforces
    model_first = is_claude and target.rule.thinking != "never"
    takes_unsigned = replay not in ("never", "sealed")
    encoded = encode_messages(
        prompt, notices, takes_unsigned=takes_unsigned, model_first=model_first, is_claude=is_claude
    )
    # The provider's cache has the tools and the system prompt before the messages, so the body has them there too.
    body: dict[str, Any] = {}
    if tools := _encode_tools(prompt, notices):
        body["toolConfig"] = tools
    if encoded.system:
        body["system"] = encoded.system
    body["messages"] = _separate_turns(encoded.turns, target, notices)
    if prompt.cache and target.rule.cache_points != "nowhere":
        from asides.dialects.cache_marks import POINTS, mark_request

        mark_request(prompt, body, POINTS, in_tools=target.rule.cache_points == "everywhere")
    elif prompt.cache:
        report_cache(prompt, notices)
    inference, native = _encode_sampling(prompt, target, notices)
    thinking = _encode_thinking(prompt, target, inference, notices)
    if inference:
        body["inferenceConfig"] = inference
    if native := merge_fields(native, thinking):
        body["additionalModelRequestFields"] = native
    body |= _encode_output(prompt, target, notices)
    if prompt.metadata is not None:
        body["requestMetadata"] = prompt.metadata
    notices += report_unsupported(prompt, "user")
    return write_fields(prompt, merge_fields(body, prompt.extra), "bedrock", _WHOLE, notices)


def _encode_sampling(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], dict[str, Any]]:
    inference: dict[str, Any] = {}
    native: dict[str, Any] = {}
    if prompt.max_tokens is not None:
        inference["maxTokens"] = prompt.max_tokens
    for name, value in write_sampling(prompt, SAMPLING | {"top_k": "top_k"}, notices).items():
        if name != "top_k":
            inference[name] = value
        else:
            place = native
            *parents, leaf = target.rule.top_k_in.split(".")
            for parent in parents:
                place = place.setdefault(parent, {})
            place[leaf] = value
    if prompt.stop:
        inference["stopSequences"] = list(prompt.stop)
    return inference, native


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    notices += report_unsupported(prompt, "parallel_tool_calls")
    called = bool(list_calls(prompt.messages))
    if not prompt.tools or (prompt.tool_choice == "none" and not called):
        if prompt.tool_choice not in (None, "auto", "none"):
            notices.append(Notice("setting_dropped", "tool_choice has no effect without tools", "tool_choice"))
        return {}
    tools = [(_encode_tool(tool), tool.cache) for tool in prompt.tools]
    marked = [each for tool, cache in tools for each in (_mark_cache(tool, cache) if cache else [tool])]
    encoded: dict[str, Any] = {"tools": marked}
    match prompt.tool_choice:
        case None:
            pass
        case "auto":
            encoded["toolChoice"] = {"auto": {}}
        case "required":
            encoded["toolChoice"] = {"any": {}}
        case "none":
            detail = "calls cannot be forbidden here once some were made"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", "none", "auto"))
        case name:
            encoded["toolChoice"] = {"tool": {"name": name}}
    return encoded


def _encode_tool(tool: Tool) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=bool({"systemTool", "toolSpec", "cachePoint"} & tool.native.keys()))
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": tool.parameters}
    if tool.strict:
        spec["strict"] = True
    return {"toolSpec": spec}


def _encode_output(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    output = prompt.output
    if output is None:
        return {}
    is_own = prompt.source is not None and prompt.is_from("bedrock") and "outputConfig" in prompt.source.fields
    # Some models accept a schema although they do not follow it, so a request in this dialect keeps its own.
    if isinstance(output, OutputSchema) and (is_own or target.facts.structured_output == "json_schema"):
        # The schema is text here.
        schema = {"name": output.name, "schema": msgspec.json.encode(output.schema).decode()}
        return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}}
    notices.append(report_output_not_sent(output))
    return {}


def _encode_thinking(
    prompt: Prompt, target: Target, inference: dict[str, Any], notices: list[Notice]
) -> dict[str, Any]:
    """Return the fields for thinking, which Converse passes on to the model. Settings that the model refuses beside
    them are removed from `inference`.
    """
    written, told = write_thinking(prompt.thinking, target, "bedrock", source=prompt.source)
    notices += told
    fields: dict[str, Any] = written.get("additionalModelRequestFields", {})
    if fields.get("reasoningConfig", {}).get("maxReasoningEffort") == "high":
        _drop_refused(inference, notices)
    if betas := list_thinking_betas(fields, prompt, target):
        fields["anthropic_beta"] = betas
    return fields


def _drop_refused(inference: dict[str, Any], notices: list[Notice]) -> None:
    for name in _NOT_WITH_HIGH:
        if inference.pop(name, None) is not None:
            detail = f"{name} is not accepted with the highest effort"
            notices.append(Notice("setting_dropped", detail, name, "set", "nothing"))


# --- messages ---------------------------------------------------------------------------------------------------------

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+|\s{2,}")

_PICTURES = ("png", "jpeg", "gif", "webp")
_DOCUMENTS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
_FORMATS = {
    "image/jpg": "jpeg",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/plain": "txt",
    "text/markdown": "md",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/3gpp": "three_gp",
}


def encode_messages(
    prompt: Prompt,
    notices: list[Notice],
    *,
    takes_unsigned: bool = False,
    model_first: bool = False,
    is_claude: bool = False,
) -> EncodedTurns:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one.

    `takes_unsigned`: the model takes thinking back that has no signature; others write it into their answer.
    `is_claude`: the model accepts fewer ids of calls.
    """
    form = _CLAUDE_BLOCKS if is_claude else _UNSIGNED_BLOCKS if takes_unsigned else _BLOCKS
    return encode_turns(prompt, form, notices, model_first=model_first)


_BRIDGE = "Noted."
_CONTINUE = "Continue."


def _separate_turns(turns: list[Any], target: Target, notices: list[Notice]) -> list[Any]:
    """Give calls and results turns of their own, where one turn cannot hold them beside other content."""
    if fits_any(target.model, target.quirks.results_alone):
        turns = [each for turn in turns for each in _separate_results(turn, notices)]
    if fits_any(target.model, target.quirks.calls_alone):
        turns = [each for turn in turns for each in _separate_calls(turn, notices)]
    return turns


def _separate_results(turn: Wire, notices: list[Notice]) -> list[Wire]:
    """Put a short message of the model between tool results and a user's words."""
    results, others = _split_turn(turn, "toolResult")
    if not others:
        return [turn]
    add_notice(
        notices,
        "turn_added",
        "tool results need a message of their own here; a short assistant message was added after them",
    )
    bridge = _finish_turn("assistant", [_encode_text(_BRIDGE)])
    return [_finish_turn("user", results), bridge, _finish_turn("user", others)]


def _separate_calls(turn: Wire, notices: list[Notice]) -> list[Wire]:
    """Put a short message of the user between the model's words and its calls. Thinking alone is left out."""
    calls, others = _split_turn(turn, "toolUse")
    if not others:
        return [turn]
    if all(_has_field(block, "reasoningContent") or _has_field(block, "cachePoint") for block in others):
        add_notice(
            notices,
            "reasoning_not_sent",
            "tool calls need a message of their own here, so the thinking before them was left out",
        )
        return [_finish_turn("assistant", calls)]
    add_notice(
        notices, "turn_added", "tool calls need a message of their own here; a short user message was added before them"
    )
    bridge = _finish_turn("user", [_encode_text(_CONTINUE)])
    return [_finish_turn("assistant", others), bridge, _finish_turn("assistant", calls)]


def _split_turn(turn: Wire, name: str) -> tuple[list[Any], list[Any]]:
    """The blocks of this kind, and the others; no others if the turn can stay unchanged."""
    blocks: list[Any] = turn["content"]
    named = [block for block in blocks if _has_field(block, name)]
    others = [block for block in blocks if not _has_field(block, name)]
    is_alone = not named or all(_has_field(block, "cachePoint") for block in others)
    return (blocks, []) if is_alone else (named, others)


def _has_field(block: Any, name: str) -> bool:
    return isinstance(block, dict) and name in block  # blocks of unknown form are raw JSON


def _finish_turn(role: str, blocks: list[Any]) -> Wire:
    return {"role": role, "content": list(blocks)}


def _mark_cache(block: Wire, lifetime: bool | str) -> list[Any]:
    point = {"type": "default", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "default"}
    return [block, {"cachePoint": point}]


def _encode_text(text: str) -> Wire:
    return {"text": text}


def _encode_tool_result(result: ToolResult, call_id: str, blocks: list[Any]) -> Wire:
    value = result.read_object()
    encoded: Wire = {"toolUseId": call_id, "content": blocks if value is None else [{"json": value}]}
    return {"toolResult": {**encoded, "status": "error"} if result.is_error else encoded}


def _encode_image(image: Image | File) -> Wire:
    media = _encode_media(image.media_type, image.data, image.url)
    if media["format"] not in _PICTURES:
        raise Unsupported(f"pictures are {', '.join(_PICTURES)} here, not {find_media_type(image)}; convert it first.")
    return {"image": media}


def _encode_file(file: File) -> Wire:
    kind = find_media_type(file)
    if kind.startswith("audio/"):
        refuse_sound_and_video(file)
    if kind.startswith("image/"):
        return _encode_image(file)
    media = _encode_media(file.media_type or kind, file.data, file.url)
    if kind.startswith("video/"):
        return {"video": media}
    if media["format"] not in _DOCUMENTS and read_text_file(file) is not None:
        media["format"] = "txt"
    if media["format"] not in _DOCUMENTS:
        raise Unsupported(f"documents are {', '.join(_DOCUMENTS)} here, not {kind}; convert it first.")
    name = _NOT_IN_NAMES.sub(" ", file.name.rpartition(".")[0] or file.name).strip() or "file"
    return {"document": {"name": name, **media}}


def _encode_media(media_type: str, data: bytes | None, url: str | None) -> Wire:
    inline = split_data_url(url) if url is not None else None
    kind = media_type if inline is None else inline[0] or media_type
    form = _FORMATS.get(kind) or kind.rpartition("/")[2]
    if data is not None:
        return {"format": form, "source": {"bytes": b64encode(data).decode()}}
    if inline is not None:
        return {"format": form, "source": {"bytes": inline[1]}}
    if url is not None and url.startswith("s3://"):
        return {"format": form, "source": {"s3Location": {"uri": url}}}
    raise Unsupported("this dialect takes pictures and files by their bytes or from s3:// addresses; give data=….")


def _encode_thought(thought: Thought) -> list[Wire]:
    """Encode a thought as the blocks that it came as, byte for byte."""
    encoded: list[Wire] = []
    for seal in thought.seals:
        if seal.kind == REDACTED:
            encoded.append({"reasoningContent": {"redactedContent": seal.value}})
        elif seal.kind == SIGNATURE:
            text = {"text": thought.text, "signature": seal.value}
            encoded.append({"reasoningContent": {"reasoningText": text}})
    return encoded


def _encode_unsigned(thought: Thought) -> list[Wire]:
    """Encode a thought for a model that does not sign, and accepts its thinking back."""
    if thought.seals or not thought.text:
        return _encode_thought(thought)
    return [{"reasoningContent": {"reasoningText": {"text": thought.text}}}]


def _encode_answer(part: Text) -> Wire:
    text = _encode_text(part.text)
    citations = find_entry(part.seals, CITATIONS)
    return text if citations is None else {"citationsContent": {"content": [text], "citations": citations}}


def _encode_tool_call(call: ToolCall, call_id: str) -> Wire:
    return {"toolUse": {"toolUseId": call_id, "name": call.name, "input": call.arguments}}


_BLOCKS = BlockFormat(
    dialect="bedrock",
    text=_encode_text,
    image=_encode_image,
    file=_encode_file,
    tool_result=_encode_tool_result,
    thought=_encode_thought,
    answer=_encode_answer,
    tool_call=_encode_tool_call,
    mark_cache=_mark_cache,
    finish_turn=_finish_turn,
    own_ids=PUNCTUATED_ID,
    merges=("user", "assistant"),  # two turns of one role in a row are refused
)
_CLAUDE_BLOCKS = msgspec.structs.replace(_BLOCKS, own_ids=None)
_UNSIGNED_BLOCKS = msgspec.structs.replace(_BLOCKS, thought=_encode_unsigned)
