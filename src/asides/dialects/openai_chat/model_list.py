"""`GET /models` in the shape that most hosts answer it in: the request, the reading, and the server half.

The book has an id and a date; hosts add what they find worth telling, each under names of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, build_list_request, read_list, strip_reply_path
from asides.providers.provider import Target
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_CONTEXT = ("context_length", "context_window", "max_context_length", "max_model_len", "max_context_tokens")
_OUTPUT = ("max_completion_tokens", "max_output_tokens", "max_output_length")
_PARAMETERS = frozenset({"reasoning", "reasoning_effort", "include_reasoning"})


def models_request(target: Target) -> HttpRequest:
    """Ask for the list; it comes in one piece. That of a resource stands beside its deployments, not in one."""
    path = strip_reply_path(target).partition("/deployments/")[0].removesuffix("/deployments")
    return build_list_request(target, f"{path}/models")


def read_models(body: bytes) -> ModelPage:
    """The list. Raises ProtocolError where there is none."""
    entries, _ = read_list(body, "data", "models")
    return ModelPage(tuple(_model(entry, named) for entry in entries if (named := entry.text("id", "name"))))


def _model(entry: Entry, named: str) -> ModelInfo:
    behind = entry.within("top_provider") or Entry(None)
    more = entry.within("metadata") or entry.within("meta") or Entry(None)
    name = entry.text("display_name", "name")
    return ModelInfo(
        named,
        name if name != named else None,
        entry.count("created"),
        entry.count(*_CONTEXT) or behind.count(*_CONTEXT) or more.count(*_CONTEXT, "n_ctx", "n_ctx_train"),
        entry.count(*_OUTPUT) or behind.count(*_OUTPUT) or more.count(*_OUTPUT),
        _thinking(entry),
        entry.fields,
    )


def _thinking(entry: Entry) -> ThinkingInfo | None:
    told = entry.within("reasoning")
    if told is not None:
        efforts = told.words("supported_efforts")
        return ThinkingInfo(True, told.flag("mandatory"), (), None if efforts is None else _efforts(efforts))
    capabilities = entry.within("capabilities") or Entry(None)
    for flag in (entry.flag("supports_reasoning"), capabilities.flag("reasoning")):
        if flag is not None:
            return ThinkingInfo(flag)
    parameters = entry.words("supported_parameters")
    return None if parameters is None else ThinkingInfo(not _PARAMETERS.isdisjoint(parameters))


def _efforts(told: Sequence[str]) -> tuple[str, ...]:
    """Without the word for no thinking at all, which is no effort."""
    return tuple(word.lower() for word in told if word.lower() != "none")


def write_models(models: Sequence[ModelInfo]) -> bytes:
    """Server half: the list."""
    return msgspec.json.encode({"object": "list", "data": [_entry(model) for model in models]})


def _entry(model: ModelInfo) -> dict[str, object]:
    entry: dict[str, object] = {"id": model.id, "object": "model", "created": model.created or 0, "owned_by": "asides"}
    if model.name is not None:
        entry["name"] = model.name
    if model.context is not None:
        entry["context_length"] = model.context
    if model.max_output is not None:
        entry["max_completion_tokens"] = model.max_output
    if (thinking := model.thinking) is not None and not thinking.supported:
        entry["supports_reasoning"] = False
    elif thinking is not None:
        reasoning = {"mandatory": thinking.always, "supported_efforts": thinking.efforts}
        entry["reasoning"] = {name: value for name, value in reasoning.items() if value is not None}
    return entry
