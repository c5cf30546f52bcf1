"""What a reply costs survives the way through a server: a client reads the usage that was written for it."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from asides.dialects import DIALECTS, find_dialect
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, UsageReported
from asides.values.usage import Usage
from tests.decoding import decoded, target

USAGE = Usage(
    input=60,
    output=9,
    thinking=4,
    cached=10,
    total=69,
    cache_written=30,
    cost=Decimal("0.0125"),
    cache_written_hour=20,
    tool_requests=3,
    tier="priority",
)
NO_LIFETIMES = "its cache has one lifetime"
NO_WRITES = "writing to its cache has no price of its own, so it counts no writes"
NO_COST = "its servers report no price"
NO_COUNTS = "an Ollama server bills nothing: it counts the tokens of the prompt and of the answer"
MISSING: dict[str, dict[str, str]] = {
    "anthropic": {"cost": NO_COST},
    "bedrock": {
        "thinking": "Converse counts thinking as output only",
        "tool_requests": "Converse counts no requests of tools",
        "cost": NO_COST,
    },
    "cohere": {
        "cache_written": NO_WRITES,
        "cache_written_hour": NO_WRITES,
        "tool_requests": "its search units are those of reranking",
        "tier": "it has one tier",
        "cost": NO_COST,
    },
    "gemini": {
        "cache_written": NO_WRITES,
        "cache_written_hour": NO_WRITES,
        "tool_requests": "the searches are listed in a part of the answer, the grounding",
        "cost": NO_COST,
    },
    "gemini_interactions": {"cache_written": NO_WRITES, "cache_written_hour": NO_WRITES, "cost": NO_COST},
    "ollama": dict.fromkeys(
        ("thinking", "cached", "cache_written", "cache_written_hour", "tool_requests", "tier", "cost"), NO_COUNTS
    ),
    "openai_chat": {"cache_written_hour": NO_LIFETIMES},
    "openai_responses": {"cache_written_hour": NO_LIFETIMES},
}
"""The fields of a usage that a dialect has no place for, and why."""


def write_and_read(dialect: str, usage: Usage, *, stream: bool) -> Usage:
    """Write a reply with this usage, and decode it again."""
    writer = find_dialect(dialect).writer(model="made-up", stream=stream)
    end = ReplyEnded(StopReason("stop"))
    body = writer.write([ReplyStarted("made-up"), TextDelta("42", 0), UsageReported(usage), end])
    return decoded(body, target(), dialect).usage


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_usage_that_is_written_reads_the_same(dialect: str, stream: bool) -> None:
    found = msgspec.structs.asdict(write_and_read(dialect, USAGE, stream=stream))
    expected = msgspec.structs.asdict(USAGE) | dict.fromkeys(MISSING[dialect])
    # A total is computed where the dialect has no field for it, which is all that `origin` says here.
    del found["origin"], expected["origin"]
    assert found == expected


@pytest.mark.parametrize("tier", ["fast", "flex", "on_demand_flex", "batch"])
@pytest.mark.parametrize("dialect", sorted(name for name in DIALECTS if "tier" not in MISSING[name]))
def test_every_word_for_a_tier_survives(dialect: str, tier: str) -> None:
    usage = Usage(10, 5, total=15, tier=tier)
    assert {write_and_read(dialect, usage, stream=stream).tier for stream in (False, True)} == {tier}


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_what_was_not_reported_is_not_billed(dialect: str) -> None:
    for stream in (False, True):
        found = write_and_read(dialect, Usage(10, 5, total=15), stream=stream)
        assert (found.input, found.output, found.total) == (10, 5, 15)
        billed = (found.cache_written, found.cache_written_hour, found.tool_requests, found.tier, found.cost)
        assert not any(billed)
