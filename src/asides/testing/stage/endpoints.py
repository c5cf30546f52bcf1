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
from asides.testing.stage.http_requests import Request
from asides.testing.stage.response_plan import ResponsePlan, count_input, plan_failure, plan_json
from asides.testing.stage.rules import RequestRules
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
    served = call.dialect.read(call.request.body, call.request.path)
    return answer_json({"object": "response.input_tokens", "input_tokens": count_input(served.prompt)})


_ENDPOINTS: dict[str, tuple[Endpoint, ...]] = {
    "anthropic": (Endpoint("POST", re.compile(r"/messages/count_tokens$"), _count_message_tokens), _MODEL),
    "openai_chat": (_MODEL,),
    "openai_responses": (Endpoint("POST", re.compile(r"/responses/input_tokens$"), _count_response_tokens),),
}
