"""The endpoints beside replies and lists of models, in one table for each dialect: counted tokens, one model.

Not here: the dialect that a request speaks, replies, and lists (routes).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

from asides.dialects import model_list_formats
from asides.dialects.dialect import Dialect, ServedRequest, Writer
from asides.dialects.server_half import RequestFields
from asides.testing.stage.actor import MODEL
from asides.testing.stage.http_requests import Request
from asides.testing.stage.response_plan import ResponsePlan, count_input, plan_failure, plan_json
from asides.testing.stage.rules import RequestRules
from asides.testing.stage.rules.openai_responses import IssuedResponse, ResponsesRules
from asides.testing.stage.script import Fail
from asides.values.model_info import ModelInfo


class Answer(msgspec.Struct, frozen=True):
    """The answer to one request, and what the log says about it."""

    plan: ResponsePlan
    served: ServedRequest | None = None
    """The request as the dialect read it; None if it asked for no reply or could not be read."""
    problem: str | None = None
    """The reason for a refusal."""


ReadRequest: TypeAlias = Callable[[bytes, str], ServedRequest]
MakeWriter: TypeAlias = Callable[..., Writer]
"""Called as `Dialect.writer` is, with the names model, stream and include_usage."""


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

    def refuse(self, status: int, message: str, kind: str | None = None) -> Answer:
        """Refuse in the words of the dialect."""
        return Answer(plan_failure(Fail(status=status, message=message, kind=kind), self.dialect), problem=message)


class Endpoint(msgspec.Struct, frozen=True):
    """One endpoint. The handler may raise an AsidesError, which is answered with status 400."""

    method: str
    path: re.Pattern[str]
    """Searched in the path without its query and its last slash."""
    answer: Callable[[EndpointCall], Answer]


def answer_json(document: Any, status: int = 200) -> Answer:
    """Answer with this JSON document."""
    return Answer(plan_json(msgspec.json.encode(document), status))


def find_endpoints(dialect: str, path: str) -> list[tuple[Endpoint, dict[str, str]]]:
    """Return the endpoints of a dialect at this path, one for each method, with the named groups of the path."""
    found = [(endpoint, endpoint.path.search(path)) for endpoint in _ENDPOINTS.get(dialect, ())]
    return [
        (endpoint, {name: unquote(value) for name, value in match.groupdict().items()})
        for endpoint, match in found
        if match is not None
    ]


# --- every dialect with a list ----------------------------------------------------------------------------------------


def _show_model(call: EndpointCall) -> Answer:
    """Answer with the entry that the list has for one model."""
    name = call.names["model"]
    model = next((model for model in call.models if model.id == name), None)
    if model is None:
        return call.refuse(404, f"The model '{name}' does not exist.", _NO_MODEL.get(call.dialect.name))
    return answer_json(getattr(model_list_formats, call.dialect.name.upper()).write_entry(model))


# The kind of error for a model that does not exist, where it is not that of the status.
_NO_MODEL = {"openai_chat": "model_not_found"}
_MODEL = Endpoint("GET", re.compile(r"/models/(?P<model>[^:]+)$"), _show_model)


# --- anthropic --------------------------------------------------------------------------------------------------------


def _count_message_tokens(call: EndpointCall) -> Answer:
    served = call.dialect.read(call.request.body, call.request.path)
    return answer_json({"input_tokens": count_input(served.prompt)})


# --- openai_responses -------------------------------------------------------------------------------------------------


def _count_response_tokens(call: EndpointCall) -> Answer:
    body = msgspec.json.encode({"model": MODEL, "input": [{"role": "user", "content": ""}]} | _parse_object(call))
    served = call.dialect.read(body, call.request.path)
    return answer_json({"object": "response.input_tokens", "input_tokens": count_input(served.prompt)})


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


_RESPONSE = re.compile(r"/responses/(?P<response>(?!input_tokens$)[^/]+)$")


_ENDPOINTS: dict[str, tuple[Endpoint, ...]] = {
    "anthropic": (Endpoint("POST", re.compile(r"/messages/count_tokens$"), _count_message_tokens), _MODEL),
    "openai_chat": (_MODEL,),
    "openai_responses": (
        Endpoint("POST", re.compile(r"/responses/input_tokens$"), _count_response_tokens),
        Endpoint("GET", _RESPONSE, _show_response),
        Endpoint("DELETE", _RESPONSE, _delete_response),
        Endpoint("GET", re.compile(r"/responses/(?P<response>[^/]+)/input_items$"), _list_response_input),
    ),
}
