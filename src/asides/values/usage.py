"""Token counts, normalised: input includes cached, output includes thinking. None is not reported, 0 is zero."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

UsageOrigin: TypeAlias = Literal["reported", "derived", "estimated"]

_RANK: dict[UsageOrigin, int] = {"reported": 0, "derived": 1, "estimated": 2}


class Usage(msgspec.Struct, frozen=True):
    """What a reply cost. `origin` says how far to trust it: the server's figures, sums of them, or a guess of ours."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cached: int | None = None
    total: int | None = None
    origin: UsageOrigin = "reported"

    @property
    def answer(self) -> int | None:
        """The output that was not thinking."""
        if self.output is None or self.thinking is None:
            return None
        return max(self.output - self.thinking, 0)

    def updated(self, later: Usage) -> Usage:
        """This snapshot with a later one laid over it, field by field."""
        return Usage(
            input=self.input if later.input is None else later.input,
            output=self.output if later.output is None else later.output,
            thinking=self.thinking if later.thinking is None else later.thinking,
            cached=self.cached if later.cached is None else later.cached,
            total=self.total if later.total is None else later.total,
            origin=later.origin,
        )

    def __add__(self, other: Usage) -> Usage:
        """The sum of two replies; what neither reported stays None."""

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
    """Usage as a server sent it, brought to our one meaning of `output` and `total`.

    Servers disagree on whether output counts thinking. Their own sum settles it where it can; `excludes_thinking` is
    the row's fact for where it cannot.
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
