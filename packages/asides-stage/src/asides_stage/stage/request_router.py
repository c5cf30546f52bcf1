"""Chooses the answer to a request: the script's reply, the list of models, another endpoint, or an error.

Every error is written in the dialect that the request speaks.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from itertools import count
from urllib.parse import parse_qsl

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, ServedRequest
from asides.relay.endpoints import (
    LIST_PATHS,
    PLAIN_DIALECT,
    MakeWriter,
    ReadRequest,
    find_other_dialect,
    list_reply_paths,
    match_ending,
    name_request_id_header,
    read_registered_paths,
)
from asides.values.errors import AsidesError
from asides.values.model_info import ModelInfo
from asides_stage.stage.batches import BatchStore
from asides_stage.stage.batches.find_batch_endpoint import answer_row, find_batch_endpoints, is_upload
from asides_stage.stage.http_requests import BrokenRequest, Request
from asides_stage.stage.prompt_cache import PromptCache
from asides_stage.stage.request_log import Received, RefusedRequest, RequestLog
from asides_stage.stage.response_plan import ResponsePlan, plan_failure, plan_json, plan_response
from asides_stage.stage.rules import DetailedRefusal, RequestRules, RulesByDialect, read_account, read_credential
from asides_stage.stage.script import Fail, Scene
from asides_stage.stage.side_endpoints import Answer, EndpointCall, find_endpoints

# What a reader or a rule raises that trusted the type of a field.
_MALFORMED = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
# The kind of error for a wrong key, where it is not that of the status.
_WRONG_KEY_KINDS = {"openai_chat": "invalid_api_key", "openai_responses": "invalid_api_key"}
_WRONG_KEY = "the key is missing or is not the one this stage was given."


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
        lenient: bool = False,
        today: date | None = None,
        reports_cache: bool = False,
        batches: BatchStore | None = None,
        secret: bytes | None = None,
    ) -> None:
        """`dialect`: the dialect of every reply, whatever the path. `lenient`: answer what the rules refuse, too.
        `reports_cache`: put what the prompt cache did into the counts of replies. `secret`: signs the seals."""
        self._script = script
        self._log = log
        self._key = key
        self._models = tuple(ModelInfo(model) if isinstance(model, str) else model for model in models)
        self._numbers = count(1)
        self._rules = RulesByDialect(today, secret)
        self._cache = PromptCache()
        self._reports_cache = reports_cache
        self._lenient = lenient
        self._dialect = dialect
        self._batches = batches or BatchStore()
        self._reply_paths = list_reply_paths()
        self._list_paths = read_registered_paths("list_paths")

    def answer(self, request: Request) -> ResponsePlan:
        """Plan the response to this request, and log both before a byte is sent."""
        path = request.path.rstrip("/") or "/"
        dialect = self._find_dialect(path, request)
        answer = self._route(path, request, dialect)
        self._log.record_request(
            Received(
                method=request.method,
                path=request.path,
                headers=request.headers,
                body=request.body,
                served=answer.served,
                problem=answer.problem,
                query=request.query,
                refusal=answer.refusal,
                dropped=answer.dropped,
                cache=answer.cache,
            )
        )
        return self._add_request_id(answer.plan, dialect)

    def refuse_broken(self, problem: BrokenRequest) -> ResponsePlan:
        """Plan the response to bytes that are not a valid request, in the dialect of their path if they name one."""
        head = problem.head
        dialect = self._find_dialect(head.path.rstrip("/"), head) if head else dialects.find_dialect(PLAIN_DIALECT)
        return self._add_request_id(_refuse(problem.status, str(problem), dialect).plan, dialect)

    def _add_request_id(self, plan: ResponsePlan, dialect: Dialect) -> ResponsePlan:
        name = name_request_id_header(dialect.name)
        return msgspec.structs.replace(plan, headers={name: f"stage-{next(self._numbers)}", **plan.headers})

    def _find_dialect(self, path: str, request: Request) -> Dialect:
        """Return the dialect that a request speaks, whether or not there is anything at its path."""
        name = (
            match_ending(path, self._list_paths)
            or ("gemini" if is_upload(path, request.query) else None)
            or (self._dialect if not path.endswith(LIST_PATHS) else None)
            or match_ending(path, self._reply_paths)
            or find_other_dialect(path, dict(parse_qsl(request.query)), request.headers)
        )
        return dialects.find_dialect(name)

    def _route(self, path: str, request: Request, dialect: Dialect) -> Answer:
        if path in ("/", "/health"):
            status = msgspec.json.encode({"status": "ok", "server": "asides stage"})
            return _answer_get(request, lambda: status, dialect)
        is_list = path.endswith(LIST_PATHS) or match_ending(path, self._list_paths) is not None
        is_reply = self._dialect is not None or match_ending(path, self._reply_paths) is not None
        endpoints = find_endpoints(dialect.name, path) or find_batch_endpoints(dialect.name, path)
        if not (is_list or is_reply or endpoints):
            paths = ", ".join(f"…{ending}" for ending in self._reply_paths)
            message = f"the stage has nothing at {request.path}; it answers {paths}, …/models and /health."
            return _refuse(404, message, dialect)
        if not (self._has_key(request) or is_upload(path, request.query)):
            return _refuse(401, _WRONG_KEY, dialect, _WRONG_KEY_KINDS.get(dialect.name))
        if is_list:
            query = dict(parse_qsl(request.query))
            return _answer_get(request, lambda: dialect.write_models(self._models, query), dialect)
        for endpoint, names in endpoints:
            if endpoint.method == request.method:
                reply = partial(self._reply, request, dialect)
                rules = self._rules.find(dialect.name)
                row = partial(answer_row, self._answer_row, request)
                call = EndpointCall(request, dialect, names, self._models, rules, reply, self._batches, row)
                try:
                    return endpoint.answer(call)
                except AsidesError as problem:
                    return _refuse(400, str(problem), dialect)
                except _MALFORMED:
                    return _refuse(400, "a field of the request has an unexpected type.", dialect)
        if endpoints or request.method != "POST":
            return _refuse_method(request, tuple(endpoint.method for endpoint, _ in endpoints) or ("POST",), dialect)
        return self._reply(request, dialect, dialect.read, dialect.writer)

    def _answer_row(self, request: Request) -> Answer:
        """Answer a row of a batch as the request that it is."""
        dialect = self._find_dialect(request.path, request)
        return self._reply(request, dialect, dialect.read, dialect.writer)

    def _reply(self, request: Request, dialect: Dialect, read: ReadRequest, writer: MakeWriter) -> Answer:
        rules = self._rules.find(dialect.name)
        refusal, served, unreadable = self._read(request, rules, read)
        refused = None
        if refusal is not None and (served is not None or isinstance(refusal, DetailedRefusal)):
            plan = _plan_refusal(refusal, dialect)
            refused = _describe_refusal(refusal, plan, request)
            if not self._lenient:
                return Answer(plan, served, str(refusal), refused)
        if served is None or unreadable is not None:
            answer = _refuse(400, unreadable or "the request cannot be read.", dialect)
            return msgspec.structs.replace(answer, refusal=refused)
        # Only some dialects have thinking that is dropped in silence.
        dropped = tuple(f"{one.path}: {one.reason}" for one in getattr(rules, "dropped", ()))
        cache = self._cache.use(dialect.name, read_account(request), served.model, msgspec.json.decode(request.body))
        seal = None if rules is None else partial(rules.seal, request=request)
        try:
            reported = cache if self._reports_cache else None
            plan = plan_response(self._script(served), served, dialect, seal, writer, reported)
            return Answer(plan, served, None, refused, dropped, cache)
        except Exception as problem:  # noqa: BLE001 - whatever a script raises must reach the test, not die in a thread
            self._log.record_problem(problem)
            message = f"the stage's script raised {type(problem).__name__}; closing the stage raises it again."
            return Answer(plan_failure(Fail(status=500, message=message), dialect), served, message, refused)

    def _read(
        self, request: Request, rules: RequestRules | None, read: ReadRequest
    ) -> tuple[str | None, ServedRequest | None, str | None]:
        """Return what the rules say against a request, the request as it was read, and why it cannot be answered.

        The rules look first: their words are the real servers', and the reader's are ours.
        """
        refusal, served, problem = None, None, None
        try:
            refusal = None if rules is None else rules.refuse(request)
        except _MALFORMED:
            problem = None if self._lenient else "a field of the request has an unexpected type."
        try:
            served = read(request.body, request.path)
        except AsidesError as unreadable:
            problem = str(unreadable)
        except _MALFORMED:
            problem = "a field of the request has an unexpected type."
        return refusal, served, problem

    def _has_key(self, request: Request) -> bool:
        if self._key is None:
            return True
        return hmac.compare_digest(read_credential(request).encode(), self._key.encode())


def _plan_refusal(refusal: str, dialect: Dialect) -> ResponsePlan:
    """Plan the error for a request that the rules refuse."""
    if not isinstance(refusal, DetailedRefusal):
        return plan_failure(Fail(status=400, message=refusal), dialect)
    if refusal.status == 200 and refusal.body is not None:
        return ResponsePlan(200, {"content-type": "text/event-stream"}, (refusal.body,))
    body = None if refusal.body is None else refusal.body.decode()
    return plan_failure(Fail(status=refusal.status, message=str(refusal), body=body), dialect)


def _describe_refusal(refusal: str, plan: ResponsePlan, request: Request) -> RefusedRequest:
    kind = refusal.kind if isinstance(refusal, DetailedRefusal) else None
    # The log fills in the number.
    return RefusedRequest(str(refusal), kind, plan.status or 0, b"".join(plan.pieces), request.path, 0)


def _answer_get(request: Request, write: Callable[[], bytes], dialect: Dialect) -> Answer:
    if request.method not in ("GET", "HEAD"):
        return _refuse_method(request, ("GET", "HEAD"), dialect)
    return Answer(plan_json(write()))


def _refuse_method(request: Request, allowed: tuple[str, ...], dialect: Dialect) -> Answer:
    message = f"{request.path} takes {' or '.join(allowed)}, not {request.method}."
    plan = _refuse(405, message, dialect).plan
    return Answer(msgspec.structs.replace(plan, headers={"allow": ", ".join(allowed), **plan.headers}), problem=message)


def _refuse(status: int, message: str, dialect: Dialect, kind: str | None = None) -> Answer:
    """Plan an error in this dialect."""
    return Answer(plan_failure(Fail(status=status, message=message, kind=kind), dialect), problem=message)
