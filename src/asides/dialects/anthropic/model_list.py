"""`GET /v1/models` of Messages, page by page: the request, the reading with its capabilities, and the server half."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, build_list_request, page_of, read_list, strip_reply_path
from asides.providers.provider import Target
from asides.values.errors import Unsupported
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_VERSION = re.compile(r"/v\d\w*$")
# The most that a page can hold, which is not what it holds unasked.
_PAGE = 1000


def models_request(target: Target, after: str | None) -> HttpRequest:
    """Ask for a page of the list. Clouds that carry this dialect have their own lists, at other addresses."""
    if target.quirks.transport != "direct":
        raise Unsupported(f"{target.provider.name} has no list of models at this address; its cloud's console has one.")
    path = strip_reply_path(target)
    query = [("limit", str(_PAGE))] if after is None else [("limit", str(_PAGE)), ("after_id", after)]
    return build_list_request(target, f"{path}/models" if _VERSION.search(path) else f"{path}/v1/models", query)


def read_models(body: bytes) -> ModelPage:
    """A page of the list. Raises ProtocolError where there is none."""
    entries, around = read_list(body, "data")
    models = tuple(_model(entry, named) for entry in entries if (named := entry.text("id")))
    return ModelPage(models, around.text("last_id") if around.flag("has_more") else None)


def _model(entry: Entry, named: str) -> ModelInfo:
    return ModelInfo(
        named,
        entry.text("display_name"),
        entry.moment("created_at"),
        entry.count("max_input_tokens"),
        entry.count("max_tokens"),
        _thinking(entry),
        entry.fields,
    )


def _thinking(entry: Entry) -> ThinkingInfo | None:
    capabilities = entry.within("capabilities")
    thinking = None if capabilities is None else capabilities.within("thinking")
    if capabilities is None or thinking is None:
        return None
    types = _supported(thinking.within("types"))
    effort = capabilities.within("effort")
    efforts: tuple[str, ...] | None = None
    if effort is not None:
        efforts = () if effort.flag("supported") is False else _supported(effort)
    told = thinking.flag("supported")
    return ThinkingInfo(bool(types) if told is None else told, None, types, efforts)


def _supported(told: Entry | None) -> tuple[str, ...]:
    """The names under which `supported` is true."""
    if told is None:
        return ()
    return tuple(name for name in told.fields if (inner := told.within(name)) is not None and inner.flag("supported"))


def write_models(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Server half: the page that is asked for; 20 models unless more are."""
    names = [model.id for model in models]
    shown, more = page_of(models, names, query.get("after_id"), query.get("limit", "20"), _PAGE)
    ends = (shown[0].id, shown[-1].id) if shown else (None, None)
    page = {"data": [_entry(model) for model in shown], "first_id": ends[0], "has_more": more, "last_id": ends[1]}
    return msgspec.json.encode(page)


def _entry(model: ModelInfo) -> dict[str, Any]:
    created = datetime.fromtimestamp(model.created or 0, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry: dict[str, Any] = {
        "type": "model",
        "id": model.id,
        "display_name": model.name or model.id,
        "created_at": created,
        "max_input_tokens": model.context,
        "max_tokens": model.max_output,
    }
    if (thinking := model.thinking) is not None:
        types = {name: {"supported": True} for name in thinking.types}
        capabilities: dict[str, Any] = {"thinking": {"supported": thinking.supported, "types": types}}
        if thinking.efforts is not None:
            levels = {name: {"supported": True} for name in thinking.efforts}
            capabilities["effort"] = {"supported": bool(levels), **levels}
        entry["capabilities"] = capabilities
    return entry
