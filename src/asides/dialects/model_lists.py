"""Lists of models in every dialect: builds the request for a page, reads the page, and writes it for the server half.

Every field of an entry may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_headers, choose_credential_header, join_url
from asides.providers.provider import Target
from asides.values.errors import ProtocolError, Unsupported
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo
from asides.wire.lenient import read_document

Value = TypeVar("Value")

# The most models that a page can hold. A server sends fewer unless it is asked for this number.
_PAGE_SIZE = 1000


def build_list_request(target: Target, path: str, query: Iterable[tuple[str, str]] = ()) -> HttpRequest:
    """Build the request for a list at this path of the target's host, with the query of the address and of the row."""
    headers = build_headers(target, "application/json")
    del headers["Content-Type"]
    return HttpRequest("GET", join_url(target, path, first=query), headers, b"", choose_credential_header(target))


def strip_reply_path(target: Target) -> str:
    """Return the path of the target's address, without its end for replies."""
    return urlsplit(target.base_url).path.rstrip("/").removesuffix(target.quirks.path or "/").rstrip("/")


class Entry:
    """One JSON object of a list. A field that is missing, null or of another type is None."""

    def __init__(self, fields: object) -> None:
        self.fields: dict[str, Any] = fields if isinstance(fields, dict) else {}

    def get_text(self, *names: str) -> str | None:
        """Return the first of these fields that is text and not empty."""
        return next((value for value in self._find_values(names, str) if value), None)

    def get_count(self, *names: str) -> int | None:
        """Return the first of these fields that is a number above zero; some servers write 0 for "not known"."""
        values = (value for value in self._find_values(names, (int, float)) if not isinstance(value, bool))
        return next((int(value) for value in values if 0 < value < float("inf")), None)

    def get_flag(self, name: str) -> bool | None:
        """Return the field if it is true or false."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def get_texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of a list."""
        value = self.fields.get(name)
        return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else None

    def get_object(self, name: str) -> Entry | None:
        """Return an object inside this one."""
        value = self.fields.get(name)
        return Entry(value) if isinstance(value, dict) else None

    def get_timestamp(self, name: str) -> int | None:
        """Return an ISO date as Unix time. The epoch is None: some servers write it for a date they do not know."""
        try:
            date = datetime.fromisoformat(self.get_text(name) or "")
        except ValueError:
            return None
        return int(date.timestamp()) if date.tzinfo is not None and date.timestamp() > 0 else None

    def _find_values(self, names: Sequence[str], kind: type[Value] | tuple[type, ...]) -> Iterable[Any]:
        return (value for name in names if isinstance(value := self.fields.get(name), kind))


def read_list(body: bytes, *names: str, beside: frozenset[str] | None = None) -> tuple[list[Entry], Entry]:
    """Return the entries of a list, and the object around it. The list has one of these names, or is the whole
    document.

    `beside` is for servers that leave an empty list out: a document with only these fields is an empty list. Raises
    `ProtocolError` when there is no list.
    """
    document, _ = read_document(body)
    around = Entry(document)
    lists = [document, *(around.fields.get(name) for name in names)]
    if beside is not None and isinstance(document, dict) and document.keys() <= beside:
        lists.append([])
    found = next((value for value in lists if isinstance(value, list)), None)
    if found is None:
        raise ProtocolError("the response is not a list of models. Check the base URL.", payload=body)
    return [Entry(entry) for entry in found], around


class Paging(msgspec.Struct, frozen=True):
    """The pages of a dialect's list: the names of the query's parameters and of the fields around a page."""

    size: str
    after: str
    next_field: str
    usual_size: int
    more_flag: str | None = None
    """The field that says whether more follows; None if `next_field` itself says so."""


class ModelList(msgspec.Struct, frozen=True):
    """The list of models in one dialect."""

    find_path: Callable[[Target], str]
    """Raises Unsupported if there is no list."""
    read_entry: Callable[[Entry, str], ModelInfo]
    write_entry: Callable[[ModelInfo], dict[str, Any]]
    names: tuple[str, ...]
    """The fields that may hold the list; a server writes the first."""
    id_fields: tuple[str, ...]
    paging: Paging | None = None
    query: tuple[tuple[str, str], ...] = ()
    omits_empty: bool = False
    """An empty list may be missing."""
    around: tuple[tuple[str, str], ...] = ()
    """Fields before the list."""

    def build_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Build the request for the page that follows `after`, or for the first."""
        path, query = self.find_path(target), [*self.query]
        if self.paging is not None:
            query.append((self.paging.size, str(_PAGE_SIZE)))
            query += [] if after is None else [(self.paging.after, after)]
        return build_list_request(target, path, query)

    def read_page(self, body: bytes) -> ModelPage:
        """Read a page. Raises ProtocolError if the body holds none."""
        paging = self.paging
        beside = frozenset({paging.next_field}) if paging is not None and self.omits_empty else None
        entries, around = read_list(body, *self.names, beside=beside)
        models = tuple(self.read_entry(entry, model) for entry in entries if (model := entry.get_text(*self.id_fields)))
        if paging is None or (paging.more_flag is not None and not around.get_flag(paging.more_flag)):
            return ModelPage(models)
        return ModelPage(models, around.get_text(paging.next_field))

    def write_page(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: write the page that the query asks for."""
        if self.paging is None:
            return self._write(models)
        limit, after = query.get(self.paging.size, str(self.paging.usual_size)), query.get(self.paging.after)
        size = min(int(limit), _PAGE_SIZE) if limit.isdecimal() and len(limit) < 10 and int(limit) > 0 else _PAGE_SIZE
        names = [model.id for model in models]
        start = names.index(after) + 1 if after in names else 0
        page, more = models[start : start + size], start + size < len(models)
        last = page[-1].id if page else None
        if self.paging.more_flag is None:
            return self._write(page, {self.paging.next_field: last} if more else {})
        first = page[0].id if page else None
        return self._write(page, {"first_id": first, self.paging.more_flag: more, self.paging.next_field: last})

    def _write(self, page: Sequence[ModelInfo], after: Mapping[str, Any] | None = None) -> bytes:
        entries = [self.write_entry(model) for model in page]
        return msgspec.json.encode({**dict(self.around), self.names[0]: entries, **(after or {})})


# --- the list in each dialect: its address, its fields and its pages --------------------------------------------------


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
            "asides does not call it. Run `aws bedrock list-foundation-models`."
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
    """The capabilities of a model, by Ollama's names. Unknown ones are left out."""
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
        if efforts is not None:  # "none" means no thinking at all; it is not an effort
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
