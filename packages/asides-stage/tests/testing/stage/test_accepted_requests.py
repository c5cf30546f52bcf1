"""The stage refuses nothing that the real servers accept: every documented field, tool, block and item.

The fields are those of the makers' clients (openai-python 3.49, anthropic-python 2.8; 2026-11).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import improvise
from asides_stage.stage.http_requests import Request
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.request_router import Routes

PICTURE = "data:image/png;base64,aGk="
TEXT = {"type": "text", "text": "x"}
ASKED = {"role": "user", "content": "x"}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}

# --- messages ---------------------------------------------------------------------------------------------------------

MESSAGES_FIELDS: dict[str, Any] = {
    "betas": ["made-up"],
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
    "compaction": {"type": "auto"},
    "container": {"id": "c", "skills": []},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "diagnostics": {"previous_message_id": "m"},
    "fallback_credit_token": "t",
    "fallbacks": [{"model": "m"}],
    "inference_geo": "us",
    "mcp_servers": [{"type": "url", "url": "https://x", "name": "n"}],
    "metadata": {"user_id": None},
    "output_config": {"effort": "max", "task_budget": {"type": "tokens", "total": 1000}},
    "service_tier": "auto",
    "speed": "fast",
    "stop_sequences": ["a"],
    "stream": True,
    "system": [TEXT, TEXT],
    "thinking": {"type": "adaptive", "display": "summarized"},
    "tool_choice": {"type": "none"},
    "user_profile_id": "u",
    "workspace_id": "w",
}
MESSAGES_TOOLS: list[dict[str, Any]] = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "memory_20250818", "name": "memory"},
    {"type": "mcp_toolset", "mcp_server_name": "n"},
    {"type": "custom", "name": "f", "input_schema": {"type": "object"}, "defer_loading": True, "allowed_callers": []},
    {"name": "f", "input_schema": {"type": "object"}, "strict": True, "cache_control": {"type": "ephemeral"}},
]
USER_BLOCKS: list[dict[str, Any]] = [
    {"type": "search_result", "source": "s", "title": "t", "content": [TEXT]},
    {"type": "container_upload", "file_id": "f"},
    {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}, "citations": {"enabled": True}},
    {"type": "document", "source": {"type": "file", "file_id": "f"}, "context": "c"},
    {"type": "document", "source": {"type": "content", "content": [TEXT]}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
    {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    {"type": "image", "source": {"type": "file", "file_id": "f"}},
]
MODEL_BLOCKS: list[list[dict[str, Any]]] = [
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
    ],
    [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "x", "is_error": False},
    ],
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}},
        {
            "type": "code_execution_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "code_execution_result"},
        },
    ],
    [{"type": "compaction", "content": "c"}],
]
RESULTS: list[Any] = [
    "x",
    None,
    [],
    [TEXT],
    [{"type": "tool_reference", "tool_name": "f"}],
    [{"type": "search_result", "source": "s", "title": "t", "content": [TEXT]}],
    [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}],
]


def ask_messages(*turns: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-6", "max_tokens": 4000, "messages": turns or [ASKED], **fields}


def return_result(content: Any) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": content}
    turns = [ASKED, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return ask_messages(*turns, tools=[{"name": "f", "input_schema": {"type": "object"}}])


MESSAGES = [
    *(ask_messages(**{name: value}) for name, value in MESSAGES_FIELDS.items()),
    *(ask_messages(tools=[tool]) for tool in MESSAGES_TOOLS),
    *(ask_messages({"role": "user", "content": [block, TEXT]}) for block in USER_BLOCKS),
    *(ask_messages(ASKED, {"role": "assistant", "content": [*blocks, TEXT]}, ASKED) for blocks in MODEL_BLOCKS),
    *map(return_result, RESULTS),
]

# --- chat completions -------------------------------------------------------------------------------------------------

ALLOWED = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}
CHAT_FIELDS: dict[str, Any] = {
    "audio": {"format": "wav", "voice": "v"},
    "frequency_penalty": 0.5,
    "function_call": "auto",
    "functions": [{"name": "f"}],
    "logit_bias": {"1": -1},
    "logprobs": True,
    "max_completion_tokens": 500,
    "max_tokens": 500,
    "metadata": {"a": "b"},
    "modalities": ["text"],
    "moderation": {},
    "n": 1,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.1,
    "prompt_cache_key": "k",
    "prompt_cache_options": {},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "minimal",
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "seed": 1,
    "service_tier": "auto",
    "stop": "x",
    "store": False,
    "stream": True,
    "stream_options": None,
    "temperature": 1,
    "tool_choice": {"type": "allowed_tools", "allowed_tools": ALLOWED},
    "tools": [{"type": "custom", "custom": {"name": "c"}}],
    "top_logprobs": 2,
    "top_p": 1,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
}
# Fields that only some models take.
MODELS = {"reasoning_effort": "gpt-5", "web_search_options": "gpt-4o-search-preview"}
UNSET: dict[str, Any] = {"annotations": [], "refusal": None, "audio": None, "function_call": None, "tool_calls": None}
CUSTOM_CALL = {"id": "a", "type": "custom", "custom": {"name": "c", "input": "i"}}
CHAT_TURNS: list[list[dict[str, Any]]] = [
    [{"role": "developer", "content": "d"}, ASKED, {"role": "system", "content": [TEXT]}, ASKED],
    [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]}],
    [ASKED, {"role": "assistant", "content": None, "audio": {"id": "a"}}, ASKED],
    [ASKED, {"role": "assistant", "content": [{"type": "refusal", "refusal": "n"}]}, ASKED],
    [ASKED, {"role": "assistant", "content": "y", **UNSET}, ASKED],
    [ASKED, {"role": "assistant", "tool_calls": [CUSTOM_CALL]}, {"role": "tool", "tool_call_id": "a", "content": "x"}],
    [
        ASKED,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    ],
]
CHAT = [
    *(
        # A model that thinks takes no sampling, and one that does not, no effort.
        {"model": MODELS.get(name, "gpt-4o"), "messages": [ASKED], name: value}
        for name, value in CHAT_FIELDS.items()
    ),
    *({"model": "gpt-5", "messages": turns} for turns in CHAT_TURNS),
]

# --- responses --------------------------------------------------------------------------------------------------------

RESPONSES_FIELDS: dict[str, Any] = {
    "access_programs": {},
    "background": False,
    "client_metadata": {"a": "b"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "conversation": "conv_1",
    "image": {},
    "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
    "instructions": "i",
    "max_output_tokens": 500,
    "max_tool_calls": 3,
    "metadata": {"a": "b"},
    "moderation": {},
    "parallel_tool_calls": False,
    "prompt": {"id": "p", "variables": {"a": "b"}},
    "prompt_cache_key": "k",
    "prompt_cache_options": {},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "xhigh", "summary": "concise", "generate_summary": None},
    "safety_identifier": "x",
    "service_tier": "flex",
    "store": None,
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "temperature": 1,
    "text": {"format": {"type": "json_object"}, "verbosity": "high"},
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
    "top_logprobs": 3,
    "top_p": 1,
    "truncation": "disabled",
    "user": "u",
}
BARE_TOOLS = (
    "apply_patch code_interpreter computer computer_use_preview file_search image_generation local_shell mcp "
    "programmatic_tool_calling shell tool_search web_search web_search_2025_08_26 web_search_preview"
).split()
RESPONSES_TOOLS: list[dict[str, Any]] = [
    *({"type": kind} for kind in BARE_TOOLS),
    {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    {"type": "namespace", "name": "n", "description": "d", "tools": [FUNCTION]},
    {"type": "function", "name": "f", "parameters": None, "strict": None},
    {**FUNCTION, "strict": True, "defer_loading": True},
]
SCREENSHOT = {"type": "computer_screenshot", "image_url": PICTURE}
ITEMS: list[list[dict[str, Any]]] = [
    [{"type": "message", "role": "developer", "content": "x"}, ASKED],
    [{"type": "message", "role": "assistant", "content": "plain"}, ASKED],
    [{"type": "compaction", "encrypted_content": "x"}, ASKED],
    [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image", "image_url": PICTURE}]},
    ],
    [
        {"type": "local_shell_call", "id": "l", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "l", "output": "x"},
    ],
    [
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "", "stderr": ""}]},
    ],
    [
        {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file", "path": "x"}},
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed", "output": "x"},
    ],
    [
        {"type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {}},
        {"type": "tool_search_output", "call_id": "a", "execution": "client", "tools": []},
    ],
    [
        {"type": "computer_call", "id": "c", "call_id": "a", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "a", "output": SCREENSHOT},
    ],
    [{"type": "mcp_call", "id": "m", "name": "n", "server_label": "s", "arguments": "{}", "output": "x"}],
    [{"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}],
    [
        {"type": "mcp_approval_request", "id": "m", "name": "n", "server_label": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
    ],
    [{"type": "image_generation_call", "id": "i", "result": "aGk=", "status": "completed"}],
    [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}],
    [{"role": "user", "content": [{"type": "input_image", "file_id": "f", "detail": "auto"}]}],
]
RESPONSES = [
    # A model that has every effort, and none if it is asked for none, so that it takes sampling.
    *({"model": "gpt-5.2", "input": "x", name: value} for name, value in RESPONSES_FIELDS.items()),
    *({"model": "gpt-5", "input": "x", "tools": [tool]} for tool in RESPONSES_TOOLS),
    *({"model": "gpt-5", "input": [ASKED, *items]} for items in ITEMS),
]

REQUESTS = {"/v1/messages": MESSAGES, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}


@pytest.mark.parametrize("path", REQUESTS)
def test_what_real_servers_accept_is_accepted(path: str) -> None:
    routes = Routes(improvise, RequestLog(), key=None, models=("any",))
    refused = []
    for body in REQUESTS[path]:
        plan = routes.answer(Request("POST", path, "", {}, json.dumps(body).encode()))
        if plan.status != 200:
            refused.append((body, b"".join(plan.pieces)))
    assert refused == []
