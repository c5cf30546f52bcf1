"""One wire language each: client half and server half live together. They know no HTTP library and no provider."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from asides.errors import Unsupported

if TYPE_CHECKING:
    from asides.dialects.dialect import Dialect

# The module of each dialect; loaded when first used.
DIALECTS = {
    "anthropic": "asides.dialects.anthropic",
    "bedrock": "asides.dialects.bedrock",
    "cohere": "asides.dialects.cohere",
    "gemini": "asides.dialects.gemini",
    "ollama": "asides.dialects.ollama",
    "openai_chat": "asides.dialects.openai_chat",
    "openai_responses": "asides.dialects.openai_responses",
}

# Other names for them, as recordings and other projects have them.
ALIASES = {
    "anthropic_messages": "anthropic",
    "bedrock_converse": "bedrock",
}


def real_name(name: str) -> str:
    """The name of the dialect that goes by this name too."""
    return ALIASES.get(name, name)


@cache
def find(name: str) -> Dialect:
    """The dialect of this name. Its module has one object, `dialect`."""
    module = DIALECTS.get(real_name(name))
    if module is None:
        raise Unsupported(f"no dialect is called {name!r}; there are {', '.join(sorted(DIALECTS))}.")
    return cast("Dialect", import_module(module).dialect)
