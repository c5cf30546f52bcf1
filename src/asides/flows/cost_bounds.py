"""What a request takes before it is sent: a high estimate of its tokens, and the upper bound of its cost.

Limits of cost reserve it: those of a gateway's keys, and those of batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

from asides.history.trim import CHARACTERS_PER_TOKEN, RequestCounter
from asides.providers.provider import Target
from asides.values.errors import AsidesError
from asides.values.messages import Prompt
from asides.values.parts import File, Image, Part, ToolResult
from asides.values.reply import Reply
from asides.values.traits import HAS_MEDIA, find_traits
from asides.values.usage import Usage, find_cost

MOST_OUTPUT = 32_768
"""The tokens that a reply may have for the budget of a key, if its request does not say how many."""
_BYTES_PER_TOKEN = 3
"""Fewer than most texts have, so that an estimate is too high rather than too low."""
_OVERHEAD = 64
_PICTURE_TOKENS = 5_000
"""The tokens of a picture at most, at most hosts."""
_MAX_INPUT = 200_000
"""Assumed maximum of input tokens for models without a known context size."""


def estimate_input(prompt: Prompt, target: Target, body: bytes) -> int:
    """The tokens that a request sends: rather too many. `body`: the caller's, for one that cannot be counted."""
    try:
        # The bytes of other scripts are more than their characters.
        counted = RequestCounter(prompt, target)(prompt.messages) * CHARACTERS_PER_TOKEN
    except AsidesError:
        counted = len(body)
    else:
        counted += sum(_count_wide(message.text) for message in prompt.messages)
    return counted // _BYTES_PER_TOKEN + _OVERHEAD + estimate_media(prompt, target)


def estimate_media(prompt: Prompt, target: Target) -> int:
    """Upper bound for the tokens of pictures and files of unknown size, where only an address or an id is sent. A
    counter does not include them.
    """
    most, tokens = target.rule.context or _MAX_INPUT, 0
    if not find_traits(prompt.messages) & HAS_MEDIA:
        return 0
    for part in _list_parts(prompt):
        if isinstance(part, Image):
            tokens += _PICTURE_TOKENS
        elif isinstance(part, File) and part.data is None:
            tokens += most
        elif isinstance(part, File) and not part.media_type.startswith("text/"):
            tokens += len(part.data or b"") // _BYTES_PER_TOKEN
    return min(tokens, most)


def _list_parts(prompt: Prompt) -> Iterator[Part]:
    for message in prompt.messages:
        for part in message.parts:
            yield part
            if isinstance(part, ToolResult) and not isinstance(part.content, str):
                yield from part.content


def _count_wide(text: str) -> int:
    return 0 if text.isascii() else len(text.encode(errors="surrogatepass")) - len(text)


def estimate_output(reply: Reply) -> int:
    """The tokens of what has arrived of a reply."""
    texts = [reply.text, reply.commentary, reply.thinking.text]
    texts += [call.raw_arguments or str(call.arguments) for call in reply.tool_calls]
    return sum(len(text.encode(errors="surrogatepass")) for text in texts) // _BYTES_PER_TOKEN


def find_output_limit(max_tokens: int | None, target: Target) -> int | None:
    """The tokens that a reply has at most: as the request says, or its model; None if neither does."""
    if _is_limit(max_tokens):
        return max_tokens
    # A reply is also a part of the context.
    return min((limit for limit in (target.rule.max_output, target.rule.context) if limit), default=None)


def find_most_output(prompt: Prompt, target: Target) -> int:
    """The tokens to reserve for a reply: the request's limit, otherwise the lower of the model's limit and ours."""
    limit = find_output_limit(prompt.max_tokens, target) or MOST_OUTPUT
    return limit if _is_limit(prompt.max_tokens) else min(limit, MOST_OUTPUT)


def _is_limit(max_tokens: int | None) -> bool:
    return max_tokens is not None and max_tokens > 0  # Some servers take one below as none.


def find_most_cost(target: Target, sent: int, received: int, *, writes_for_hour: bool = False) -> Decimal | None:
    """The most that a request may cost; None if no price is known. `writes_for_hour`: a cache may keep its input for an
    hour.
    """
    return _find_most_cost(
        tuple(list_priced_names(target)), target.provider.prices, _round_up(sent), received, writes_for_hour
    )


@lru_cache(maxsize=4096)
def _find_most_cost(
    names: tuple[str, ...], prices: str, sent: int, received: int, writes_for_hour: bool
) -> Decimal | None:
    """Kept, since looking a price up takes a millisecond."""
    # Writing to a cache may cost more than sending.
    usages = [Usage(sent, received), Usage(sent, received, cache_written=sent)]
    if writes_for_hour:
        usages.append(Usage(sent, received, cache_written=sent, cache_written_hour=sent))
    costs = [cost.amount for usage in usages if (cost := find_cost(usage, names, prices)) is not None]
    return max(costs, default=None)


def may_write_for_hour(cache: bool | str | None, body: bytes) -> bool:
    """Whether a request may ask a cache to keep something for an hour. `cache`: the option. `body`: as the caller wrote
    it. The word may be escaped there, so that it is taken for one where any character is.
    """
    return isinstance(cache, str) or b"1h" in body or b"\\u00" in body


def forget_prices() -> None:
    """Look prices up again: some depend on the time of day."""
    _find_most_cost.cache_clear()


def _round_up(tokens: int) -> int:
    """A few per cent more, so that requests of about one length have one price."""
    step = 1 << max(0, tokens.bit_length() - 5)
    return -(-tokens // step) * step


def load_prices() -> None:
    """Load the table of prices, so that no request waits for it."""
    find_cost(Usage(1, 1), ("any",), "any")


def list_priced_names(target: Target) -> list[str]:
    """The names under which a list of prices may have its model."""
    return [name for name in (target.family, target.model) if name]
