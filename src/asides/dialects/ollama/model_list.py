"""Ollama's `GET /api/tags`, the models that are on its machine: the request, the reading, and the server half."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, build_list_request, read_list
from asides.providers.provider import Target
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo


def models_request(target: Target) -> HttpRequest:
    """Ask for the list. People share the address with programs that speak the server's other languages."""
    path = urlsplit(target.base_url).path.rstrip("/")
    for ending in (target.quirks.path, "/v1", "/api"):
        path = path.removesuffix(ending)
    return build_list_request(target, f"{path}/api/tags")


def read_models(body: bytes) -> ModelPage:
    """The list. Raises ProtocolError where there is none."""
    entries, _ = read_list(body, "models")
    return ModelPage(tuple(_model(entry, named) for entry in entries if (named := entry.text("model", "name"))))


def _model(entry: Entry, named: str) -> ModelInfo:
    # Newer servers say what a model can do; those that do not leave it to `POST /api/show`.
    able = entry.words("capabilities")
    details = entry.within("details") or Entry(None)
    return ModelInfo(
        named,
        None,
        entry.moment("modified_at"),
        details.count("context_length"),
        None,
        None if able is None else ThinkingInfo("thinking" in able),
        entry.fields,
    )


def write_models(models: Sequence[ModelInfo]) -> bytes:
    """Server half: the list."""
    return msgspec.json.encode({"models": [_entry(model) for model in models]})


def _entry(model: ModelInfo) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": model.id, "model": model.id, "details": {}}
    if model.created is not None:
        entry["modified_at"] = datetime.fromtimestamp(model.created, UTC).isoformat()
    if model.context is not None:
        entry["details"]["context_length"] = model.context
    if model.thinking is not None:
        entry["capabilities"] = ["completion", "thinking"] if model.thinking.supported else ["completion"]
    return entry
