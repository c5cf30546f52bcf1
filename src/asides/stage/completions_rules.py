"""What OpenAI's chat endpoint refuses of its newer models: tools beside an effort (since GPT-5.4). Adds nothing."""

from __future__ import annotations

import re

import msgspec

from asides.events import Event
from asides.stage.http_requests import Request

_NEWER = re.compile(r"gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])")


class Rules:
    """The rules for one stage. They look at model names, so a stage that plays others is not concerned."""

    def __init__(self, secret: bytes) -> None:
        """This endpoint hands out nothing that it would have to know again."""
        del secret

    def refuse(self, request: Request) -> str | None:
        """Why this request is refused, in the provider's words; None when it is not."""
        body = msgspec.json.decode(request.body)
        model, effort = str(body.get("model")), body.get("reasoning_effort")
        if _NEWER.match(model) and body.get("tools") and effort not in (None, "none"):
            return (
                f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
                "Please use /v1/responses instead."
            )
        return None

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """As they are: chat has no state."""
        del request
        return events
