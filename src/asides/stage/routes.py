"""Which answer a request gets: the script's reply, the list of models, or a refusal. Not here: how it is sent."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from itertools import count

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, ServedRequest
from asides.errors import AsidesError
from asides.stage.http_requests import Request
from asides.stage.ledger import Ledger, Received
from asides.stage.performance import Performance, document, fail, perform
from asides.stage.script import Fail, Scene

# The end of the path that asks for a reply, and the dialect that it is asked in.
REPLIES = {"/chat/completions": "openai_chat"}
_PLAIN_DIALECT = "openai_chat"


class Routes:
    """The stage's front desk."""

    def __init__(
        self, script: Callable[[ServedRequest], Scene], ledger: Ledger, *, key: str | None, models: Sequence[str]
    ) -> None:
        self._script = script
        self._ledger = ledger
        self._key = key
        self._models = tuple(models)
        self._numbers = count(1)

    def answer(self, request: Request) -> Performance:
        """The answer to this request; both are in the ledger before a byte is sent."""
        performance, served, problem = self._find(request)
        received = Received(request.method, request.path, request.headers, request.body, served, problem)
        self._ledger.note_request(received)
        headers = {"x-request-id": f"stage-{next(self._numbers)}", **performance.headers}
        return msgspec.structs.replace(performance, headers=headers)

    def _find(self, request: Request) -> tuple[Performance, ServedRequest | None, str | None]:
        path = request.path.rstrip("/") or "/"
        if path in ("/", "/health"):
            return self._only(("GET", "HEAD"), request, lambda: document({"status": "ok", "server": "asides stage"}))
        name = next((name for ending, name in REPLIES.items() if path.endswith(ending)), None)
        if name is None and not path.endswith("/models"):
            paths = ", ".join(f"…{ending}" for ending in REPLIES)
            return _turn_away(
                404, f"the stage has nothing at {request.path}; it answers {paths}, …/models and /health."
            )
        dialect = dialects.find(name or _PLAIN_DIALECT)
        if not self._may_enter(request):
            return _turn_away(401, "the key is missing or is not the one this stage was given.", dialect)
        if name is None:
            return self._only(("GET", "HEAD"), request, self._list_models, dialect)
        if request.method != "POST":
            return _wrong_method(("POST",), request, dialect)
        return self._reply(request, dialect)

    def _reply(self, request: Request, dialect: Dialect) -> tuple[Performance, ServedRequest | None, str | None]:
        try:
            served = dialect.read(request.body)
        except AsidesError as problem:
            return _turn_away(400, str(problem), dialect)
        try:
            return perform(self._script(served), served, dialect), served, None
        except Exception as problem:  # noqa: BLE001 - whatever a script raises must reach the test, not die in a thread
            self._ledger.note_problem(problem)
            told = f"the stage's script raised {type(problem).__name__}; closing the stage raises it again."
            return fail(Fail(status=500, message=told), dialect), served, told

    def _may_enter(self, request: Request) -> bool:
        if self._key is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = request.headers.get("x-api-key", "") or request.headers.get("api-key", "")
        return hmac.compare_digest(given.strip().encode(), self._key.encode())

    def _list_models(self) -> Performance:
        models = [{"id": model, "object": "model", "created": 0, "owned_by": "asides"} for model in self._models]
        return document({"object": "list", "data": models})

    def _only(
        self,
        methods: tuple[str, ...],
        request: Request,
        answer: Callable[[], Performance],
        dialect: Dialect | None = None,
    ) -> tuple[Performance, None, str | None]:
        if request.method not in methods:
            return _wrong_method(methods, request, dialect)
        return answer(), None, None


def _wrong_method(methods: tuple[str, ...], request: Request, dialect: Dialect | None) -> tuple[Performance, None, str]:
    told = f"{request.path} is asked with {' or '.join(methods)}, not with {request.method}."
    performance, _, _ = _turn_away(405, told, dialect)
    return (
        msgspec.structs.replace(performance, headers={"allow": ", ".join(methods), **performance.headers}),
        None,
        told,
    )


def _turn_away(status: int, message: str, dialect: Dialect | None = None) -> tuple[Performance, None, str]:
    """An error in the words of the dialect; of the plainest one where the request named none."""
    return fail(Fail(status=status, message=message), dialect or dialects.find(_PLAIN_DIALECT)), None, message
