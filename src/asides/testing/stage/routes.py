"""Chooses the answer to a request: the script's reply, the list of models, or an error. Not here: sending it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, ServedRequest
from asides.testing.stage.http_requests import Request
from asides.testing.stage.request_log import Received, RequestLog
from asides.testing.stage.response_plan import ResponsePlan, plan_failure, plan_json, plan_response
from asides.testing.stage.rules import RulesByDialect
from asides.testing.stage.script import Fail, Scene
from asides.values.errors import AsidesError
from asides.values.model_info import ModelInfo

# The ends of the paths for replies, and their dialects.
_REPLY_PATHS = {
    "/messages": "anthropic",
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
    "/converse": "bedrock",
    "/converse-stream": "bedrock",
    "/api/chat": "ollama",
    "/chat": "cohere",
}
_PLAIN_DIALECT = "openai_chat"
_KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
_WRONG_KEY = "the key is missing or is not the one this stage was given."

_Answer: TypeAlias = tuple[ResponsePlan, ServedRequest | None, str | None]
"""The response, the request as the dialect read it, and why it was refused."""


class Routes:
    """Answers the requests of one stage and logs them."""

    def __init__(
        self,
        script: Callable[[ServedRequest], Scene],
        log: RequestLog,
        *,
        key: str | None,
        models: Sequence[str | ModelInfo],
        dialect: str | None = None,
    ) -> None:
        """`dialect`: the dialect of every reply, whatever the path."""
        self._script = script
        self._log = log
        self._key = key
        self._models = tuple(ModelInfo(model) if isinstance(model, str) else model for model in models)
        self._numbers = count(1)
        self._rules = RulesByDialect()
        self._dialect = dialect
        # Registered dialects come before ours: their authors know the paths.
        self._reply_paths = {**_read_registered_paths("reply_paths"), **_REPLY_PATHS}
        self._list_paths = _read_registered_paths("list_paths")

    def answer(self, request: Request) -> ResponsePlan:
        """Plan the response to this request, and log both before a byte is sent."""
        plan, served, problem = self._route(request)
        self._log.record_request(Received(request.method, request.path, request.headers, request.body, served, problem))
        headers = {"x-request-id": f"stage-{next(self._numbers)}", **plan.headers}
        return msgspec.structs.replace(plan, headers=headers)

    def _route(self, request: Request) -> _Answer:
        path = request.path.rstrip("/") or "/"
        if path in ("/", "/health"):
            return _answer_get(request, lambda: msgspec.json.encode({"status": "ok", "server": "asides stage"}))
        if (lists := _match_ending(path, self._list_paths) or _find_list_dialect(path, request)) is not None:
            return self._list_models(request, dialects.find_dialect(lists))
        name = self._dialect or _match_ending(path, self._reply_paths)
        if name is None:
            paths = ", ".join(f"…{ending}" for ending in self._reply_paths)
            return _refuse(404, f"the stage has nothing at {request.path}; it answers {paths}, …/models and /health.")
        dialect = dialects.find_dialect(name)
        if not self._has_key(request):
            return _refuse(401, _WRONG_KEY, dialect)
        if request.method != "POST":
            return _refuse_method(request, ("POST",), dialect)
        return self._reply(request, dialect)

    def _reply(self, request: Request, dialect: Dialect) -> _Answer:
        try:
            served = dialect.read(request.body, request.path)
        except AsidesError as problem:
            return _refuse(400, str(problem), dialect)
        rules = self._rules.find(dialect.name)
        if rules is not None and (refusal := rules.refuse(request)) is not None:
            return plan_failure(Fail(status=400, message=refusal), dialect), served, refusal
        seal = None if rules is None else partial(rules.seal, request=request)
        try:
            return plan_response(self._script(served), served, dialect, seal), served, None
        except Exception as problem:  # noqa: BLE001 - whatever a script raises must reach the test, not die in a thread
            self._log.record_problem(problem)
            message = f"the stage's script raised {type(problem).__name__}; closing the stage raises it again."
            return plan_failure(Fail(status=500, message=message), dialect), served, message

    def _has_key(self, request: Request) -> bool:
        if self._key is None:
            return True
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            sent = next((request.headers[name] for name in _KEY_HEADERS if name in request.headers), "")
        return hmac.compare_digest(sent.strip().encode(), self._key.encode())

    def _list_models(self, request: Request, dialect: Dialect) -> _Answer:
        if not self._has_key(request):
            return _refuse(401, _WRONG_KEY, dialect)
        query = dict(parse_qsl(request.query))
        return _answer_get(request, lambda: dialect.write_models(self._models, query), dialect)


def _match_ending(path: str, endings: Mapping[str, str]) -> str | None:
    return next((name for ending, name in endings.items() if path.endswith(ending)), None)


def _read_registered_paths(attribute: Literal["reply_paths", "list_paths"]) -> dict[str, str]:
    """Return the path endings that registered dialects name as theirs."""
    return {
        ending: name
        for name in dialects.list_third_party()
        for ending in getattr(dialects.find_dialect(name), attribute, ())
    }


def _find_list_dialect(path: str, request: Request) -> str | None:
    """Return the dialect of a request for the list of models. Most share one path and differ in headers and query."""
    if path.endswith("/api/tags"):
        return "ollama"
    if not path.endswith("/models"):
        return None
    query = dict(parse_qsl(request.query))
    if "anthropic-version" in request.headers:
        return "anthropic"
    if "x-goog-api-key" in request.headers or "pageSize" in query:
        return "gemini"
    return "cohere" if "endpoint" in query else _PLAIN_DIALECT


def _answer_get(request: Request, write: Callable[[], bytes], dialect: Dialect | None = None) -> _Answer:
    if request.method not in ("GET", "HEAD"):
        return _refuse_method(request, ("GET", "HEAD"), dialect)
    return plan_json(write()), None, None


def _refuse_method(request: Request, allowed: tuple[str, ...], dialect: Dialect | None) -> _Answer:
    message = f"{request.path} takes {' or '.join(allowed)}, not {request.method}."
    plan, _, _ = _refuse(405, message, dialect)
    return msgspec.structs.replace(plan, headers={"allow": ", ".join(allowed), **plan.headers}), None, message


def _refuse(status: int, message: str, dialect: Dialect | None = None) -> _Answer:
    """Plan an error in this dialect; in chat completions if the request named none."""
    failure = Fail(status=status, message=message)
    return plan_failure(failure, dialect or dialects.find_dialect(_PLAIN_DIALECT)), None, message
