"""The providers with batches (later answers at a lower price) and their facts: forms, limits, times.

Each fact has its date and its source.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from asides.providers.provider import Target
from asides.values.errors import Unsupported

VendorForm: TypeAlias = Literal["files", "messages", "contents"]
"""A batch over an uploaded file of JSON lines · a list of messages · a list or a file of contents."""


class BatchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a provider's batches."""

    form: VendorForm
    dialects: tuple[str, ...]
    """The dialects that a row of a batch may have."""
    most_requests: int
    """The requests of one batch."""
    most_bytes: int
    """The bytes of one batch: of its file, or of the request that creates it."""
    most_inline_bytes: int = 0
    """The bytes of a batch that is created without a file, where both ways exist."""
    hours: int
    """A batch that is not ready after this time expires."""
    kept_days: int
    """How long the results can be fetched."""
    price: Decimal
    """The price of a token, as a share of the price of a live call."""
    since: str
    source: str


BATCH_PRICE = Decimal("0.5")
"""Every vendor below takes half, of input, output and cached tokens."""
_MEGABYTE = 1000 * 1000
_FILES = BatchFacts(
    form="files",
    dialects=("openai_chat", "openai_responses"),
    most_requests=50_000,
    most_bytes=200 * _MEGABYTE,
    hours=24,
    kept_days=30,
    price=BATCH_PRICE,
    since="2026-11-16",
    source="platform.openai.com/docs/guides/batch; learn.microsoft.com batches-create-batch (50,000 requests, 200 MB)",
)
_MESSAGES = BatchFacts(
    form="messages",
    dialects=("anthropic",),
    most_requests=100_000,
    most_bytes=256 * _MEGABYTE,
    hours=24,
    kept_days=29,
    price=BATCH_PRICE,
    since="2026-11-16",
    source="platform.claude.com/docs/en/build-with-claude/batch-processing",
)
_CONTENTS = BatchFacts(
    form="contents",
    dialects=("gemini",),
    # The documents name no number. A batch of this many is fetched and stored in reasonable time.
    most_requests=50_000,
    most_bytes=2000 * _MEGABYTE,
    most_inline_bytes=20 * _MEGABYTE,
    hours=48,
    # Files are kept for 48 hours.
    kept_days=2,
    price=BATCH_PRICE,
    since="2026-11-16",
    source="ai.google.dev/gemini-api/docs/batch-api; ai.google.dev/api/batch-api",
)
# By the name of the row. Azure's form differs in its states, dates and deployments; Vertex reads from Cloud Storage.
_BY_PROVIDER = {
    "openai": _FILES,
    "openai-responses": _FILES,
    "anthropic": _MESSAGES,
    "google": _CONTENTS,
}


def find_batch_facts(target: Target) -> BatchFacts | None:
    """The facts about the batches of a target; None if unknown, or not in its dialect."""
    facts = _BY_PROVIDER.get(target.provider.name)
    return facts if facts is not None and target.dialect in facts.dialects else None


def require_batch_facts(target: Target) -> BatchFacts:
    """The facts about the batches of a target. Raises Unsupported if none are known."""
    facts = find_batch_facts(target)
    if facts is None:
        raise Unsupported(
            f"{target.provider.name} has no batches that asides knows ({target.dialect}); these have: "
            f'{", ".join(_BY_PROVIDER)}. Run the batch with --via live (via="live").'
        )
    return facts
