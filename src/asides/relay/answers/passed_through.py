"""Embeddings and completions of plain text, passed through to hosts that have them: `pass_through(caller)`.

The caller's bytes go out with the model's name replaced, and the host's come back as they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.dialects.http_body import build_headers, choose_credential_header, join_url
from asides.dialects.model_lists import strip_reply_path
from asides.flows.call import Call
from asides.flows.retry import clean_error, fetch_key, receive_error
from asides.flows.steps import Emit, Flow, Head, Open, Read, UseCall
from asides.providers.credentials import KeySource, collect_secrets
from asides.providers.provider import Target
from asides.relay.error_response import RelayRefusal
from asides.relay.find_calls import find_calls
from asides.relay.forward import return_response, select_response_headers
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.routes import refuse_unnamed
from asides.relay.splice_body import splice_body
from asides.relay.whole_events import find_splitter
from asides.values.errors import AsidesError
from asides.values.messages import Prompt, user
from asides.values.redaction import build_redactor, redact_bytes
from asides.values.usage import Usage
from asides.wire.sse import SseReader

_WHAT = {"embeddings": "embeddings", "completions": "completions of plain text"}
_DIALECTS = frozenset({"openai_chat", "openai_responses"})
_USUAL_OUTPUT = 16
"""The tokens of a completion whose request sets no limit, as OpenAI documents it."""
_BYTES_PER_TOKEN = 3
_REASON = "passed through"


def pass_through(caller: Caller) -> Flow[RelayOutcome]:
    """Answer a request with what its host says. Raises RelayRefusal if the host has no such endpoint."""
    name = caller.endpoint.path.rpartition("/")[2]
    served = _read(caller.request.body, name)
    caller.show_asked(served)
    call = msgspec.structs.replace(find_calls(caller, served, {}).call, fallbacks=())
    if call.target.dialect not in _DIALECTS and _find_compatible(call.target) is None:
        raise _refuse(call.target, name)
    body = splice_body(caller.request.body, call.target.model)
    if body is None:
        raise RelayRefusal("the body is not a JSON object with each field once. Send one.")
    caller.show_target(call, "forward", _REASON)
    yield from caller.reserve(call, served, lambda: None)
    request = _build_request(call.target, name, body, stream=served.stream)
    if served.stream:
        return (yield from _stream(caller, call, request))
    outcome = yield from return_response(caller, call, request, replaces=partial(_explain_missing, call, name))
    return msgspec.structs.replace(outcome, reason=_REASON, model=call.model, asked=served.model)


# --- the request ------------------------------------------------------------------------------------------------------


def _read(body: bytes, name: str) -> ServedRequest:
    """The request as far as limits need it: its model, and how much it may use."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RelayRefusal("the body is not a JSON object. Send one with model and input, or prompt.") from None
    model = fields.pop("model", None)
    if not isinstance(model, str) or not model.strip():
        raise refuse_unnamed()
    is_completion = name == "completions"
    given = fields.pop("prompt" if is_completion else "input", "")
    if not is_completion and given in ("", [], None):
        raise RelayRefusal("input is missing. Send a text, or a list of texts.", param="input")
    most = fields.get("max_tokens") if is_completion else 1
    count = len(given) if is_completion and isinstance(given, list) and given and not _is_tokens(given) else 1
    limit = most if type(most) is int and most > 0 else _USUAL_OUTPUT
    # A completion may continue nothing.
    prompt = Prompt((user(_write_text(given).strip() or "."),), max_tokens=limit * count, extra=fields)
    return ServedRequest(prompt, model, is_completion and fields.get("stream") is True)


def _is_tokens(given: list[Any]) -> bool:
    return all(type(each) is int for each in given)


def _write_text(given: Any) -> str:
    """A text with about as many tokens as this input: a text, or tokens, or a list of either."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        return "".join("a" * _BYTES_PER_TOKEN if type(each) is int else _write_text(each) for each in given)
    return "" if given is None else str(given)


def _build_request(target: Target, name: str, body: bytes, *, stream: bool) -> HttpRequest:
    base = _find_compatible(target)
    path = strip_reply_path(target) if base is None else base
    headers = build_headers(target, "text/event-stream" if stream else "application/json")
    return HttpRequest("POST", join_url(target, f"{path}/{name}"), headers, body, choose_credential_header(target))


def _find_compatible(target: Target) -> str | None:
    """The path of OpenAI's endpoints beside those of another dialect; None: not known."""
    if target.dialect != "ollama":
        return None
    path = strip_reply_path(target)
    for end in ("/chat", "/api", "/v1"):
        path = path.removesuffix(end)
    return f"{path}/v1"


def _refuse(target: Target, name: str) -> RelayRefusal:
    row = target.provider
    return RelayRefusal(
        f"{row.title or row.name} has no {_WHAT[name]} in OpenAI's form. Name a model of a host that has them, as "
        "provider:model.",
        status=501,
        code="unsupported_endpoint",
        param="model",
    )


def _explain_missing(call: Call, name: str, head: Head) -> RelayRefusal | None:
    """The error for a host that does not know the path; one that speaks JSON says itself what is missing."""
    is_json = head.headers.get("content-type", "").startswith("application/json")
    return _refuse(call.target, name) if head.status in (404, 405) and not is_json else None


# --- streams of completions -------------------------------------------------------------------------------------------


class _Counter:
    """What a stream of completions used, as far as it says."""

    def __init__(self) -> None:
        self._reader: SseReader | None = SseReader()
        self._usage = Usage()
        self._written = 0

    def feed(self, data: bytes) -> None:
        try:
            for document in [] if self._reader is None else self._reader.feed(data):
                self._read(document)
        except AsidesError:
            self._reader = None  # No events: what was counted so far counts.

    def _read(self, document: bytes) -> None:
        try:
            found = msgspec.json.decode(document)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(found, dict):
            return
        match found.get("usage"):
            case {"prompt_tokens": int(sent), "completion_tokens": int(received)}:
                self._usage = Usage(sent, received)
            case _:
                pass
        choices = found.get("choices")
        texts = [each.get("text") for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []
        self._written += sum(len(text.encode(errors="replace")) for text in texts if isinstance(text, str))

    @property
    def usage(self) -> Usage:
        """The reported counts, else those of the text that came."""
        return self._usage if self._usage.output is not None else Usage(None, self._written // _BYTES_PER_TOKEN)


def _stream(caller: Caller, call: Call, request: HttpRequest) -> Flow[RelayOutcome]:
    yield UseCall(call)
    if isinstance(call.key, KeySource):
        yield from fetch_key(call.key)
    redact = build_redactor(collect_secrets(call.target, call.key))
    counter = _Counter()
    try:
        caller.count_request(request)
        head: Head = yield Open(request)
        if (missing := _explain_missing(call, "completions", head)) is not None:
            raise missing
        if not 200 <= head.status < 300:
            raise (yield from receive_error(find_dialect(call.target.dialect), head, call.target))
        headers = {**select_response_headers(head.headers, redact), **STREAM_HEADERS}
        splitter = find_splitter(head.headers.get("content-type", ""))
        start: list[Any] = caller.start(head.status, headers)
        while data := (yield Read()):
            counter.feed(data)
            if whole := splitter.feed(data):
                yield Emit([*start, redact_bytes(whole, redact)])
                start = []
        if last := [*start, *([redact_bytes(rest, redact)] if (rest := splitter.flush()) else [])]:
            yield Emit(last)
    except AsidesError as error:
        clean_error(error, call.target, call.key)
        raise
    if caller.use is not None:
        yield from caller.use.settle_usage(counter.usage)
    return RelayOutcome(head.status, "forward", _REASON, call.model)
