"""The typed decoders of whole bodies: bytes → structs with the fields that asides reads; and structs → the sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bench.contestant import Sink


class BodyDecoder(NamedTuple):
    decode: Callable[[bytes], Any]
    take: Callable[[Sink, Any], None]


def _struct(title: str, /, **fields: Any) -> Any:
    import msgspec

    return msgspec.defstruct(title, [(name, kind, None) for name, kind in fields.items()])


def _list(kind: Any) -> Any:
    return list[kind] | None


_TEXT = str | None
_COUNT = int | None


def _chat() -> tuple[Any, Callable[[Sink, Any], None]]:
    function = _struct("Function", name=_TEXT, arguments=_TEXT)
    call = _struct("Call", id=_TEXT, function=function | None)
    message_type = _struct("Message", content=_TEXT, reasoning_content=_TEXT, refusal=_TEXT, tool_calls=_list(call))
    choice = _struct("Choice", index=int, message=message_type, finish_reason=_TEXT)
    prompt = _struct("PromptDetails", cached_tokens=_COUNT)
    completion = _struct("CompletionDetails", reasoning_tokens=_COUNT)
    usage = _struct(
        "Usage",
        prompt_tokens=_COUNT,
        completion_tokens=_COUNT,
        total_tokens=_COUNT,
        prompt_tokens_details=prompt | None,
        completion_tokens_details=completion | None,
    )

    def take(sink: Sink, document: Any) -> None:
        message = document.choices[0].message
        sink.thinking(message.reasoning_content)
        sink.text(message.content)

    return _struct("Completion", id=_TEXT, model=_TEXT, choices=_list(choice), usage=usage | None), take


def _messages() -> tuple[Any, Callable[[Sink, Any], None]]:
    import msgspec

    texts = dict.fromkeys(("type", "text", "thinking", "signature", "id", "name"), _TEXT)
    block_type = _struct("Block", **texts, input=msgspec.Raw | None)
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = _struct("Usage", **dict.fromkeys(names, _COUNT))

    def take(sink: Sink, document: Any) -> None:
        for block in document.content:
            if block.thinking:
                sink.thinking(block.thinking)
            elif block.text:
                sink.text(block.text)

    kind = _struct("Message", id=_TEXT, model=_TEXT, content=_list(block_type), stop_reason=_TEXT, usage=usage | None)
    return kind, take


def _responses() -> tuple[Any, Callable[[Sink, Any], None]]:
    piece = _struct("Piece", type=_TEXT, text=_TEXT)
    texts = dict.fromkeys(("type", "id", "encrypted_content", "call_id", "name", "arguments", "status"), _TEXT)
    item_type = _struct("Item", **texts, summary=_list(piece), content=_list(piece))
    usage = _struct("Usage", input_tokens=_COUNT, output_tokens=_COUNT, total_tokens=_COUNT)

    def take(sink: Sink, document: Any) -> None:
        for item in document.output:
            for found in item.summary or ():
                sink.thinking(found.text)
            for found in item.content or ():
                sink.text(found.text)

    kind = _struct("Response", id=_TEXT, model=_TEXT, output=_list(item_type), status=_TEXT, usage=usage | None)
    return kind, take


def _gemini() -> tuple[Any, Callable[[Sink, Any], None]]:
    import msgspec

    call = _struct("Call", name=_TEXT, args=msgspec.Raw, id=_TEXT)
    part_type = _struct("Part", text=_TEXT, thought=bool | None, thoughtSignature=_TEXT, functionCall=call | None)
    content = _struct("Content", parts=_list(part_type))
    candidate = _struct("Candidate", content=content | None, finishReason=_TEXT)
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    usage = _struct("Usage", **dict.fromkeys(names, _COUNT))

    def take(sink: Sink, document: Any) -> None:
        for part in document.candidates[0].content.parts:
            (sink.thinking if part.thought else sink.text)(part.text or "")

    texts = {"modelVersion": _TEXT, "responseId": _TEXT}
    return _struct("Document", **texts, candidates=_list(candidate), usageMetadata=usage | None), take


def _cohere() -> tuple[Any, Callable[[Sink, Any], None]]:
    function = _struct("Function", name=_TEXT, arguments=_TEXT)
    call = _struct("Call", id=_TEXT, function=function | None)
    block_type = _struct("Block", type=_TEXT, thinking=_TEXT, text=_TEXT)
    message = _struct("Message", content=_list(block_type), tool_calls=_list(call), tool_plan=_TEXT)
    counts = _struct("Counts", input_tokens=_COUNT, output_tokens=_COUNT, reasoning_tokens=_COUNT)
    usage = _struct("Usage", tokens=counts | None, cached_tokens=_COUNT)

    def take(sink: Sink, document: Any) -> None:
        for block in document.message.content:
            if block.thinking:
                sink.thinking(block.thinking)
            else:
                sink.text(block.text)

    return _struct("Reply", id=_TEXT, message=message, finish_reason=_TEXT, usage=usage | None), take


def _ollama() -> tuple[Any, Callable[[Sink, Any], None]]:
    import msgspec

    function = _struct("Function", name=_TEXT, arguments=msgspec.Raw)
    call = _struct("Call", id=_TEXT, function=function)
    message = _struct("Message", content=_TEXT, thinking=_TEXT, tool_calls=_list(call))

    def take(sink: Sink, document: Any) -> None:
        sink.thinking(document.message.thinking)
        sink.text(document.message.content)

    counts = {"prompt_eval_count": _COUNT, "eval_count": _COUNT}
    return _struct("Reply", model=_TEXT, message=message, done=bool, done_reason=_TEXT, **counts), take


def _bedrock() -> tuple[Any, Callable[[Sink, Any], None]]:
    import msgspec

    reasoning_text = _struct("ReasoningText", text=_TEXT, signature=_TEXT)
    reasoning = _struct("Reasoning", reasoningText=reasoning_text | None, redactedContent=_TEXT)
    tool_use = _struct("ToolUse", toolUseId=_TEXT, name=_TEXT, input=msgspec.Raw)
    block_type = _struct("Block", text=_TEXT, reasoningContent=reasoning | None, toolUse=tool_use | None)
    message = _struct("Message", content=_list(block_type), role=_TEXT)
    names = ("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    usage = _struct("Usage", **dict.fromkeys(names, _COUNT))

    def take(sink: Sink, document: Any) -> None:
        for block in document.output.message.content:
            if block.reasoningContent:
                sink.thinking(block.reasoningContent.reasoningText.text)
            else:
                sink.text(block.text)

    output = _struct("Output", message=message)
    return _struct("Reply", output=output, stopReason=_TEXT, usage=usage | None), take


_KINDS = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "cohere": _cohere,
    "ollama": _ollama,
    "bedrock": _bedrock,
}


def typed_body(dialect: str) -> BodyDecoder:
    import msgspec

    kind, take = _KINDS[dialect]()
    return BodyDecoder(msgspec.json.Decoder(kind).decode, take)
