"""The list of models in each dialect: its address, its fields and its pages.

Not here: the code that all lists share (model_lists).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.model_lists import Entry, ModelList, Paging, strip_reply_path
from asides.providers.provider import Target
from asides.values.errors import ProtocolError, Unsupported
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_VERSION = re.compile(r"/v\d\w*$")


def _drop_unset(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- anthropic: GET /v1/models --------------------------------------------------------------------------------------


def _find_anthropic_path(target: Target) -> str:
    if target.quirks.transport != "direct":  # clouds that carry this dialect have their own lists, at other addresses
        raise Unsupported(f"{target.provider.name} has no list of models at this address; its cloud's console has one.")
    path = strip_reply_path(target)
    return f"{path}/models" if _VERSION.search(path) else f"{path}/v1/models"


def _read_anthropic_entry(entry: Entry, model: str) -> ModelInfo:
    return ModelInfo(
        model,
        entry.get_text("display_name"),
        entry.get_timestamp("created_at"),
        entry.get_count("max_input_tokens"),
        entry.get_count("max_tokens"),
        _read_capabilities(entry),
        entry.fields,
    )


def _read_capabilities(entry: Entry) -> ThinkingInfo | None:
    capabilities = entry.get_object("capabilities")
    thinking = None if capabilities is None else capabilities.get_object("thinking")
    if capabilities is None or thinking is None:
        return None
    types = _read_supported(thinking.get_object("types"))
    effort = capabilities.get_object("effort")
    efforts: tuple[str, ...] | None = None
    if effort is not None:
        efforts = () if effort.get_flag("supported") is False else _read_supported(effort)
    supported = thinking.get_flag("supported")
    return ThinkingInfo(bool(types) if supported is None else supported, None, types, efforts)


def _read_supported(holder: Entry | None) -> tuple[str, ...]:
    """Return the names under which `supported` is true."""
    if holder is None:
        return ()
    return tuple(
        name for name in holder.fields if (inner := holder.get_object(name)) is not None and inner.get_flag("supported")
    )


def _write_anthropic_entry(model: ModelInfo) -> dict[str, Any]:
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


ANTHROPIC = ModelList(
    _find_anthropic_path,
    _read_anthropic_entry,
    _write_anthropic_entry,
    names=("data",),
    id_fields=("id",),
    paging=Paging("limit", "after_id", "last_id", 20, more_flag="has_more"),
)


# --- bedrock --------------------------------------------------------------------------------------------------------


class _NoModelList:
    """A dialect without a list: another service has it, at another address."""

    def build_request(self, target: Target, after: str | None = None) -> HttpRequest:  # noqa: ARG002 - as every list
        raise Unsupported(
            f"{target.provider.name} cannot be asked for its models here: only Bedrock's control plane lists them, and "
            "asides does not call it. To do: `aws bedrock list-foundation-models`."
        )

    def read_page(self, body: bytes) -> ModelPage:
        raise ProtocolError("this dialect has no list of models.", dialect="bedrock", payload=body)

    def write_page(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:  # noqa: ARG002 - as every list
        raise Unsupported("this dialect has no list of models.")


BEDROCK = _NoModelList()


# --- cohere: GET /v1/models (the chat is in its second version, the list still in its first) --------------------------


def _find_cohere_path(target: Target) -> str:
    return f"{_VERSION.sub('', strip_reply_path(target))}/v1/models"


def _read_cohere_entry(entry: Entry, model: str) -> ModelInfo:
    features = entry.get_texts("features")
    thinking = None if features is None else ThinkingInfo("reasoning" in features)
    return ModelInfo(model, None, None, entry.get_count("context_length"), None, thinking, entry.fields)


def _write_cohere_entry(model: ModelInfo) -> dict[str, Any]:
    features = None if model.thinking is None else ["reasoning"] if model.thinking.supported else []
    more = {"context_length": model.context, "features": features}
    return {"name": model.id, "endpoints": ["chat"]} | _drop_unset(more)


COHERE = ModelList(
    _find_cohere_path,
    _read_cohere_entry,
    _write_cohere_entry,
    names=("models",),
    id_fields=("name",),
    paging=Paging("page_size", "page_token", "next_page_token", 20),
    query=(("endpoint", "chat"),),
)


# --- gemini: GET …/models -------------------------------------------------------------------------------------------


def _find_gemini_path(target: Target) -> str:
    path = strip_reply_path(target)
    if "/publishers/" in path:  # a project of the cloud; the cloud's console lists its models
        raise Unsupported(f"{target.provider.name} has no list of models at this address; its cloud's console has one.")
    return f"{path}/models"


def _read_gemini_entry(entry: Entry, model: str) -> ModelInfo:
    thinks = entry.get_flag("thinking")
    return ModelInfo(
        model.removeprefix("models/"),
        entry.get_text("displayName"),
        None,
        entry.get_count("inputTokenLimit"),
        entry.get_count("outputTokenLimit"),
        None if thinks is None else ThinkingInfo(thinks),
        entry.fields,
    )


def _write_gemini_entry(model: ModelInfo) -> dict[str, Any]:
    more = {
        "displayName": model.name,
        "inputTokenLimit": model.context,
        "outputTokenLimit": model.max_output,
        "thinking": None if model.thinking is None else model.thinking.supported,
    }
    return {
        "name": f"models/{model.id}",
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    } | _drop_unset(more)


GEMINI = ModelList(
    _find_gemini_path,
    _read_gemini_entry,
    _write_gemini_entry,
    names=("models",),
    id_fields=("name",),
    paging=Paging("pageSize", "pageToken", "nextPageToken", 50),
    omits_empty=True,
)


# --- ollama: GET /api/tags, the models on its machine ---------------------------------------------------------------


def _find_ollama_path(target: Target) -> str:
    # The address may be one for programs that use the server's other dialects.
    path = urlsplit(target.base_url).path.rstrip("/")
    for end in (target.quirks.path, "/v1", "/api"):
        path = path.removesuffix(end)
    return f"{path}/api/tags"


def _read_ollama_entry(entry: Entry, model: str) -> ModelInfo:
    # Newer servers list what a model can do; older ones leave it to `POST /api/show`.
    capabilities = entry.get_texts("capabilities")
    thinking = None if capabilities is None else ThinkingInfo("thinking" in capabilities)
    tools, pictures = (True if name in (capabilities or ()) else None for name in ("tools", "vision"))
    context = (entry.get_object("details") or Entry(None)).get_count("context_length")
    modified = entry.get_timestamp("modified_at")
    return ModelInfo(model, None, modified, context, None, thinking, entry.fields, tools, pictures)


def _write_ollama_entry(model: ModelInfo) -> dict[str, Any]:
    # Its own command line cuts the digest without asking how long it is, and prints the rest.
    entry: dict[str, Any] = {
        "name": model.id,
        "model": model.id,
        "modified_at": datetime.fromtimestamp(model.created or 0, UTC).isoformat(),
        "size": 0,
        "digest": sha256(model.id.encode("utf-8", "surrogatepass")).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "",
            "family": "",
            "families": [],
            "parameter_size": "",
            "quantization_level": "",
            **_drop_unset({"context_length": model.context}),
        },
    }
    if model.thinking is not None:
        entry["capabilities"] = list_capabilities(model)
    return entry


def list_capabilities(model: ModelInfo) -> list[str]:
    """What a model can do, by Ollama's names. What is not known is left out."""
    can_think = model.thinking is not None and model.thinking.supported
    known = {"tools": model.tools, "thinking": can_think, "vision": model.pictures}
    return ["completion", *(name for name, has_it in known.items() if has_it)]


OLLAMA = ModelList(
    _find_ollama_path, _read_ollama_entry, _write_ollama_entry, names=("models",), id_fields=("model", "name")
)


# --- openai_chat and openai_responses: GET /models, to which hosts add fields of various names ------------------------

_CONTEXT = ("context_length", "context_window", "max_context_length", "max_model_len", "max_context_tokens")
_OUTPUT = ("max_completion_tokens", "max_output_tokens", "max_output_length")
_THINKING_PARAMETERS = frozenset({"reasoning", "reasoning_effort", "include_reasoning"})


def _find_openai_path(target: Target) -> str:
    # The list of a cloud resource is beside its deployments, not inside one.
    path = strip_reply_path(target).partition("/deployments/")[0].removesuffix("/deployments")
    return f"{path}/models"


def _read_openai_entry(entry: Entry, model: str) -> ModelInfo:
    host = entry.get_object("top_provider") or Entry(None)
    more = entry.get_object("metadata") or entry.get_object("meta") or Entry(None)
    name = entry.get_text("display_name", "name")
    return ModelInfo(
        model,
        name if name != model else None,
        entry.get_count("created"),
        entry.get_count(*_CONTEXT) or host.get_count(*_CONTEXT) or more.get_count(*_CONTEXT, "n_ctx", "n_ctx_train"),
        entry.get_count(*_OUTPUT) or host.get_count(*_OUTPUT) or more.get_count(*_OUTPUT),
        _read_reasoning(entry),
        entry.fields,
    )


def _read_reasoning(entry: Entry) -> ThinkingInfo | None:
    if (reasoning := entry.get_object("reasoning")) is not None:
        efforts = reasoning.get_texts("supported_efforts")
        if efforts is not None:  # "none" is no thinking at all, and no effort
            efforts = tuple(effort.lower() for effort in efforts if effort.lower() != "none")
        return ThinkingInfo(True, reasoning.get_flag("mandatory"), (), efforts)
    capabilities = entry.get_object("capabilities") or Entry(None)
    for flag in (entry.get_flag("supports_reasoning"), capabilities.get_flag("reasoning")):
        if flag is not None:
            return ThinkingInfo(flag)
    parameters = entry.get_texts("supported_parameters")
    return None if parameters is None else ThinkingInfo(not _THINKING_PARAMETERS.isdisjoint(parameters))


def _write_openai_entry(model: ModelInfo) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": model.id, "object": "model", "created": model.created or 0, "owned_by": "asides"}
    more = {"name": model.name, "context_length": model.context, "max_completion_tokens": model.max_output}
    entry |= _drop_unset(more)
    if (thinking := model.thinking) is not None and not thinking.supported:
        entry["supports_reasoning"] = False
    elif thinking is not None:
        entry["reasoning"] = _drop_unset({"mandatory": thinking.always, "supported_efforts": thinking.efforts})
    return entry


OPENAI_CHAT = OPENAI_RESPONSES = ModelList(
    _find_openai_path,
    _read_openai_entry,
    _write_openai_entry,
    names=("data", "models"),
    id_fields=("id", "name"),
    around=(("object", "list"),),
)
