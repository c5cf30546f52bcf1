"""The object of each dialect of ours: it finds the functions by convention and loads each when it is first used.

`_OWN_NAMES` and `_find_places` are the one table to change when a module or a function of a dialect gets another name.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any, cast

import msgspec

from asides.dialects.dialect import Dialect, DialectFacts

# The classes and functions that each dialect names for its own wire: decoder, error and writer.
_OWN_NAMES = {
    "anthropic": ("MessagesDecoder", "messages_error", "MessagesWriter"),
    "bedrock": ("ConverseDecoder", "converse_error", "ConverseWriter"),
    "cohere": ("ChatDecoder", "chat_error", "ChatWriter"),
    "gemini": ("ContentDecoder", "response_error", "ContentWriter"),
    "ollama": ("ChatLineDecoder", "chat_error", "ChatLineWriter"),
    "openai_chat": ("ChatDecoder", "chat_error", "ChatWriter"),
    "openai_responses": ("ResponsesDecoder", "responses_error", "ResponsesWriter"),
}
_WRITES_ERRORS_LIKE = {"openai_responses": "openai_chat"}


class _Places(msgspec.Struct, frozen=True):
    """Where the methods of a dialect are: "module:name", the module inside `asides.dialects`."""

    encode: str
    decoder: str
    error: str
    models_request: str
    read_models: str
    read: str
    writer: str
    write_error: str
    write_models: str


def _find_places(dialect: str) -> _Places:
    decoder, error, writer = _OWN_NAMES[dialect]
    models = f"model_list_formats:{dialect.upper()}"
    return _Places(
        encode=f"{dialect}.encode:encode",
        decoder=f"{dialect}.decode:{decoder}",
        error=f"{dialect}.stop_and_errors:{error}",
        models_request=f"{models}.build_request",
        read_models=f"{models}.read_page",
        read=f"{dialect}.server.read_request:read",
        writer=f"{dialect}.server.write_reply:{writer}",
        write_error=f"{_WRITES_ERRORS_LIKE.get(dialect, dialect)}.server.write_reply:write_error",
        write_models=f"{models}.write_page",
    )


class _LazyDialect:
    """A dialect whose methods become attributes when they are first used, so that a later call costs nothing more."""

    def __init__(self, name: str, facts: DialectFacts) -> None:
        self.name = name
        self.facts = facts

    def __getattr__(self, method: str) -> Any:
        if method not in _Places.__struct_fields__:
            raise AttributeError(f"the dialect {self.name} has no {method}")
        module, _, name = getattr(_find_places(self.name), method).partition(":")
        found = attrgetter(name)(import_module(f"asides.dialects.{module}"))
        setattr(self, method, found)
        return found

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


def lazy_dialect(name: str, facts: DialectFacts) -> Dialect:
    """The dialect of this name, with what it declares about itself. Nothing of its code is loaded yet."""
    return cast("Dialect", _LazyDialect(name, facts))
