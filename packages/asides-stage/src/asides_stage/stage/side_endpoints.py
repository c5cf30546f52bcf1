"""The endpoints beside replies and lists of models, in one table for each dialect: counted tokens, one model."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl
from zlib import crc32

import msgspec

from asides.dialects import model_lists
from asides.dialects.dialect import Dialect, ServedRequest
from asides.dialects.server_half import RequestFields
from asides.relay.answers.count_forms import COUNT_FORMS
from asides.relay.endpoints import (
    OLLAMA_VERSION,
    Action,
    MakeWriter,
    ReadRequest,
    find_reply_form,
    is_load_request,
    match_endpoints,
    write_load_reply,
)
from asides.values.model_info import ModelInfo
from asides_stage.stage.actor import MODEL
from asides_stage.stage.batches import AnswerRow, BatchStore
from asides_stage.stage.http_requests import Request
from asides_stage.stage.prompt_cache import CacheUse
from asides_stage.stage.request_log import RefusedRequest
from asides_stage.stage.response_plan import ResponsePlan, count_input, plan_failure, plan_json
from asides_stage.stage.rules import RequestRules
from asides_stage.stage.rules.openai_responses import IssuedResponse, ResponsesRules
from asides_stage.stage.script import Fail


class Answer(msgspec.Struct, frozen=True):
    """The answer to one request, and what the log says about it."""

    plan: ResponsePlan
    served: ServedRequest | None = None
    """The request as the dialect read it; None if it asked for no reply or could not be read."""
    problem: str | None = None
    """The reason for a refusal."""
    refusal: RefusedRequest | None = None
    """What the rules say against the request, also if a lenient stage answers it."""
    dropped: tuple[str, ...] = ()
    """Thinking that the real server would leave out without a word."""
    cache: CacheUse | None = None


class EndpointCall(msgspec.Struct, frozen=True):
    """A request for one of these endpoints."""

    request: Request
    dialect: Dialect
    names: Mapping[str, str]
    """The named groups of the path, decoded."""
    models: tuple[ModelInfo, ...]
    rules: RequestRules | None
    """The rules of the dialect, which may remember what the stage sent."""
    reply: Callable[[ReadRequest, MakeWriter], Answer]
    """Answers with the next scene of the script, for an endpoint that replies in another form of the dialect."""
    batches: BatchStore
    answer_row: AnswerRow
    """Answers a row of a batch that this request creates."""

    def refuse(self, status: int, message: str, kind: str | None = None) -> Answer:
        """Refuse in the words of the dialect."""
        return Answer(plan_failure(Fail(status=status, message=message, kind=kind), self.dialect), problem=message)


def answer_json(document: Any, status: int = 200) -> Answer:
    """Answer with this JSON document."""
    return Answer(plan_json(msgspec.json.encode(document), status))


class SideEndpoint(msgspec.Struct, frozen=True):
    """One endpoint. The handler may raise an AsidesError, which is answered with status 400."""

    method: str
    answer: Callable[[EndpointCall], Answer]


def find_endpoints(dialect: str, path: str) -> list[tuple[SideEndpoint, dict[str, str]]]:
    """Return the endpoints of a dialect at this path, one for each method, with the named parts of the path."""
    handlers = _HANDLERS.get(dialect, {})
    found = match_endpoints(dialect, path)
    if not found and path.endswith(_OWN_REPLIES):
        found = [("POST", "reply", {})]
    return [(SideEndpoint(method, handlers[action]), names) for method, action, names in found if action in handlers]


# --- every dialect with a list ----------------------------------------------------------------------------------------


def _show_model(call: EndpointCall) -> Answer:
    """Answer with the entry that the list has for one model."""
    name = call.names["model"]
    model = next((model for model in call.models if model.id == name), None)
    if model is None:
        return call.refuse(404, f"The model '{name}' does not exist.", _NO_MODEL.get(call.dialect.name))
    return answer_json(getattr(model_lists, call.dialect.name.upper()).write_entry(model))


# The kind of error for a model that does not exist, where it is not that of the status.
_NO_MODEL = {"openai_chat": "model_not_found"}


# --- every dialect that counts tokens ---------------------------------------------------------------------------------


def _count_tokens(call: EndpointCall) -> Answer:
    form = COUNT_FORMS[call.dialect.name]
    body = call.request.body
    if "model" not in call.names:
        # Here a request may lack any field.
        body = msgspec.json.encode({"model": MODEL} | _parse_object(call))
    return answer_json(form.write(count_input(form.read(body, call.names).prompt)))


# --- openai_responses -------------------------------------------------------------------------------------------------


def _compact_response(call: EndpointCall) -> Answer:
    """Keep the user's messages, and put one opaque item in place of all else. The stage does not check it later."""
    served = call.dialect.read(call.request.body, call.request.path)
    items = _parse_object(call).get("input")
    said = items if isinstance(items, list) else [{"type": "message", "role": "user", "content": items}]
    kept = [item for item in said if isinstance(item, dict) and item.get("role") == "user"]
    digest = sha256(call.request.body).hexdigest()
    item = {"id": f"cmp_{digest[:24]}", "type": "compaction", "encrypted_content": b64encode(digest.encode()).decode()}
    count = count_input(served.prompt)
    return answer_json(
        {
            "id": f"resp_{digest[:24]}",
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*kept, item],
            "usage": {"input_tokens": count, "output_tokens": 1, "total_tokens": count + 1},
        }
    )


def _parse_object(call: EndpointCall) -> dict[str, Any]:
    """Return the fields of the body that are set. Here a request may lack any of them."""
    return RequestFields.parse_body(call.request.body).remaining


def _find_response(call: EndpointCall) -> IssuedResponse | None:
    return call.rules.find_stored(call.names["response"]) if isinstance(call.rules, ResponsesRules) else None


def _refuse_response(call: EndpointCall) -> Answer:
    return call.refuse(404, f"Response with id '{call.names['response']}' not found.")


def _show_response(call: EndpointCall) -> Answer:
    found = _find_response(call)
    return _refuse_response(call) if found is None else Answer(plan_json(found.document))


def _list_response_input(call: EndpointCall) -> Answer:
    found = _find_response(call)
    if found is None:
        return _refuse_response(call)
    items = found.input if "order=asc" in call.request.query else found.input[::-1]
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    return answer_json({"object": "list", "data": items, **ends, "has_more": False})


def _delete_response(call: EndpointCall) -> Answer:
    found = _find_response(call)
    if found is None or not isinstance(call.rules, ResponsesRules):
        return _refuse_response(call)
    call.rules.delete_stored(call.names["response"])
    return answer_json({"id": call.names["response"], "object": "response", "deleted": True})


# --- gemini -----------------------------------------------------------------------------------------------------------


def _stream_content(call: EndpointCall) -> Answer:
    return call.reply(*find_reply_form(call.dialect.name, call.request.path, dict(parse_qsl(call.request.query))))


# --- cohere -----------------------------------------------------------------------------------------------------------


def _tokenize(call: EndpointCall) -> Answer:
    """Cut a text into words, each with the space before it. A word is a token, as in the counts of replies."""
    text = RequestFields.parse_body(call.request.body).take("text", str)
    if not text:
        return call.refuse(400, "invalid request: text must be at least 1 token long.")
    words = re.findall(r"\s*\S+", text)
    return answer_json({"tokens": [crc32(word.encode()) for word in words], "token_strings": words, "meta": {}})


# --- ollama -----------------------------------------------------------------------------------------------------------


def _load_or_reply(call: EndpointCall) -> Answer:
    """Answer with a scene. A request that says nothing only loads the model, or unloads it."""
    read, make_writer = find_reply_form(call.dialect.name, call.request.path.rstrip("/"), {})
    served = read(call.request.body, call.request.path)
    if not is_load_request(served, call.dialect.name):
        return call.reply(read, make_writer)
    content_type, body = write_load_reply(served, make_writer)
    return Answer(ResponsePlan(200, {"content-type": content_type}, (body,), len(body)), served)


def _show_details(call: EndpointCall) -> Answer:
    """Answer with what is known about a model."""
    fields = RequestFields.parse_body(call.request.body)
    name = fields.take("model", str) or fields.take("name", str)
    model = next((model for model in call.models if model.id == name), None)
    if model is None:
        return call.refuse(404, f"model '{name or ''}' not found")
    thinks = model.thinking is None or model.thinking.supported
    known = {} if model.context is None else {"stage.context_length": model.context}
    return answer_json(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": _DETAILS,
            "model_info": {"general.architecture": "stage", **known},
            "capabilities": ["completion", "tools", *(["thinking"] if thinks else [])],
            "modified_at": datetime.fromtimestamp(model.created or 0, UTC).isoformat(),
        }
    )


def _show_loaded(call: EndpointCall) -> Answer:
    """Answer with the models in memory: all of them."""
    loaded = [
        {
            "name": model.id,
            "model": model.id,
            "size": 0,
            "digest": "",
            "details": _DETAILS,
            "expires_at": "2100-01-01T00:00:00Z",
            "size_vram": 0,
            "context_length": model.context or 0,
        }
        for model in call.models
    ]
    return answer_json({"models": loaded})


_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "stage",
    "families": ["stage"],
    "parameter_size": "0B",
    "quantization_level": "none",
}


# Replies of these endings have handlers of their own.
_OWN_REPLIES = (":streamGenerateContent", "/api/chat")
_HANDLERS: dict[str, dict[Action, Callable[[EndpointCall], Answer]]] = {
    "anthropic": {"count_tokens": _count_tokens, "model": _show_model},
    "bedrock": {"count_tokens": _count_tokens},
    "cohere": {"tokenize": _tokenize, "model": _show_model},
    "gemini": {"reply": _stream_content, "count_tokens": _count_tokens, "model": _show_model},
    "ollama": {
        "reply": _load_or_reply,
        "model_details": _show_details,
        "loaded_models": _show_loaded,
        "version": lambda _: answer_json({"version": OLLAMA_VERSION}),
    },
    "openai_chat": {"model": _show_model},
    "openai_responses": {
        "count_tokens": _count_tokens,
        "compact": _compact_response,
        "show_response": _show_response,
        "delete_response": _delete_response,
        "list_input": _list_response_input,
    },
}
