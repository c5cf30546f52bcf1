"""The older call signature: positional arguments in, a dict out. New code calls `asides.ask`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asides.client import ask
from asides.values.json_form import to_json_value


def create_chat_completion(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    temperature: float | None = None,
    max_tokens: int | None = None,
    top_p: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Ask with positional arguments. The answer is in `content`, everything else in `metadata`. All of it is JSON.

    A setting that the model does not take is left out, with a warning, unless `on_conflict="raise"` is given.
    """
    options.setdefault("on_conflict", "adjust")
    reply = ask(model, messages, temperature=temperature, max_tokens=max_tokens, top_p=top_p, **options)
    metadata = to_json_value(reply.metadata, thinking=True, seals=True)
    return {"role": "assistant", "content": reply.text or None, "metadata": metadata}
