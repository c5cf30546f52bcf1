"""The bodies of errors at hosts of chat completions: an object, a list, a sentence, or JSON inside of a sentence.

Each form is that of public reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from uuid import uuid4

import msgspec

from asides.dialects.rulebook import BrokenRule

_BAD_REQUEST = "invalid_request_error"


WriteBody: TypeAlias = Callable[[BrokenRule], bytes]


def _encode(document: object) -> bytes:
    return msgspec.json.encode(document)


def write_openai(broken: BrokenRule) -> bytes:
    """OpenAI, and most hosts that copy it."""
    error = {"message": broken.text, "type": _BAD_REQUEST, "param": broken.param, "code": broken.rule.code}
    return _encode({"error": error})


def write_short(broken: BrokenRule) -> bytes:
    """OpenAI's object without the field and the code."""
    return _encode({"error": {"message": broken.text, "type": _BAD_REQUEST}})


def write_code_only(broken: BrokenRule) -> bytes:
    """An object with nothing but a number and a sentence."""
    return _encode({"error": {"code": broken.rule.code or "1210", "message": broken.text}})


def write_param_text(broken: BrokenRule) -> bytes:
    """The sentence is where others name the field."""
    return _encode(
        {"error": {"code": str(broken.rule.status), "message": "Param Incorrect", "param": broken.text, "type": ""}}
    )


def write_with_request_id(broken: BrokenRule) -> bytes:
    """OpenAI's object, and the id of the request beside it."""
    error = {"message": broken.text, "type": _BAD_REQUEST, "param": broken.param, "code": "invalid_parameter_error"}
    request_id = str(uuid4())
    return _encode({"error": error, "id": f"chatcmpl-{request_id}", "request_id": request_id})


def write_typed(broken: BrokenRule) -> bytes:
    """An object of the type error, with a number in brackets behind the sentence."""
    error = {"type": "bad_request_error", "message": f"{broken.text} (2013)", "http_code": str(broken.rule.status)}
    return _encode({"type": "error", "error": error, "request_id": uuid4().hex})


def write_string(broken: BrokenRule) -> bytes:
    """The error is a sentence, and the code one too."""
    return _encode({"code": broken.rule.code or "Client specified an invalid argument", "error": broken.text})


def write_flat(broken: BrokenRule) -> bytes:
    """The fields are at the top level, not in an object."""
    param = broken.param or "validation_error"
    return _encode({"message": broken.text, "type": _BAD_REQUEST, "param": param, "code": "wrong_api_format"})


def write_flat_object(broken: BrokenRule) -> bytes:
    """The fields are at the top level, and one marks them as an error."""
    code = broken.rule.code or _BAD_REQUEST
    return _encode({"object": "error", "type": _BAD_REQUEST, "code": code, "message": broken.text})


def write_validated(broken: BrokenRule) -> bytes:
    """Status 422 has a list of what is wrong where; any other, a flat object with a number."""
    if broken.rule.status == 422:
        place = [int(word) if word.isdigit() else word for word in (broken.param or "").split(".") if word]
        entry = {"type": broken.rule.code, "loc": ["body", *place], "msg": broken.text, "input": broken.quoted}
        return _encode({"detail": [entry]})
    kind = "invalid_request_message_order" if broken.rule.code == "3230" else "invalid_request_invalid_args"
    flat = {"object": "error", "message": broken.text, "type": kind, "param": None, "code": broken.rule.code}
    return _encode({**flat, "raw_status_code": broken.rule.status})


def write_google(broken: BrokenRule) -> bytes:
    """A list of one object."""
    return _encode([{"error": {"code": broken.rule.status, "message": broken.text, "status": "INVALID_ARGUMENT"}}])


def write_google_object(broken: BrokenRule) -> bytes:
    """The object alone, as gateways get it."""
    return _encode({"error": {"code": broken.rule.status, "message": broken.text, "status": "INVALID_ARGUMENT"}})


def write_messages_api(broken: BrokenRule) -> bytes:
    """Anthropic's Messages, whose errors gateways pass on."""
    return _encode({"type": "error", "error": {"type": _BAD_REQUEST, "message": broken.text}})


def write_bytes_repr(broken: BrokenRule) -> bytes:
    """The same as Python shows bytes, which a proxy quotes."""
    return repr(write_messages_api(broken)).encode()


def write_numbered_flat(broken: BrokenRule) -> bytes:
    """The fields of an engine beside each other, as until 2025."""
    flat = {
        "object": "error",
        "message": broken.text,
        "type": "BadRequestError",
        "param": None,
        "code": broken.rule.status,
    }
    return _encode(flat)


def write_numbered(broken: BrokenRule) -> bytes:
    """OpenAI's object with the status as its code."""
    error = {"message": broken.text, "type": "BadRequestError", "param": None, "code": broken.rule.status}
    return _encode({"error": error})


def write_ordered(broken: BrokenRule) -> bytes:
    """The status first, then a sentence and a type."""
    return _encode({"error": {"code": broken.rule.status, "message": broken.text, "type": _BAD_REQUEST}})


def write_api_error(broken: BrokenRule) -> bytes:
    """OpenAI's object with another type."""
    return _encode({"error": {"message": broken.text, "type": "api_error", "param": None, "code": None}})


def write_short_code(broken: BrokenRule) -> bytes:
    """A sentence and the status."""
    return _encode({"error": {"message": broken.text, "code": broken.rule.status}})


def write_issues(broken: BrokenRule) -> bytes:
    """A bare list of what a validator found."""
    return _encode([{"code": "custom", "message": broken.text, "path": []}])


def write_body_code(broken: BrokenRule) -> bytes:
    """A flat object with a sentence and one code for all."""
    return _encode({"message": broken.text, "code": "invalid_request_body"})


def write_nothing(broken: BrokenRule) -> bytes:
    """The status and no word of what is wrong."""
    del broken
    return b"400 Bad Request\n"


# --- errors around the errors of others -------------------------------------------------------------------------------


def wrap_raw(broken: BrokenRule, inner: bytes, maker: str) -> bytes:
    """A gateway: the body of its upstream is a text inside of the gateway's own error."""
    metadata = {"raw": inner.decode(), "provider_name": maker, "is_byok": False}
    return _encode(
        {
            "error": {"message": "Provider returned error", "code": broken.rule.status, "metadata": metadata},
            "user_id": "user_stage",
        }
    )


def write_midstream(broken: BrokenRule, maker: str, model: str) -> bytes:
    """Write a stream of a gateway that begins well and fails: the error of its upstream is in a chunk."""
    message = f"{maker} midstream error: {broken.text} (2013)"
    error = {"message": message, "code": broken.rule.status, "metadata": {"provider_name": maker}}
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    chunk = {"id": "gen-stage", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}
    return b": PROCESSING\n\ndata: " + _encode({**chunk, "error": error}) + b"\n\ndata: [DONE]\n\n"


def wrap_sentence(broken: BrokenRule, inner: bytes, maker: str, model: str) -> bytes:
    """A proxy: the body of its upstream is a part of a sentence."""
    message = f"litellm.BadRequestError: {maker}Exception - {inner.decode()}. Received Model Group={model}\n"
    message += "Available Model Group Fallbacks=None"
    return _encode({"error": {"message": message, "type": None, "param": None, "code": str(broken.rule.status)}})


def wrap_relayed(broken: BrokenRule) -> bytes:
    """A relay: the sentence of its upstream, with the id of the request behind it."""
    message = f"{broken.text} (request id: {uuid4().hex})"
    return _encode({"error": {"type": "<nil>", "message": message}, "type": "error"})
