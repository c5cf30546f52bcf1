"""Which answer a request gets: the script's reply, the list of models, or a refusal. Not here: how it is sent."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Literal
from urllib.parse import parse_qsl

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, ServedRequest
from asides.testing.stage.http_requests import Request
from asides.testing.stage.request_log import Received, RequestLog
from asides.testing.stage.response_plan import ResponsePlan, document, fail, of_bytes, perform
from asides.testing.stage.rules import RulesByDialect
from asides.testing.stage.script import Fail, Scene
from asides.values.errors import AsidesError
from asides.values.model_info import ModelInfo

# The end of the path that asks for a reply, and the dialect that it is asked in.
REPLIES = {
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


class Routes:
    """The stage's front desk."""

    def __init__(
        self,
        script: Callable[[ServedRequest], Scene],
        ledger: RequestLog,
        *,
        key: str | None,
        models: Sequence[str | ModelInfo],
        dialect: str | None = None,
    ) -> None:
        """`dialect`: the one that every reply is asked for in, whatever the path."""
        self._script = script
        self._ledger = ledger
        self._key = key
        self._models = tuple(ModelInfo(model) if isinstance(model, str) else model for model in models)
        self._numbers = count(1)
        self._houses = RulesByDialect()
        self._dialect = dialect
        # Before ours: whoever registers a dialect knows where it is spoken.
        self._replies = {**_paths_of_others("reply_paths"), **REPLIES}
        self._lists = _paths_of_others("list_paths")

    def answer(self, request: Request) -> ResponsePlan:
        """The answer to this request; both are in the ledger before a byte is sent."""
        performance, served, problem = self._find(request)
        received = Received(request.method, request.path, request.headers, request.body, served, problem)
        self._ledger.note_request(received)
        headers = {"x-request-id": f"stage-{next(self._numbers)}", **performance.headers}
        return msgspec.structs.replace(performance, headers=headers)

    def _find(self, request: Request) -> tuple[ResponsePlan, ServedRequest | None, str | None]:
        path = request.path.rstrip("/") or "/"
        if path in ("/", "/health"):
            return self._only(("GET", "HEAD"), request, lambda: document({"status": "ok", "server": "asides stage"}))
        if (lists := self._lister(path, request)) is not None:
            return self._list_models(request, dialects.find_dialect(lists))
        name = self._dialect or _at(path, self._replies)
        if name is None:
            paths = ", ".join(f"…{ending}" for ending in self._replies)
            return _turn_away(
                404, f"the stage has nothing at {request.path}; it answers {paths}, …/models and /health."
            )
        dialect = dialects.find_dialect(name)
        if not self._may_enter(request):
            return _turn_away(401, _WRONG_KEY, dialect)
        if request.method != "POST":
            return _wrong_method(("POST",), request, dialect)
        return self._reply(request, dialect)

    def _reply(self, request: Request, dialect: Dialect) -> tuple[ResponsePlan, ServedRequest | None, str | None]:
        try:
            served = dialect.read(request.body, request.path)
        except AsidesError as problem:
            return _turn_away(400, str(problem), dialect)
        house = self._houses.of(dialect.name)
        if house is not None and (refusal := house.refuse(request)) is not None:
            return fail(Fail(status=400, message=refusal), dialect), served, refusal
        sealing = None if house is None else partial(house.seal, request=request)
        try:
            return perform(self._script(served), served, dialect, sealing), served, None
        except Exception as problem:  # noqa: BLE001 - whatever a script raises must reach the test, not die in a thread
            self._ledger.note_problem(problem)
            told = f"the stage's script raised {type(problem).__name__}; closing the stage raises it again."
            return fail(Fail(status=500, message=told), dialect), served, told

    def _may_enter(self, request: Request) -> bool:
        if self._key is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = next((request.headers[name] for name in _KEY_HEADERS if name in request.headers), "")
        return hmac.compare_digest(given.strip().encode(), self._key.encode())

    def _list_models(self, request: Request, dialect: Dialect) -> tuple[ResponsePlan, None, str | None]:
        if not self._may_enter(request):
            return _turn_away(401, _WRONG_KEY, dialect)
        query = dict(parse_qsl(request.query))
        return self._only(
            ("GET", "HEAD"), request, lambda: of_bytes(dialect.write_models(self._models, query)), dialect
        )

    def _lister(self, path: str, request: Request) -> str | None:
        return _at(path, self._lists) or _lister(path, request)

    def _only(
        self,
        methods: tuple[str, ...],
        request: Request,
        answer: Callable[[], ResponsePlan],
        dialect: Dialect | None = None,
    ) -> tuple[ResponsePlan, None, str | None]:
        if request.method not in methods:
            return _wrong_method(methods, request, dialect)
        return answer(), None, None


def _at(path: str, endings: Mapping[str, str]) -> str | None:
    return next((name for ending, name in endings.items() if path.endswith(ending)), None)


def _paths_of_others(attribute: Literal["reply_paths", "list_paths"]) -> dict[str, str]:
    """The ends of paths that dialects which are not ours name as theirs."""
    return {
        ending: name
        for name in dialects.list_third_party()
        for ending in getattr(dialects.find_dialect(name), attribute, ())
    }


def _lister(path: str, request: Request) -> str | None:
    """The dialect in which the list of models is asked for: most ask at one path, and differ in what they bring."""
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


def _wrong_method(
    methods: tuple[str, ...], request: Request, dialect: Dialect | None
) -> tuple[ResponsePlan, None, str]:
    told = f"{request.path} is asked with {' or '.join(methods)}, not with {request.method}."
    performance, _, _ = _turn_away(405, told, dialect)
    return (
        msgspec.structs.replace(performance, headers={"allow": ", ".join(methods), **performance.headers}),
        None,
        told,
    )


def _turn_away(status: int, message: str, dialect: Dialect | None = None) -> tuple[ResponsePlan, None, str]:
    """An error in the words of the dialect; of the plainest one where the request named none."""
    return fail(Fail(status=status, message=message), dialect or dialects.find_dialect(_PLAIN_DIALECT)), None, message
