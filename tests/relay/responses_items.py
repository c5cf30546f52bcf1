"""What a client of Responses reads: the events of a stream, and the response at its end."""

from __future__ import annotations

from typing import Any

import msgspec


def read_events(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    lines = [line for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]


def read_response(body: bytes) -> dict[str, Any]:
    """The response, whole or at the end of a stream."""
    whole = msgspec.json.decode(body) if body.startswith(b"{") else read_events(body)[-1]["response"]
    response: dict[str, Any] = whole
    return response
