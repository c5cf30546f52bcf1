"""A planned prompt as a generateContent request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: contents and thinking, which have files of their own, and whether the model takes what is asked (plan).
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote, urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.gemini.encode_contents import spell_contents
from asides.dialects.gemini.encode_thinking import spell_thinking
from asides.dialects.http_body import build_post, join_url, merge_fields, report_tool_settings
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

# Their names for the settings that they have.
SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
    "seed": "seed",
}
MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = "text/event-stream" if prompt.stream else "application/json"
    return build_post(target, address(target, stream=prompt.stream), accept, body), tuple(notices)


def address(target: Target, *, stream: bool) -> str:
    """Where requests go: the model and what is asked of it are in the path, `models/` or another collection first."""
    model = target.model if "/" in target.model else f"models/{target.model}"
    path = f"{urlsplit(target.base_url).path.rstrip('/')}/{quote(model, safe='/@')}"
    if stream:
        return join_url(target, f"{path}:streamGenerateContent", last=[("alt", "sse")])
    return join_url(target, f"{path}:generateContent")


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    contents, system = spell_contents(prompt, target, notices)
    body: dict[str, Any] = {}
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    body["contents"] = contents
    body |= _tools(prompt, notices)
    config = _config(prompt, target, notices)
    if config:
        body["generationConfig"] = config
    notices += [
        Notice("setting_dropped", f"this dialect has no {setting}", setting)
        for setting in ("metadata", "user")
        if getattr(prompt, setting) is not None
    ]
    return merge_fields(body, prompt.extra)


def _config(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name, value in prompt.sampling.given().items():
        if name in SAMPLING:
            config[SAMPLING[name]] = value
        else:
            notices.append(Notice("setting_dropped", f"this dialect has no {name}", name))
    if prompt.max_tokens is not None:
        config["maxOutputTokens"] = prompt.max_tokens
    if prompt.stop:
        config["stopSequences"] = list(prompt.stop)
    if prompt.output is not None:
        config |= _output(prompt.output)
    thinking, unspoken = spell_thinking(prompt, target)
    notices.extend(unspoken)
    if thinking:
        config["thinkingConfig"] = thinking
    return config


def _output(output: OutputSchema | Literal["json"]) -> dict[str, Any]:
    told: dict[str, Any] = {"responseMimeType": "application/json"}
    if isinstance(output, OutputSchema):
        # The older responseSchema knows only a part of JSON schema.
        told["responseJsonSchema"] = output.schema
    return told


def _tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    if prompt.parallel_tool_calls is not None:
        words = "whether calls come together is the model's choice here"
        notices.append(Notice("setting_dropped", words, "parallel_tool_calls"))
    if not prompt.tools:
        if "tools" not in prompt.extra:
            notices += report_tool_settings(prompt, "tool_choice")
        return {}
    spelled: dict[str, Any] = {"tools": [{"functionDeclarations": [_declaration(tool) for tool in prompt.tools]}]}
    choice = prompt.tool_choice
    if choice is not None:
        config: dict[str, Any] = {"mode": MODES.get(choice, "ANY")}
        if choice not in MODES:
            config["allowedFunctionNames"] = [choice]
        spelled["toolConfig"] = {"functionCallingConfig": config}
    return spelled


def _declaration(tool: Tool) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    # `parameters` knows only a part of JSON schema, and refuses the rest of it.
    declared["parametersJsonSchema"] = tool.parameters
    return declared
