"""A request in one dialect, translated for a target of another: as the relay does it, without sockets."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.history.plan import encode_plan, plan
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.relay.translate.translate_fields import fit_prompt
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import RulesByDialect

TARGETS = {
    "anthropic": "anthropic:claude-opus-5-5",
    "bedrock": "bedrock:anthropic.claude-opus-4-5-v1:0",
    "cohere": "cohere:command-a-reasoning-08-2025",
    "gemini": "gemini:gemini-3-pro-preview",
    "ollama": "ollama:qwen3",
    "openai_chat": "openai-chat:gpt-5",
    "openai_responses": "openai-responses:gpt-5",
}
"""A model that thinks, of each dialect."""

PATHS = {
    "gemini": "/v1beta/models/gemini-3-pro-preview:generateContent",
    "bedrock": "/model/some-model/converse",
}


def target_of(dialect: str) -> Target:
    if dialect == "bedrock":  # its own address needs a region
        return find_target(TARGETS[dialect], base_url="https://bedrock-runtime.us-east-1.amazonaws.com")
    return find_target(TARGETS[dialect])


def read(dialect: str, body: dict[str, Any], path: str = "") -> ServedRequest:
    return find_dialect(dialect).read(msgspec.json.encode(body), path or PATHS.get(dialect, ""))


class Translated:
    """What becomes of a request."""

    def __init__(self, served: ServedRequest, caller: str, target: Target) -> None:
        self.prompt: Prompt
        self.prompt, fitted = fit_prompt(served, caller, target)
        planned = plan(self.prompt, target, on_conflict="adjust")
        request, encoded = encode_plan(planned, target, find_dialect(target.dialect), on_conflict="adjust")
        self.notices: tuple[Notice, ...] = (*fitted, *planned.notices, *encoded)
        self.body: dict[str, Any] = json.loads(request.body)
        address = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.request = Request("POST", address.path, address.query, headers, request.body)

    @property
    def told(self) -> str:
        """All notices as one text."""
        return "\n".join(f"{notice} [{notice.setting}]" for notice in self.notices)

    def find_refusal(self) -> str | None:
        """Why a strict provider would refuse it."""
        rules = RulesByDialect().find(target_dialect(self.request))
        assert rules is not None
        return rules.refuse(self.request)


def target_dialect(request: Request) -> str:
    """The dialect of an encoded request, by its path."""
    for end, dialect in (
        ("/messages", "anthropic"),
        ("/converse", "bedrock"),
        ("/converse-stream", "bedrock"),
        ("/responses", "openai_responses"),
        ("/chat/completions", "openai_chat"),
        ("/api/chat", "ollama"),
        ("/v2/chat", "cohere"),
    ):
        if request.path.endswith(end):
            return dialect
    return "gemini"


def translate(dialect: str, body: dict[str, Any], to: str, path: str = "") -> Translated:
    return Translated(read(dialect, body, path), dialect, target_of(to))


USER: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
BASES: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 1000, "messages": USER},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "cohere": {"model": "m", "messages": USER},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "ollama": {"model": "m", "messages": USER, "stream": False},
    "openai_chat": {"model": "m", "messages": USER},
    "openai_responses": {"model": "m", "input": "hi"},
}
PAIRS = [(caller, to) for caller in sorted(BASES) for to in sorted(TARGETS) if caller != to]


def put(body: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The body with a field; "a.b" is the field b of the object a."""
    outer, _, inner = name.partition(".")
    return {**body, outer: {**body.get(outer, {}), inner: value} if inner else value}
