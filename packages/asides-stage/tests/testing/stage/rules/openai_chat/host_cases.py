"""Chat requests that break a rule of a host, and the nearest legal ones: what a case is, and how it is tried."""

from __future__ import annotations

from typing import Any, NamedTuple

from asides_stage import OpenStage, Say
from tests.testing.stage.rules.chat_requests import SAID, TOOL, USER, Wire, called, result, send

LOOP = [USER, called("a"), result("a")]
LOOP_WITH = [USER, called("a", reasoning_content="mull"), result("a")]
PLAIN = [USER]
ON, OFF = {"type": "enabled"}, {"type": "disabled"}
THOUGHT = {**SAID, "reasoning_content": "mull"}


class Case(NamedTuple):
    """A request that breaks a rule, and what makes it legal."""

    kind: str | None
    model: str
    broken: Wire
    legal: Wire
    words: str
    at: str = ""
    date: str | None = None
    status: int = 400

    def __str__(self) -> str:
        return f"{self.at or self.model}: {self.words[:40]}"

    @property
    def path(self) -> str:
        """The path that chooses the host."""
        return f"/{self.at}/v1/chat/completions" if self.at else "/v1/chat/completions"


def messages(*sent: Wire, **fields: Any) -> Wire:
    """A request with these messages."""
    return {"messages": list(sent), **fields}


def asking(**fields: Any) -> Wire:
    """A question with these settings."""
    return {"messages": PLAIN, **fields}


def with_tools(**fields: Any) -> Wire:
    """A question with a tool and these settings."""
    return {"messages": PLAIN, "tools": [TOOL], **fields}


FORCED = with_tools(tool_choice="required")


def try_case(stage: OpenStage, case: Case) -> None:
    """Send the broken request, which is refused with its kind and words, and the legal one, which is not."""
    opened = stage(Say(text="42"), date=case.date)
    answer = send(opened, case.path, {"model": case.model, **case.broken})
    (refusal,) = opened.refusals
    assert (answer.status, refusal.kind) == (case.status, case.kind)
    assert case.words in refusal.text
    assert answer.body == refusal.body
    legal = send(opened, case.path, {"model": case.model, **case.legal})
    assert legal.status == 200, legal.body


def body_of(stage: OpenStage, model: str, sent: Wire, at: str = "") -> Any:
    """The body of the stage's answer."""
    path = f"/{at}/v1/chat/completions" if at else "/v1/chat/completions"
    return send(stage(Say(text="42")), path, {"model": model, **sent}).json
