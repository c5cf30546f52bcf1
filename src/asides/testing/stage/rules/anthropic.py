"""Rules of Anthropic's Messages: settings, order of blocks, calls and results, and signatures by generation.

Written from the documented rules and from reported errors, not copied from a server. A known Claude is checked against
its generation, an unknown model against the rules of all. A key that contains "older-account" plays an account from
before 2026-08-31. Not here: the rules themselves, which Claude's other hosts share (claude_settings, claude_history).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import msgspec

from asides.dialects.anthropic.server.write_reply import write_error
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import (
    DetailedRefusal,
    RequestRules,
    Wire,
    anthropic_hosts,
    claude_texts,
    read_account,
    read_credential,
)
from asides.testing.stage.rules.anthropic_hosts import find_host
from asides.testing.stage.rules.claude_history import Dropped, SealCheck, check_history
from asides.testing.stage.rules.claude_seals import ClaudeSeals
from asides.testing.stage.rules.claude_settings import ClaudeRequest, check_settings
from asides.values.events import Event, PartArrived, ReplyEnded, ReplyStarted, StopReason, TextDelta, UsageReported
from asides.values.parts import ServerTool

RULES = (*claude_texts.RULES, *anthropic_hosts.RULES)
# The error and its code are those of anthropic-python 2.8, types/thread_unsupported_request_error.py, 2026-11: clients
# send the whole conversation without `thread` after it.
_NO_THREADS = "thread: threads are not supported here. Send the full conversation without `thread`."
_NO_THREADS_CODE = {"error_code": "thread_unsupported_request"}
OLD_ACCOUNT = "older-account"


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return MessagesRules(secret, today)


class MessagesRules:
    """Also says which thinking blocks of the last request the server would leave out in silence."""

    def __init__(self, secret: bytes, today: date) -> None:
        self._seals = ClaudeSeals(secret)
        self._today = today
        self.dropped: list[Dropped] = []

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        self.dropped = []
        if body.get("thread") is not None:
            return DetailedRefusal(_NO_THREADS, write_error(400, _NO_THREADS, details=_NO_THREADS_CODE))
        return next(self._check(self._read(body, request)), None)

    def _check(self, request: ClaudeRequest) -> Iterator[DetailedRefusal]:
        if (check_host := find_host(request.model)) is not None:
            yield from check_host(request)
            return
        yield from check_settings(request)
        yield from check_history(request)
        check = SealCheck(request, self._seals)
        yield from check.check()
        self.dropped = check.dropped

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Sign every thought that the script did not sign; drop its text if the request hides it."""
        body: Wire = msgspec.json.decode(request.body)
        read = self._read(body, request)
        if (body.get("compaction") or {}).get("type") == "summarize":
            return self._summarise(events, read)
        prefix = self._seals.read_prefix(body.get("system") or [], body.get("tools"), read.messages)
        return self._seals.seal(
            events,
            model=read.model,
            account=read.account,
            prefix=prefix,
            hidden=read.hides_thinking,
            asked=read.thinks,
        )

    def _summarise(self, events: list[Event], request: ClaudeRequest) -> list[Event]:
        """Return a reply that is only a signed summary, whose text is that of the scene."""
        text = "".join(event.text for event in events if isinstance(event, TextDelta)) or "Nothing was said."
        signature = self._seals.sign_summary(request.model, request.account, text)
        block = {"type": "compaction", "content": text, "signature": signature}
        kept = [event for event in events if isinstance(event, (ReplyStarted, UsageReported))]
        part = PartArrived(ServerTool("compaction", json=msgspec.json.encode(block).decode()), 0)
        return [*kept, part, ReplyEnded(StopReason("pause", "compaction"))]

    def _read(self, body: Wire, request: Request) -> ClaudeRequest:
        betas = frozenset(name.strip() for name in request.headers.get("anthropic-beta", "").split(","))
        in_body = body.get("anthropic_beta")
        return ClaudeRequest(
            body,
            model=str(body.get("model")),
            account=read_account(request),
            betas=betas | frozenset(in_body if isinstance(in_body, list) else ()),
            today=self._today,
            is_old_account=OLD_ACCOUNT in read_credential(request),
        )
