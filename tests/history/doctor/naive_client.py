"""A client without any care: it sends a body as it is, over a plain socket, and says what the strict stage answered."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from asides_stage.stage import Stage

PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/{model}:generateContent",
}


class Answer(NamedTuple):
    """The status and the document of a response."""

    status: int
    body: Any


def post(stage: Stage, format_name: str, body: dict[str, Any], *, model: str = "", key: str = "key-one") -> Answer:
    """Send the body as it is."""
    address = urlsplit(stage.url)
    connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=20)
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {key}",
        "x-api-key": key,
        "x-goog-api-key": key,
        "anthropic-version": "2023-06-01",
    }
    try:
        connection.request("POST", PATHS[format_name].format(model=model), json.dumps(body).encode(), headers)
        response = connection.getresponse()
        return Answer(response.status, json.loads(response.read()))
    finally:
        connection.close()
