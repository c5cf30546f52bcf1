"""The requests of the table of gateways: paths and bodies of clients of four dialects, which all ask for thinking."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

from bench.payloads import QUESTION

CLIENTS = ("chat", "messages", "responses", "gemini")
_PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
_SYSTEM = "You are a careful assistant. Answer in full sentences, and name your sources. " * 20
_TOOLS = 16
_PARAMETERS = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to search for, in the words of the user."},
        "limit": {"type": "integer", "description": "The largest number of results.", "minimum": 1},
        "kind": {"type": "string", "enum": ["text", "code", "picture"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
}

Json = dict[str, Any]


class _Turn(NamedTuple):
    """A message of any dialect. A call and its result have a number, and are two messages."""

    kind: str
    text: str
    number: int = 0


def write_path(dialect: str, model: str, *, stream: bool) -> str:
    if dialect == "gemini":
        return f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    return _PATHS[dialect]


@cache
def write_body(dialect: str, model: str, *, stream: bool, messages: int = 1, with_tools: bool = False) -> bytes:
    """The request of a client of this dialect, with so many messages: an odd number.

    With tools: also a system prompt, the tools, and calls with results in the history.
    """
    turns = _make_turns(messages, with_tools)
    write = {"chat": _chat, "messages": _messages, "responses": _responses, "gemini": _gemini}[dialect]
    body = write(model, turns, with_tools)
    if stream and dialect != "gemini":
        body["stream"] = True
    if stream and dialect == "chat":
        body["stream_options"] = {"include_usage": True}
    return json.dumps(body, separators=(",", ":")).encode()


def _make_turns(messages: int, with_tools: bool) -> list[_Turn]:
    turns: list[_Turn] = []
    while len(turns) < messages - 1:
        number = len(turns)
        turns.append(_Turn("user", f"{number}: {QUESTION}"))
        if with_tools and messages - 1 - number >= 4:
            turns += [_Turn("call", f"query {number}", number), _Turn("result", f"{number}: {QUESTION}", number)]
        turns.append(_Turn("assistant", f"{number + 1}: {QUESTION}"))
    return [*turns, _Turn("user", QUESTION)]


def _list_tools() -> list[Json]:
    return [{"name": f"search_{number}", "description": _SYSTEM[:160]} for number in range(_TOOLS)]


def _chat(model: str, turns: list[_Turn], with_tools: bool) -> Json:
    def write(turn: _Turn) -> Json:
        if turn.kind == "call":
            function = {"name": "search_0", "arguments": json.dumps({"query": turn.text})}
            call = {"id": f"call_{turn.number}", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if turn.kind == "result":
            return {"role": "tool", "tool_call_id": f"call_{turn.number}", "content": turn.text}
        return {"role": turn.kind, "content": turn.text}

    body: Json = {"model": model, "messages": [write(turn) for turn in turns]}
    if with_tools:
        body["messages"].insert(0, {"role": "system", "content": _SYSTEM})
        body["tools"] = [
            {"type": "function", "function": {**tool, "parameters": _PARAMETERS}} for tool in _list_tools()
        ]
    return body


def _messages(model: str, turns: list[_Turn], with_tools: bool) -> Json:
    def write(turn: _Turn) -> Json:
        number = f"toolu_{turn.number}"
        if turn.kind == "call":
            block = {"type": "tool_use", "id": number, "name": "search_0", "input": {"query": turn.text}}
            return {"role": "assistant", "content": [block]}
        if turn.kind == "result":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": number, "content": turn.text}]}
        return {"role": turn.kind, "content": turn.text}

    thinking = {"type": "enabled", "budget_tokens": 2048}
    body: Json = {"model": model, "max_tokens": 8192, "thinking": thinking, "messages": [write(t) for t in turns]}
    if with_tools:
        body["system"] = _SYSTEM
        body["tools"] = [{**tool, "input_schema": _PARAMETERS} for tool in _list_tools()]
    return body


def _responses(model: str, turns: list[_Turn], with_tools: bool) -> Json:
    def write(turn: _Turn) -> Json:
        number = f"call_{turn.number}"
        if turn.kind == "call":
            arguments = json.dumps({"query": turn.text})
            return {"type": "function_call", "call_id": number, "name": "search_0", "arguments": arguments}
        if turn.kind == "result":
            return {"type": "function_call_output", "call_id": number, "output": turn.text}
        return {"role": turn.kind, "content": turn.text}

    body: Json = {
        "model": model,
        "input": QUESTION if len(turns) == 1 else [write(turn) for turn in turns],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    if with_tools:
        body["instructions"] = _SYSTEM
        body["tools"] = [
            {"type": "function", **tool, "parameters": _PARAMETERS, "strict": False} for tool in _list_tools()
        ]
    return body


def _gemini(model: str, turns: list[_Turn], with_tools: bool) -> Json:
    del model  # It is part of the path.

    def write(turn: _Turn) -> Json:
        if turn.kind == "call":
            return {"role": "model", "parts": [{"functionCall": {"name": "search_0", "args": {"query": turn.text}}}]}
        if turn.kind == "result":
            result = {"name": "search_0", "response": {"result": turn.text}}
            return {"role": "user", "parts": [{"functionResponse": result}]}
        return {"role": "user" if turn.kind == "user" else "model", "parts": [{"text": turn.text}]}

    thinking = {"thinkingBudget": 2048, "includeThoughts": True}
    body: Json = {
        "contents": [write(turn) for turn in turns],
        "generationConfig": {"maxOutputTokens": 8192, "thinkingConfig": thinking},
    }
    if with_tools:
        body["systemInstruction"] = {"parts": [{"text": _SYSTEM}]}
        body["tools"] = [{"functionDeclarations": [{**tool, "parameters": _PARAMETERS} for tool in _list_tools()]}]
    return body
