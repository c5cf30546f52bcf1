"""The bodies of errors at hosts of chat completions: an object, a list, a sentence, or JSON inside of a sentence.

Each form is that of public reports, which the table of hosts names. Not here: the words (message_rules, host_settings).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import uuid4

import msgspec

from asides.testing.stage.rules import DetailedRefusal, Rule

_BAD_REQUEST = "invalid_request_error"


WriteBody: TypeAlias = Callable[["Fault"], bytes]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a request breaks, in the words of the server."""

    kind: str | None
    text: str
    status: int = 400
    param: str | None = None
    code: str | None = None
    input: Any = None
    """The value that is refused, at a host that quotes it."""
    write: WriteBody | None = None
    """Writes the body, if it differs from the others of the host."""
    in_stream: bool = False
    """Whether it comes inside of the stream, if one was asked for."""

    def refuse(self, body: bytes) -> DetailedRefusal:
        """Return the refusal with this body."""
        return DetailedRefusal(self.text, body, status=self.status, kind=self.kind)


class HostRule(Rule, frozen=True, kw_only=True):
    """A rule with the fields that the error names."""

    param: str | None = None
    """The field of the request, with {names} for what changes."""
    code: str | None = None
    write: WriteBody | None = None
    """Writes the body, if it differs from the others of the host."""
    in_stream: bool = False
    """Whether it comes inside of the stream, if one was asked for."""

    def fault(self, *, quoted: Any = None, **names: object) -> Fault:
        """Return the fault with these names filled in."""
        param = None if self.param is None else self.param.format(**names)
        text = self.text.format(**names)
        return Fault(
            kind=self.kind or None,
            text=text,
            status=self.status,
            param=param,
            code=self.code,
            input=quoted,
            write=self.write,
            in_stream=self.in_stream,
        )


def _encode(document: object) -> bytes:
    return msgspec.json.encode(document)


def write_openai(fault: Fault) -> bytes:
    """OpenAI, and most hosts that copy it."""
    error = {"message": fault.text, "type": _BAD_REQUEST, "param": fault.param, "code": fault.code}
    return _encode({"error": error})


def write_short(fault: Fault) -> bytes:
    """OpenAI's object without the field and the code."""
    return _encode({"error": {"message": fault.text, "type": _BAD_REQUEST}})


def write_code_only(fault: Fault) -> bytes:
    """An object with nothing but a number and a sentence."""
    return _encode({"error": {"code": fault.code or "1210", "message": fault.text}})


def write_param_text(fault: Fault) -> bytes:
    """The sentence is where others name the field."""
    return _encode(
        {"error": {"code": str(fault.status), "message": "Param Incorrect", "param": fault.text, "type": ""}}
    )


def write_with_request_id(fault: Fault) -> bytes:
    """OpenAI's object, and the id of the request beside it."""
    error = {"message": fault.text, "type": _BAD_REQUEST, "param": fault.param, "code": "invalid_parameter_error"}
    request_id = str(uuid4())
    return _encode({"error": error, "id": f"chatcmpl-{request_id}", "request_id": request_id})


def write_typed(fault: Fault) -> bytes:
    """An object of the type error, with a number in brackets behind the sentence."""
    error = {"type": "bad_request_error", "message": f"{fault.text} (2013)", "http_code": str(fault.status)}
    return _encode({"type": "error", "error": error, "request_id": uuid4().hex})


def write_string(fault: Fault) -> bytes:
    """The error is a sentence, and the code one too."""
    return _encode({"code": fault.code or "Client specified an invalid argument", "error": fault.text})


def write_flat(fault: Fault) -> bytes:
    """The fields stand beside each other, in no object."""
    param = fault.param or "validation_error"
    return _encode({"message": fault.text, "type": _BAD_REQUEST, "param": param, "code": "wrong_api_format"})


def write_flat_object(fault: Fault) -> bytes:
    """The fields stand beside each other, and one says that they are an error."""
    code = fault.code or _BAD_REQUEST
    return _encode({"object": "error", "type": _BAD_REQUEST, "code": code, "message": fault.text})


def write_validated(fault: Fault) -> bytes:
    """Status 422 has a list of what is wrong where; any other, a flat object with a number."""
    if fault.status == 422:
        place = [int(word) if word.isdigit() else word for word in (fault.param or "").split(".") if word]
        entry = {"type": fault.code, "loc": ["body", *place], "msg": fault.text, "input": fault.input}
        return _encode({"detail": [entry]})
    kind = "invalid_request_message_order" if fault.code == "3230" else "invalid_request_invalid_args"
    flat = {"object": "error", "message": fault.text, "type": kind, "param": None, "code": fault.code}
    return _encode({**flat, "raw_status_code": fault.status})


def write_google(fault: Fault) -> bytes:
    """A list of one object."""
    return _encode([{"error": {"code": fault.status, "message": fault.text, "status": "INVALID_ARGUMENT"}}])


def write_google_object(fault: Fault) -> bytes:
    """The object alone, as gateways get it."""
    return _encode({"error": {"code": fault.status, "message": fault.text, "status": "INVALID_ARGUMENT"}})


def write_messages_api(fault: Fault) -> bytes:
    """Anthropic's Messages, whose errors gateways pass on."""
    return _encode({"type": "error", "error": {"type": _BAD_REQUEST, "message": fault.text}})


def write_bytes_repr(fault: Fault) -> bytes:
    """The same as Python shows bytes, which a proxy quotes."""
    return repr(write_messages_api(fault)).encode()


def write_numbered_flat(fault: Fault) -> bytes:
    """The fields of an engine beside each other, as until 2025."""
    flat = {"object": "error", "message": fault.text, "type": "BadRequestError", "param": None, "code": fault.status}
    return _encode(flat)


def write_numbered(fault: Fault) -> bytes:
    """OpenAI's object with the status as its code."""
    error = {"message": fault.text, "type": "BadRequestError", "param": None, "code": fault.status}
    return _encode({"error": error})


def write_ordered(fault: Fault) -> bytes:
    """The status first, then a sentence and a type."""
    return _encode({"error": {"code": fault.status, "message": fault.text, "type": _BAD_REQUEST}})


def write_api_error(fault: Fault) -> bytes:
    """OpenAI's object with another type."""
    return _encode({"error": {"message": fault.text, "type": "api_error", "param": None, "code": None}})


def write_short_code(fault: Fault) -> bytes:
    """A sentence and the status."""
    return _encode({"error": {"message": fault.text, "code": fault.status}})


def write_issues(fault: Fault) -> bytes:
    """A bare list of what a validator found."""
    return _encode([{"code": "custom", "message": fault.text, "path": []}])


def write_body_code(fault: Fault) -> bytes:
    """A flat object with a sentence and one code for all."""
    return _encode({"message": fault.text, "code": "invalid_request_body"})


def write_nothing(fault: Fault) -> bytes:
    """The status and no word of what is wrong."""
    del fault
    return b"400 Bad Request\n"


# --- errors around the errors of others -------------------------------------------------------------------------------


def wrap_raw(fault: Fault, inner: bytes, maker: str) -> bytes:
    """A gateway: the body of its upstream is a text inside of the gateway's own error."""
    metadata = {"raw": inner.decode(), "provider_name": maker, "is_byok": False}
    return _encode(
        {
            "error": {"message": "Provider returned error", "code": fault.status, "metadata": metadata},
            "user_id": "user_stage",
        }
    )


def write_midstream(fault: Fault, maker: str, model: str) -> bytes:
    """Write a stream of a gateway that begins well and fails: the error of its upstream is in a chunk."""
    message = f"{maker} midstream error: {fault.text} (2013)"
    error = {"message": message, "code": fault.status, "metadata": {"provider_name": maker}}
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    chunk = {"id": "gen-stage", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}
    return b": PROCESSING\n\ndata: " + _encode({**chunk, "error": error}) + b"\n\ndata: [DONE]\n\n"


def wrap_sentence(fault: Fault, inner: bytes, maker: str, model: str) -> bytes:
    """A proxy: the body of its upstream is a part of a sentence."""
    message = f"litellm.BadRequestError: {maker}Exception - {inner.decode()}. Received Model Group={model}\n"
    message += "Available Model Group Fallbacks=None"
    return _encode({"error": {"message": message, "type": None, "param": None, "code": str(fault.status)}})


def wrap_relayed(fault: Fault) -> bytes:
    """A relay: the sentence of its upstream, with the id of the request behind it."""
    message = f"{fault.text} (request id: {uuid4().hex})"
    return _encode({"error": {"type": "<nil>", "message": message}, "type": "error"})
