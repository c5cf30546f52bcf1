"""The hosts of Responses that the stage imitates: what each checks beside the settings, and how it says no.

The first part of a path such as `/as-azure/v1/responses` chooses a host; else the path of the real host, else the name
of the model. Any other is OpenAI's own endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import DetailedRefusal, Wire
from asides.testing.stage.rules.openai_chat import error_bodies
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule, WriteBody

_RELAYED = HostRule(
    kind="opaque_provider_error",
    text="Upstream request failed",
    status=502,
    since="2026-06-04",
    source="Wei-Shaw/sub2api#3038: hides an encrypted item that could not be verified",
)
_EXPIRED = HostRule(
    kind="item_not_persisted",
    text="Referenced reasoning item '{name}' was not found or has expired.",
    since="2026-09-11",
    source="can1357/oh-my-pi#11791",
)
_NO_ELEMENT = HostRule(
    kind="empty_content",
    text="Invalid request content: Each message must have at least one content element.",
    since="2026-05-22",
    source="NousResearch/hermes-agent#30310",
)
_COMPACTION = HostRule(
    kind="encrypted_reasoning_invalid",
    text="Could not decode the compaction blob. Ensure it is unmodified from the compact response.",
    code="invalid-argument",
    since="2026-07-18",
    source="chenyme/grok2api#689: an item with encrypted_content and no summary",
)


class ResponsesHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host of Responses."""

    title: str
    at: str
    """The first part of the path that chooses it."""
    models: str | None = None
    paths: str | None = None
    items: Literal["paired", "unpaired", "text"] = "paired"
    """The rules for items: OpenAI's, where reasoning and its follower belong together · xAI's, which pairs nothing ·
    those of a model whose reasoning is text."""
    write: WriteBody = error_bodies.write_openai
    wrap: Literal["raw", "sentence", "hidden"] | None = None
    """How it passes on the error of its upstream, which is OpenAI unless the name of the model shows another."""
    reasons: bool = True
    """Whether it says why encrypted reasoning could not be verified."""
    missing_status: int = 404
    """The status for an item that is not stored."""

    def refuse(self, fault: Fault, model: str, *, streams: bool) -> DetailedRefusal:
        """Return the refusal for a fault."""
        if fault.kind == "item_not_persisted":
            fault = msgspec.structs.replace(fault, status=self.missing_status)
        match self.wrap:
            case "hidden":
                # The words stay in the log of the stage; the client gets none of them.
                body = msgspec.json.encode({"error": {"message": _RELAYED.text, "type": "upstream_error"}})
                return DetailedRefusal(fault.text, body, status=_RELAYED.status, kind=_RELAYED.kind)
            case "raw":
                inner = fault.text.encode() if model.startswith("meta") else self._find_upstream(model).write(fault)
                body = error_bodies.wrap_raw(fault, inner, self._find_upstream(model).title)
                return fault.refuse(body)
            case "sentence":
                upstream = self._find_upstream(model)
                return fault.refuse(error_bodies.wrap_sentence(fault, upstream.write(fault), upstream.title, model))
            case None:
                if fault.in_stream and streams:
                    return DetailedRefusal(fault.text, write_stream_error(fault), status=200, kind=fault.kind)
                return fault.refuse(self.write(fault))

    @staticmethod
    def _find_upstream(model: str) -> ResponsesHost:
        return _find_by_model(model.rpartition("/")[2])


def _write_body_code(fault: Fault) -> bytes:
    return msgspec.json.encode({"error": {"message": fault.text, "code": "invalid_request_body"}})


def write_stream_error(fault: Fault) -> bytes:
    """Write a stream that begins well and fails: the error comes as an event, and again in the failed response."""
    error = {"type": "invalid_request_error", "code": fault.code, "message": fault.text, "param": fault.param}
    opened: Wire = {"id": "resp_failed", "object": "response", "status": "in_progress", "error": None, "output": []}
    failed = {**opened, "status": "failed", "error": {"code": fault.code, "message": fault.text}}
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
        title="Azure", at="as-azure", paths=r"/openai/(?:deployments|responses)", reasons=False, missing_status=400
    ),
    ResponsesHost(title="xAI", at="as-xai", models=r"grok-", items="unpaired", write=error_bodies.write_string),
    ResponsesHost(title="DeepSeek", at="as-deepseek", models=r"deepseek-", items="text"),
    ResponsesHost(title="an open model", at="as-vllm", models=r"gpt-oss", items="text"),
)
OPENAI = ResponsesHost(title="OpenAI", at="as-openai")
_BY_PATH = {host.at: host for host in (*HOSTS, OPENAI)}


def find_host(request: Request, model: str) -> ResponsesHost:
    """Return the host that the stage is for this request."""
    first = request.path.lstrip("/").partition("/")[0]
    if first in _BY_PATH:
        return _BY_PATH[first]
    by_path = next((host for host in HOSTS if host.paths and re.search(host.paths, request.path)), None)
    return by_path or _find_by_model(model)


def find_rules_host(host: ResponsesHost, model: str) -> ResponsesHost:
    """Return the host whose rules hold: that of the model, if this one passes requests on."""
    return host if host.wrap is None else _find_by_model(model.rpartition("/")[2])


def _find_by_model(model: str) -> ResponsesHost:
    name = model.lower()
    return next((host for host in HOSTS if host.models and re.match(host.models, name)), OPENAI)


# --- xAI --------------------------------------------------------------------------------------------------------------


def check_xai_items(items: list[Wire]) -> Iterator[Fault]:
    """Check that no message is empty, and no state without a summary, for which it is taken for something else."""
    for item in items:
        if item.get("type", "message") == "message" and item.get("content") in (None, "", []):
            yield _NO_ELEMENT.fault()
        if item.get("type") == "reasoning" and item.get("encrypted_content") and "summary" not in item:
            yield _COMPACTION.fault()


def describe_expired(fault: Fault, name: object) -> Fault:
    """Return the words of another maker for an item that is not stored."""
    return _EXPIRED.fault(name=name) if fault.kind == "item_not_persisted" else fault
