"""Gemini's `GET …/models`, page by page: the request, the reading, and the server half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, build_list_request, page_of, read_list, strip_reply_path
from asides.providers.provider import Target
from asides.values.errors import Unsupported
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_COLLECTION = "models/"
_PUBLISHERS = "/publishers/"
_PAGE = 1000


def models_request(target: Target, after: str | None) -> HttpRequest:
    """Ask for a page of the list. A project of the cloud has none: what it may use stands in the cloud's console."""
    path = strip_reply_path(target)
    if _PUBLISHERS in path:
        raise Unsupported(f"{target.provider.name} has no list of models at this address; its cloud's console has one.")
    query = [("pageSize", str(_PAGE))] if after is None else [("pageSize", str(_PAGE)), ("pageToken", after)]
    return build_list_request(target, f"{path}/models", query)


def read_models(body: bytes) -> ModelPage:
    """A page of the list. Raises ProtocolError where there is none."""
    entries, around = read_list(body, "models", beside=frozenset({"nextPageToken"}))
    models = tuple(_model(entry, named) for entry in entries if (named := entry.text("name")))
    return ModelPage(models, around.text("nextPageToken"))


def _model(entry: Entry, named: str) -> ModelInfo:
    thinks = entry.flag("thinking")
    return ModelInfo(
        named.removeprefix(_COLLECTION),
        entry.text("displayName"),
        None,
        entry.count("inputTokenLimit"),
        entry.count("outputTokenLimit"),
        None if thinks is None else ThinkingInfo(thinks),
        entry.fields,
    )


def write_models(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Server half: the page that is asked for; 50 models unless more are."""
    names = [model.id for model in models]
    shown, more = page_of(models, names, query.get("pageToken"), query.get("pageSize", "50"), _PAGE)
    page: dict[str, Any] = {"models": [_entry(model) for model in shown]}
    if more:
        page["nextPageToken"] = shown[-1].id
    return msgspec.json.encode(page)


def _entry(model: ModelInfo) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": f"{_COLLECTION}{model.id}", "supportedGenerationMethods": ["generateContent"]}
    told = {
        "displayName": model.name,
        "inputTokenLimit": model.context,
        "outputTokenLimit": model.max_output,
        "thinking": None if model.thinking is None else model.thinking.supported,
    }
    return entry | {name: value for name, value in told.items() if value is not None}
