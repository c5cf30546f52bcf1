"""Write a compacted conversation, as the endpoint `/responses/compact` answers: the messages that stay, then one item.

developers.openai.com api/reference/resources/responses/methods/compact (2026-11). Not here: the item, and a compaction
inside of a stream (write_reply).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.dialects.openai_responses.server.write_reply import ResponsesWriter
from asides.values.events import StopReason

_STAYING = frozenset({"user", "developer", "system"})


class CompactionWriter(ResponsesWriter):
    """Events of one reply in, a compacted conversation out. `keep` says what stays beside the reply's items."""

    def __init__(self, *, model: str, stream: bool = False, include_usage: bool = True) -> None:  # noqa: ARG002 - as of its kind
        super().__init__(model=model, stream=False, include_usage=include_usage)
        self._kept: list[dict[str, Any]] = []

    def keep(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Keep the words of the user, and instructions, out of these items of a request."""
        self._kept = [_write_message(item) for item in items if _is_staying(item)]

    def _write_end(self, stop: StopReason) -> bytes:  # noqa: ARG002 - whatever it is
        response = self._finish_response("completed")
        return msgspec.json.encode(
            {
                "id": self._id,
                "object": "response.compaction",
                "created_at": self.created,
                "output": [*self._kept, *response["output"]],
                "usage": response["usage"],
            }
        )


def _is_staying(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in _STAYING


def _write_message(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return {**item, "status": "completed", "content": parts}
