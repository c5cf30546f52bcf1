"""Which models' hosts demand what of earlier turns, in chat completions: facts by the name of the model.

Not taken from the rows of providers: stated here a second time, from the documents and the errors of the hosts, so that
the two can be held against each other. A model that nobody names has no demands.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from asides.testing.stage.rules import Wire


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """What the hosts of some models demand."""

    wants: Literal["anything", "never", "tool_turns", "loop"] = "anything"
    """Of `reasoning_content`. anything: may come · never: may not · tool_turns: must stand on every turn that calls
    tools, empty if need be · loop: on those of the turn under way."""
    demand: str = ""
    """The host's words where it is missing."""
    exact: bool = False
    """What comes back on a turn that calls tools is what was thought in it, where the host made that turn."""
    thinks: Literal["always", "unless_told", "when_told"] = "always"
    takes_blanks: bool = True
    """Whether a message may be empty."""
    closed: bool = False
    """Unknown fields are refused, ids are nine letters and digits, and nobody but the model speaks behind results."""
    hands_out: Literal["nothing", "signed_text", "summary_and_token", "token", "plain_text", "call_signature"] = (
        "nothing"
    )
    """State, in `reasoning_details`: text with a signature · a summary and an encrypted token · the token alone · text
    without either; or a signature on the first call of a reply, which has to come back there."""

    def thinks_on(self, body: Wire) -> bool:
        """Whether the model will think on this request."""
        toggle = body.get("thinking")
        kind = toggle.get("type") if isinstance(toggle, dict) else None
        effort = body.get("reasoning_effort")
        match self.thinks:
            case "always":
                return True
            case "unless_told":
                return kind != "disabled" and effort != "none"
            case "when_told":
                return kind in ("enabled", "adaptive") or effort not in (None, "none")


_NOT_RETURNED = "The `reasoning_content` in the thinking mode must be passed back to the API."
_MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"

_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        # api-docs.deepseek.com/zh-cn/guides/reasoning_model, 2025-01.
        (r"deepseek-r1", Family(wants="never")),
        # Guide to thinking with tools, 2025-12: inside the loop.
        (r"deepseek-v3\.[2-9]", Family(wants="loop", demand=_NOT_RETURNED, exact=True, thinks="when_told")),
        # Guide to the thinking mode, 2026-04: on turns that call tools, in all later requests; plain turns need none.
        (
            r"deepseek-(?:v[4-9]|flash|reasoner)",
            Family(wants="tool_turns", demand=_NOT_RETURNED, exact=True, thinks="unless_told"),
        ),
        (r"deepseek-chat", Family(wants="tool_turns", demand=_NOT_RETURNED, exact=True, thinks="when_told")),
        # kimi-cli's client, 2026-07: also empty; a turn that calls tools leaves empty content out.
        (
            r"kimi-(?:k2\.[5-9]|k2-thinking|k[3-9]|thinking)",
            Family(wants="tool_turns", demand=_MISSING, exact=True, thinks="unless_told", takes_blanks=False),
        ),
        (r"kimi-|moonshot-", Family(takes_blanks=False)),
        # docs.z.ai thinking-mode, 2026-08: inside the loop, exact and in order; nobody was refused who sent none.
        (r"glm-(?:4\.[5-9]|[5-9])", Family(exact=True, thinks="unless_told")),
        # The whole turn is to be kept, its details verbatim; nothing in them is signed.
        (r"minimax-m", Family(hands_out="plain_text")),
        # invalid_request_message_order, code 3230 (avante.nvim#2695, litellm#17761, hermes-agent#20154; 2026-05).
        (r"(?:magi|mi|mini|code|dev|pix)stral|pixtral|open-mi[sx]tral", Family(closed=True)),
        # A gateway that passes on what is behind it: names with the maker in front.
        (r"anthropic/claude", Family(hands_out="signed_text")),
        (r"(?:openai/(?:gpt-[5-9]|o\d)|x-ai/grok)", Family(hands_out="summary_and_token")),
        (r"google/gemini", Family(hands_out="token")),
        # thought-signatures over the chat endpoint, 2026-08: on the first call of each step of the turn under way.
        (r"(?:models/)?gemini-[3-9]", Family(hands_out="call_signature")),
    )
)
_ANY = Family()


def family_of(model: str) -> Family:
    """What the hosts of this model demand."""
    name = model.lower()
    return next((family for pattern, family in _FAMILIES if pattern.match(name)), _ANY)
