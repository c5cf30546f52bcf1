"""Token counts: `input` includes cached tokens, `output` includes thinking. None means not reported, 0 means zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from asides.values.messages import Message
    from asides.values.reply import Reply

UsageOrigin: TypeAlias = Literal["reported", "derived", "estimated"]

_RANK: dict[UsageOrigin, int] = {"reported": 0, "derived": 1, "estimated": 2}
_CHARACTERS_PER_TOKEN = 4


class Usage(msgspec.Struct, frozen=True):
    """The tokens of a reply. `origin`: figures from the server, figures derived from them, or an estimate."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cached: int | None = None
    total: int | None = None
    origin: UsageOrigin = "reported"

    @property
    def answer(self) -> int | None:
        """Output tokens without thinking."""
        if self.output is None or self.thinking is None:
            return None
        return max(self.output - self.thinking, 0)

    def merge(self, later: Usage) -> Usage:
        """Return these counts, replaced by those of a later snapshot where it has any."""
        return Usage(
            input=self.input if later.input is None else later.input,
            output=self.output if later.output is None else later.output,
            thinking=self.thinking if later.thinking is None else later.thinking,
            cached=self.cached if later.cached is None else later.cached,
            total=self.total if later.total is None else later.total,
            origin=later.origin,
        )

    def __add__(self, other: Usage) -> Usage:
        """Add the counts of two replies; a count that neither reported stays None."""

        def plus(left: int | None, right: int | None) -> int | None:
            return None if left is None and right is None else (left or 0) + (right or 0)

        return Usage(
            input=plus(self.input, other.input),
            output=plus(self.output, other.output),
            thinking=plus(self.thinking, other.thinking),
            cached=plus(self.cached, other.cached),
            total=plus(self.total, other.total),
            origin=max(self.origin, other.origin, key=_RANK.__getitem__),
        )


def normalise_usage(
    *,
    input: int | None,  # noqa: A002 - the public name of the field
    output: int | None,
    thinking: int | None = None,
    cached: int | None = None,
    total: int | None = None,
    excludes_thinking: bool = False,
) -> Usage:
    """Convert a server's counts to one meaning: `output` includes thinking, `total` is input and output.

    Servers disagree on whether output includes thinking. Their total decides where it can; otherwise
    `excludes_thinking`, a fact of the provider's row, does.
    """
    origin: UsageOrigin = "reported"
    if thinking and input is not None and output is not None and total is not None:
        if total == input + output:
            excludes_thinking = False
        elif total == input + output + thinking:
            excludes_thinking = True
    if excludes_thinking and thinking and output is not None:
        output += thinking
        origin = "derived"
    if total is None and input is not None and output is not None:
        total = input + output
        origin = "derived"
    return Usage(input, output, thinking, cached, total, origin)


def estimate_usage(messages: tuple[Message, ...], reply: Reply) -> Usage:
    """Estimate the tokens of a reply from the length of its texts; the result is marked as an estimate."""
    sent = sum(len(message.text) for message in messages) // _CHARACTERS_PER_TOKEN
    thinking = len(reply.thinking.text) // _CHARACTERS_PER_TOKEN if reply.thinking else 0
    output = len(reply.text) // _CHARACTERS_PER_TOKEN + thinking
    return Usage(sent, output, thinking, None, sent + output, "estimated")
