"""What all front ends post: pictures and files, ids of calls. No address is opened."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.values.parts import File, Image, ToolResult
from tests.integrations.front_ends import Json

PNG_URL = "data:image/png;base64,iVBORw0KGgo="


def user(*parts: Json) -> Json:
    return {"id": "u", "role": "user", "parts": list(parts)}


def assistant(*parts: Json) -> Json:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def tool(state: str, **fields: Any) -> Json:
    return {"type": "tool-f", "toolCallId": "c1", "state": state, "input": {"x": 1}, **fields}


def test_pictures_and_files() -> None:
    (message,) = asides.ui.read_vercel(
        [
            user(
                {"type": "file", "mediaType": "image/png", "url": PNG_URL},
                {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,a%20b"},
                {"type": "file", "mediaType": "image/jpeg", "url": "https://example.com/a.jpg"},
                {"type": "file", "mediaType": "application/pdf", "filename": "b.pdf", "url": "https://example.com/b"},
            )
        ]
    )
    assert message.parts == (
        Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png"),
        File(name="a.txt", data=b"a b", media_type="text/plain"),
        Image(url="https://example.com/a.jpg", media_type="image/jpeg"),
        File(name="b.pdf", url="https://example.com/b", media_type="application/pdf"),
    )


@pytest.mark.parametrize(
    "url", ["/etc/passwd", "file:///etc/passwd", "ftp://example.com/a", "data:image/png;base64,%%"]
)
def test_an_address_of_a_page_opens_no_file(url: str) -> None:
    with pytest.raises(asides.ConfigError, match=r"messages\[0\]: the (url|data) of"):
        asides.ui.read_vercel([user({"type": "file", "mediaType": "image/png", "url": url})])


def test_ids_that_two_messages_share_are_made_to_differ() -> None:
    done = tool("output-available", output="x")
    messages = asides.ui.read_vercel([assistant(done), user(text("again")), assistant(done)])
    calls = [call.id for message in messages for call in message.tool_calls]
    assert len(set(calls)) == 2
    results = [part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)]
    assert results == calls
