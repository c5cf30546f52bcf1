"""The hosts of Responses that the stage plays: their rows, and the form of their errors.

The first part of a path such as `/as-azure/v1/responses` chooses a host; else the path of the real host, else the name
of the model. Any other is the endpoint of the dialect's maker.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.dialects.openai_responses.rules.settings import TOO_LONG
from asides.dialects.openai_responses.rules.state import NOT_DECRYPTED, NOT_VERIFIED, RELAYED, WRONG_ACCOUNT
from asides.dialects.rulebook import BrokenRule, Wire
from asides_stage.stage.rules import DetailedRefusal, refuse_broken
from asides_stage.stage.rules.hosts import StageHost, choose_host
from asides_stage.stage.rules.openai_chat import error_bodies
from asides_stage.stage.rules.openai_chat.error_bodies import WriteBody

_IN_STREAM = (NOT_VERIFIED, NOT_DECRYPTED, WRONG_ACCOUNT, TOO_LONG)
"""Errors that come inside the stream, if one was asked for."""


class ResponsesHost(StageHost, frozen=True, kw_only=True):
    """A host of Responses."""

    dialect: str = "openai_responses"
    row: str = "openai-responses"
    title: str
    items: Literal["paired", "unpaired", "text"] = "paired"
    """The state of its items: reasoning and its follower belong together · nothing is paired · reasoning is text."""
    write: WriteBody = error_bodies.write_openai
    wrap: Literal["raw", "sentence", "hidden"] | None = None
    """How it passes on the error of its upstream, which is OpenAI unless the name of the model shows another."""
    reasons: bool = True
    """Whether it says why encrypted reasoning could not be verified."""
    missing_status: int = 404
    """The status for an item that is not stored."""

    def refuse(self, broken: BrokenRule, model: str, *, streams: bool) -> DetailedRefusal:
        """Return the refusal of a request that breaks a rule."""
        if broken.kind == "item_not_persisted":
            rule = msgspec.structs.replace(broken.rule, status=self.missing_status)
            broken = msgspec.structs.replace(broken, rule=rule)
        match self.wrap:
            case "hidden":
                # The words stay in the log of the stage; the client gets none of them.
                body = msgspec.json.encode({"error": {"message": RELAYED.text, "type": "upstream_error"}})
                return DetailedRefusal(broken.text, body, status=RELAYED.status, kind=RELAYED.kind)
            case "raw":
                inner = broken.text.encode() if model.startswith("meta") else self._find_upstream(model).write(broken)
                body = error_bodies.wrap_raw(broken, inner, self._find_upstream(model).title)
                return refuse_broken(broken, body)
            case "sentence":
                upstream = self._find_upstream(model)
                return refuse_broken(
                    broken, error_bodies.wrap_sentence(broken, upstream.write(broken), upstream.title, model)
                )
            case None:
                if broken.rule in _IN_STREAM and streams:
                    return DetailedRefusal(broken.text, write_stream_error(broken), status=200, kind=broken.kind)
                return refuse_broken(broken, self.write(broken))

    @staticmethod
    def _find_upstream(model: str) -> ResponsesHost:
        return _find_by_model(model.rpartition("/")[2])


def _write_body_code(broken: BrokenRule) -> bytes:
    return msgspec.json.encode({"error": {"message": broken.text, "code": "invalid_request_body"}})


def write_stream_error(broken: BrokenRule) -> bytes:
    """Write a stream that begins well and fails: the error comes as an event, and again in the failed response."""
    error = {"type": "invalid_request_error", "code": broken.rule.code, "message": broken.text, "param": broken.param}
    opened: Wire = {"id": "resp_failed", "object": "response", "status": "in_progress", "error": None, "output": []}
    failed = {**opened, "status": "failed", "error": {"code": broken.rule.code, "message": broken.text}}
    events: list[tuple[str, Wire]] = [
        ("response.created", {"response": opened}),
        ("response.in_progress", {"response": opened}),
        ("error", {"error": error}),
        ("response.failed", {"response": failed}),
    ]
    pieces: list[bytes] = []
    for number, (kind, fields) in enumerate(events):
        data = msgspec.json.encode({"type": kind, "sequence_number": number, **fields})
        pieces.append(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")
    return b"".join(pieces)


HOSTS = (
    ResponsesHost(
        title="OpenRouter",
        at="as-openrouter",
        paths=r"/api/v1/responses$",
        wrap="raw",
        models=r"[\w-]+/",
        missing_status=400,
    ),
    ResponsesHost(title="LiteLLM", at="as-litellm", wrap="sentence", missing_status=400),
    ResponsesHost(title="sub2api", at="as-relay", wrap="hidden"),
    ResponsesHost(title="GitHub Copilot", at="as-copilot", write=_write_body_code, missing_status=400),
    # Its code is null, and it gives no reason (openai-agents-python#2063, 2025-11-10).
    ResponsesHost(
        title="Azure",
        row="azure",
        at="as-azure",
        paths=r"/openai/(?:deployments|responses)",
        reasons=False,
        missing_status=400,
    ),
    ResponsesHost(
        title="xAI", row="xai", at="as-xai", models=r"grok-", items="unpaired", write=error_bodies.write_string
    ),
    ResponsesHost(title="DeepSeek", row="deepseek", at="as-deepseek", models=r"deepseek-", items="text"),
    ResponsesHost(
        title="an open model",
        row="vllm",
        enforces=("known_fields", "reasoning_text"),
        at="as-vllm",
        models=r"gpt-oss",
        items="text",
    ),
)
OPENAI = ResponsesHost(title="OpenAI", at="as-openai")


def find_host(path: str, model: str) -> ResponsesHost:
    """Return the host that the stage plays for this request."""
    return choose_host((*HOSTS, OPENAI), path, model) or OPENAI


def find_rules_host(host: ResponsesHost, model: str) -> ResponsesHost:
    """Return the host whose rules hold: that of the model, if this one passes requests on."""
    return host if host.wrap is None else _find_by_model(model.rpartition("/")[2])


def _find_by_model(model: str) -> ResponsesHost:
    return choose_host(HOSTS, "", model) or OPENAI
