"""The costumes that the tests of the probe use, each with what makes it special. Not a test."""

from __future__ import annotations

import json
from typing import Any

from tests.flows.probe.costumes import (
    ANSWER,
    THOUGHT,
    Body,
    Costume,
    Refusal,
    forbid_unknown,
    in_field,
    in_tags,
    make_chat,
    read_template,
    refuse,
    repeat,
)

ONE = {"object": "list", "data": [{"id": "thinker-1", "object": "model"}]}


def _toggle(body: Body) -> bool:
    return bool((body.get("thinking") or {}).get("type", "enabled") != "disabled")


def _effort(body: Body, default: str = "medium") -> str:
    return str(body.get("reasoning_effort", default))


def _check_effort(*known: str) -> Any:
    def check(body: Body) -> None:
        if "reasoning_effort" in body and body["reasoning_effort"] not in known:
            names = ", ".join(f"'{name}'" for name in known[:-1])
            raise refuse(
                400,
                f"Unsupported value: '{body['reasoning_effort']}' is not supported with the 'thinker-1' model. "
                f"Supported values are: {names}, and '{known[-1]}'.",
                param="reasoning_effort",
                code="unsupported_value",
            )

    return check


def _needs_thinking_back(body: Body) -> None:
    for message in body["messages"]:
        if message["role"] == "assistant" and message.get("tool_calls") and "reasoning_content" not in message:
            raise refuse(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")


def _refuses_thinking_back(body: Body) -> None:
    for place, message in enumerate(body["messages"]):
        if "reasoning" in message:
            raise refuse(
                400,
                f"'messages.{place}' : for 'role:assistant' the following must be satisfied"
                f"[('messages.{place}' : property 'reasoning' is unsupported)]",
            )


def _newer_limits(body: Body) -> None:
    if "max_tokens" in body:
        raise refuse(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    if "stream_options" in body:
        raise refuse(400, "Unrecognized request argument supplied: stream_options")


def _only_streams(body: Body) -> None:
    if not body.get("stream"):
        raise refuse(
            400,
            "parameter.enable_thinking must be set to false for non-streaming calls; "
            "this model only supports stream mode",
        )


def _mirror(thought: str, text: str) -> Body:
    return {"reasoning": thought, "reasoning_content": thought, "content": text} if thought else {"content": text}


def _twice(thought: str, text: str) -> Body:
    return (
        {"reasoning_content": thought, "content": f"<think>{thought}</think>{text}"} if thought else {"content": text}
    )


def _parts(thought: str, text: str) -> Body:
    listed = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}, {"type": "text", "text": text}]
    return {"content": listed} if thought else {"content": text}


def _fragments(message: Body) -> list[Body]:
    """Close the tag after each piece and open it again."""
    deltas: list[Body] = []
    thought, closed, text = str(message["content"]).partition("</think>")
    if closed:
        words = thought.removeprefix("<think>").split(" ")
        deltas += [{"content": f"<think>{' ' if place else ''}{word}</think>"} for place, word in enumerate(words)]
    else:
        text = thought
    deltas.append({"content": text})
    if "tool_calls" in message:
        deltas.append({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]})
    return deltas


HARMONY = ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")


def _answer_messages(costume: Costume, _path: str, body: Body) -> tuple[str, bytes]:
    blocks: list[Body] = []
    if costume.thinks(body):
        blocks.append({"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"})
    wants_tool = bool(body.get("tools")) and isinstance(body["messages"][-1]["content"], str)
    if wants_tool:
        blocks.append({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"location": "Paris"}})
    else:
        blocks.append({"type": "text", "text": ANSWER})
    stop = "tool_use" if wants_tool else "end_turn"
    whole: Body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    whole |= {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 30}}
    if not body.get("stream"):
        return "application/json", json.dumps(whole).encode()
    events: list[Body] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        kind = block["type"]
        empty: Body = {
            **block,
            **(
                {"thinking": "", "signature": ""}
                if kind == "thinking"
                else {"text": ""}
                if kind == "text"
                else {"input": {}}
            ),
        }
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        deltas: list[Body] = []
        if kind == "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": THOUGHT},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        elif kind == "text":
            deltas = [{"type": "text_delta", "text": ANSWER}]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 30}})
    events.append({"type": "message_stop"})
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def _check_messages(body: Body) -> None:
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "adaptive":
        raise Refusal(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "thinking.type: Input should be 'enabled' or 'disabled'",
                },
            },
        )
    if thinking.get("type") == "enabled" and thinking.get("budget_tokens", 0) < 1024:
        raise Refusal(
            400,
            {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "thinking.enabled.budget_tokens: Field required"},
            },
        )
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "thinking" and block["signature"] != "c2lnbmVk":
                text = "messages.1.content.0: Invalid `signature` in `thinking` block"
                raise Refusal(400, {"type": "error", "error": {"type": "invalid_request_error", "message": text}})


def _answer_ollama(costume: Costume, path: str, body: Body) -> tuple[str, bytes]:
    if path.endswith("/show"):
        return "application/json", json.dumps({"capabilities": ["completion", "thinking"], "details": {}}).encode()
    message: Body = {"role": "assistant", "content": ANSWER}
    if costume.thinks(body):
        message["thinking"] = THOUGHT
    done = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 30}
    head = {"model": "m", "created_at": "2026-11-16T00:00:00Z"}
    if not body.get("stream", True):
        return "application/json", json.dumps({**head, "message": message, **done}).encode()
    lines: list[Body] = []
    for name in ("thinking", "content"):
        text = str(message.get(name, ""))
        lines += [
            {**head, "message": {"role": "assistant", "content": "", name: text[at : at + 5]}, "done": False}
            for at in range(0, len(text), 5)
        ]
    lines.append({**head, "message": {"role": "assistant", "content": ""}, **done})
    return "application/x-ndjson", "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _check_ollama(body: Body) -> None:
    think = body.get("think")
    if isinstance(think, str) and think not in ("low", "medium", "high", "max"):
        raise Refusal(
            400, {"error": f'invalid think value: "{think}" (must be "high", "medium", "low", "max", true, or false)'}
        )


def _answer_gemini(costume: Costume, path: str, body: Body) -> tuple[str, bytes]:
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    parts: list[Body] = []
    thinks = costume.thinks(body)
    if thinks and config.get("includeThoughts"):
        parts.append({"text": THOUGHT, "thought": True})
    parts.append({"text": ANSWER})
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 10, "totalTokenCount": 39 if thinks else 19}
    if thinks:
        usage["thoughtsTokenCount"] = 20
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    document = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
    if ":stream" in path:
        return "text/event-stream", f"data: {json.dumps(document)}\n\n".encode()
    return "application/json", json.dumps(document).encode()


def _check_gemini(body: Body) -> None:
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    if "thinkingLevel" in config:
        raise Refusal(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Thinking level is not supported for this model.",
                    "status": "INVALID_ARGUMENT",
                }
            },
        )


def _answer_cohere(costume: Costume, _path: str, body: Body) -> tuple[str, bytes]:
    content: list[Body] = [{"type": "thinking", "thinking": THOUGHT}] if costume.thinks(body) else []
    content.append({"type": "text", "text": ANSWER})
    usage = {"tokens": {"input_tokens": 9, "output_tokens": 30}}
    if not body.get("stream"):
        message = {"role": "assistant", "content": content}
        return "application/json", json.dumps(
            {"id": "1", "finish_reason": "COMPLETE", "message": message, "usage": usage}
        ).encode()
    events: list[Body] = [
        {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant", "content": []}}}
    ]
    for index, block in enumerate(content):
        name = "thinking" if block["type"] == "thinking" else "text"
        events.append(
            {
                "type": "content-start",
                "index": index,
                "delta": {"message": {"content": {"type": block["type"], name: ""}}},
            }
        )
        events.append({"type": "content-delta", "index": index, "delta": {"message": {"content": {name: block[name]}}}})
        events.append({"type": "content-end", "index": index})
    events.append({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}})
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def _answer_responses(costume: Costume, _path: str, body: Body) -> tuple[str, bytes]:
    items: list[Body] = []
    if costume.thinks(body):
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": THOUGHT}]}
        )
    items.append(
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        }
    )
    whole: Body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items}
    whole["usage"] = {
        "input_tokens": 9,
        "output_tokens": 30,
        "total_tokens": 39,
        "output_tokens_details": {"reasoning_tokens": 20},
    }
    if not body.get("stream"):
        return "application/json", json.dumps(whole).encode()
    events: list[Body] = [{"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}})
        kind = "reasoning_text" if item["type"] == "reasoning" else "output_text"
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        text = THOUGHT if kind == "reasoning_text" else ANSWER
        events.append({"type": f"response.{kind}.delta", **place, "delta": text})
        events.append({"type": f"response.{kind}.done", **place, "text": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


COSTUMES = [
    Costume("toggle", make_chat(in_field("reasoning_content")), models=ONE, thinks=_toggle),
    Costume(
        "reasoning object, off by default",
        make_chat(in_field("reasoning")),
        path="/api/v1/chat/completions",
        list_path="/api/v1/models",
        models={"data": [{"id": "a/embed-1"}, {"id": "maker/thinker:free"}]},
        thinks=lambda body: bool(body.get("reasoning")) and body["reasoning"].get("enabled", True) is True,
    ),
    Costume(
        "template",
        make_chat(in_tags("<think>\n", "\n</think>\n\n")),
        models=ONE,
        thinks=read_template("enable_thinking", True),
    ),
    Costume("starts inside", make_chat(in_tags("", "\n</think>\n\n")), thinks=read_template("thinking", True)),
    Costume(
        "scratchpad, strict", make_chat(in_tags("<scratchpad>", "</scratchpad>\n")), models=ONE, check=forbid_unknown()
    ),
    Costume(
        "unknown field, think",
        make_chat(in_field("inner_voice")),
        models=ONE,
        thinks=lambda body: body.get("think") is True,
    ),
    Costume(
        "snapshots",
        make_chat(in_field("reasoning_content"), pieces=repeat),
        models=ONE,
        thinks=lambda body: body.get("enable_thinking", True),
    ),
    Costume("harmony", make_chat(in_tags(*HARMONY)), models=ONE, check=_check_effort("low", "medium", "high")),
    Costume("fragments", make_chat(in_tags("<think>", "</think>"), pieces=_fragments), models=ONE),
    Costume("mirror", make_chat(_mirror), models=ONE, thinks=lambda body: _effort(body) != "none"),
    Costume("field and tags", make_chat(_twice), models=ONE, thinks=read_template("enable_thinking", True)),
    Costume(
        "parts",
        make_chat(_parts),
        models=ONE,
        thinks=lambda body: _effort(body, "none") != "none",
        check=_check_effort("none", "high"),
    ),
    Costume(
        "newer limits",
        make_chat(
            in_field("reasoning_content"),
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 44,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
        ),
        models=ONE,
        check=_newer_limits,
        thinks=_toggle,
    ),
    Costume("only streams", make_chat(in_field("reasoning_content")), models=ONE, check=_only_streams),
    Costume(
        "wants thinking back",
        make_chat(in_field("reasoning_content")),
        models=ONE,
        thinks=_toggle,
        check=_needs_thinking_back,
    ),
    Costume("refuses thinking back", make_chat(in_field("reasoning")), models=ONE, check=_refuses_thinking_back),
    Costume(
        "messages",
        _answer_messages,
        path="/v1/messages",
        models=ONE,
        thinks=lambda body: bool(body.get("thinking")) and _toggle(body),
        check=_check_messages,
        key_header="x-api-key",
    ),
    Costume(
        "ollama",
        _answer_ollama,
        path="/api/*",
        thinks=lambda body: body.get("think", True) is not False,
        check=_check_ollama,
    ),
    Costume(
        "gemini",
        _answer_gemini,
        path="/v1beta/models/*Content",
        thinks=lambda body: (
            ((body.get("generationConfig") or {}).get("thinkingConfig") or {}).get("thinkingBudget", -1) != 0
        ),
        check=_check_gemini,
    ),
    Costume("cohere", _answer_cohere, path="/v2/chat", thinks=_toggle),
    Costume(
        "responses",
        _answer_responses,
        path="/v1/responses",
        models=ONE,
        thinks=lambda body: (body.get("reasoning") or {}).get("effort") != "none",
    ),
    Costume(
        "no prefix, api-key",
        make_chat(in_tags("[REASONING]", "[/REASONING]")),
        path="/openai/chat/completions",
        key_header="api-key",
        thinks=_toggle,
    ),
]


# --- more of them, which only have to be separated --------------------------------------------------------------------


def _details(thought: str, text: str) -> Body:
    entry = {"type": "reasoning.text", "text": thought, "format": "unknown", "index": 0}
    return {"reasoning": thought, "reasoning_details": [entry], "content": text} if thought else {"content": text}


def _check_always_on(body: Body) -> None:
    if (body.get("thinking") or {}).get("type") == "disabled":
        raise refuse(400, "invalid thinking: only type=enabled is allowed for this model")
    if _effort(body, "low") not in ("low", "high", "max"):
        raise refuse(400, "Invalid request: reasoning_effort must be one of [low high max]")


def _check_like_vllm(body: Body) -> None:
    if _effort(body, "low") not in ("low", "medium", "high"):
        text = (
            "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), "
            "'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'none'}"
        )
        raise Refusal(400, {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400})


def _check_without_names(body: Body) -> None:
    if body.keys() - {"model", "messages", "max_tokens", "stream", "stream_options", "tools", "reasoning_effort"}:
        raise Refusal(400, "Bad Request")


def _break_on_unknown(body: Body) -> None:
    if body.keys() - {"model", "messages", "max_tokens", "stream", "stream_options", "tools", "chat_template_kwargs"}:
        raise refuse(500, "internal error")


def _check_conflict(body: Body) -> None:
    if "reasoning_effort" in body and "reasoning" in body:
        raise refuse(400, 'Only one of "reasoning" and "reasoning_effort" may be provided')


def _object(thought: str, text: str) -> Body:
    return {"reasoning": {"summary": thought, "tokens": 5}, "content": text} if thought else {"content": text}


def _by_effort(body: Body) -> bool:
    return _effort(body) != "none"


_TEMPLATE_ON = read_template("enable_thinking", True)
MORE = [
    Costume(
        "details",
        make_chat(_details),
        models=ONE,
        thinks=lambda body: (body.get("reasoning") or {}).get("enabled", True),
    ),
    Costume("always on", make_chat(in_field("reasoning_content")), models=ONE, check=_check_always_on),
    Costume(
        "no parser", make_chat(in_tags("<think>", "</think>")), models=ONE, check=_check_like_vllm, thinks=_TEMPLATE_ON
    ),
    Costume("no names", make_chat(in_field("reasoning")), models=ONE, check=_check_without_names, thinks=_by_effort),
    Costume("breaks", make_chat(in_field("reasoning")), models=ONE, check=_break_on_unknown, thinks=_TEMPLATE_ON),
    Costume("conflict", make_chat(in_field("reasoning")), models=ONE, check=_check_conflict, thinks=_by_effort),
    Costume("object", make_chat(_object), models=ONE, thinks=_toggle),
    Costume("headings", make_chat(in_tags("Thought process: ", "\n\nFinal answer: ")), models=ONE),
    Costume(
        "odd orphan",
        make_chat(in_tags("", "</cogitate>")),
        models=ONE,
        thinks=lambda body: body.get("enable_thinking", True),
    ),
    Costume("tokens", make_chat(in_tags("<|thinking|>", "<|answer|>")), models=ONE),
]
STOPS = {"details", "no parser", "no names", "breaks", "conflict", "object", "odd orphan"}
