"""Cohere's `GET /v1/models`, page by page: the request, the reading, and the server half.

The chat is in its second version; the list has stayed in its first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, build_list_request, page_of, read_list, strip_reply_path
from asides.providers.provider import Target
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_VERSION = re.compile(r"/v\d\w*$")
_PAGE = 1000


def models_request(target: Target, after: str | None) -> HttpRequest:
    """Ask for a page of the models that chat."""
    path = _VERSION.sub("", strip_reply_path(target))
    query = [("endpoint", "chat"), ("page_size", str(_PAGE))]
    return build_list_request(target, f"{path}/v1/models", query if after is None else [*query, ("page_token", after)])


def read_models(body: bytes) -> ModelPage:
    """A page of the list. Raises ProtocolError where there is none."""
    entries, around = read_list(body, "models")
    models = tuple(_model(entry, named) for entry in entries if (named := entry.text("name")))
    return ModelPage(models, around.text("next_page_token"))


def _model(entry: Entry, named: str) -> ModelInfo:
    features = entry.words("features")
    return ModelInfo(
        named,
        None,
        None,
        entry.count("context_length"),
        None,
        None if features is None else ThinkingInfo("reasoning" in features),
        entry.fields,
    )


def write_models(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Server half: the page that is asked for; 20 models unless more are."""
    names = [model.id for model in models]
    shown, more = page_of(models, names, query.get("page_token"), query.get("page_size", "20"), _PAGE)
    page: dict[str, Any] = {"models": [_entry(model) for model in shown]}
    if more:
        page["next_page_token"] = shown[-1].id
    return msgspec.json.encode(page)


def _entry(model: ModelInfo) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": model.id, "endpoints": ["chat"]}
    if model.context is not None:
        entry["context_length"] = model.context
    if model.thinking is not None:
        entry["features"] = ["reasoning"] if model.thinking.supported else []
    return entry
