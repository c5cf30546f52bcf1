"""Models that providers list for the configured keys: `ListedModels`.

Reading sends nothing. The caller asks for the lists that are due (`list_due`), and keeps what came (`keep`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from asides.flows.build_call import CallBuilder
from asides.options import ListOptions
from asides.providers.find import find_staged
from asides.providers.provider import Provider
from asides.values.errors import AsidesError
from asides.values.model_info import NO_CHAT, ModelInfo

if TYPE_CHECKING:
    from asides.flows.list_models import ModelListCall

FRESH_SECONDS = 900.0
"""The age up to which a list is not asked for again."""
RETRY_SECONDS = 60.0
"""The pause after a request that failed."""
_PATIENCE = 10.0
_MAX_MODELS = 2000
_MAX_ID = 200
_MAX_LISTS = 200
ListKey: TypeAlias = tuple[str, str, str]
"""The row, the address and the account that a list belongs to."""

# The types by which hosts name models that answer no question.
_OTHER_TYPES = frozenset(
    {"audio", "embedding", "embeddings", "image", "moderation", "rerank", "transcribe", "transcription", "tts", "video"}
)


class _KeptList(msgspec.Struct):
    models: tuple[ModelInfo, ...] | None
    """None: the provider never gave a list."""
    due: float
    """When it is asked for again."""


class ListedModels:
    """The lists of providers, each under its row, address and account. Safe to read from any thread."""

    def __init__(self) -> None:
        self._lists: dict[ListKey, _KeptList] = {}

    def find(self, row: Provider, builder: CallBuilder) -> tuple[ModelInfo, ...] | None:
        """The models of a row under its current key, by the names that its provider gives them. None: not known."""
        call = _build(row, builder)
        kept = None if call is None else self._lists.get(get_list_key(call))
        return None if kept is None else kept.models

    def list_due(self, rows: tuple[Provider, ...], builder: CallBuilder, now: float) -> Iterator[ModelListCall]:
        """The calls whose lists are missing or old. `now`: seconds of a monotonic clock."""
        for row in rows:
            call = _build(row, builder)
            if call is None:
                continue
            kept = self._lists.get(get_list_key(call))
            if kept is None or kept.due <= now:
                yield call

    def is_known(self, call: ModelListCall) -> bool:
        """Whether the provider was asked before, with or without success."""
        return get_list_key(call) in self._lists

    def keep(self, call: ModelListCall, models: tuple[ModelInfo, ...] | None, now: float) -> None:
        """Keep a list. None: the request failed, and an earlier list stays."""
        key = get_list_key(call)
        if models is None:
            old = self._lists.get(key)
            self._lists[key] = _KeptList(None if old is None else old.models, now + RETRY_SECONDS)
        else:
            usable = (msgspec.structs.replace(model, raw={}) for model in models if _can_show(model))
            self._lists[key] = _KeptList(tuple(usable)[:_MAX_MODELS], now + FRESH_SECONDS)
        while len(self._lists) > _MAX_LISTS:
            self._lists.pop(next(iter(self._lists)))


def get_list_key(call: ModelListCall) -> ListKey:
    """What a list belongs to. No key of a provider follows from it."""
    return call.target.provider.name, call.target.base_url, "" if call.key is None else call.key.account


def _build(row: Provider, builder: CallBuilder) -> ModelListCall | None:
    """The call that asks a row for its list; None if it cannot be asked, or if the stage plays it."""
    try:
        if find_staged(row) is not None:
            return None
        return builder.build_model_list(row.name, ListOptions(retries=0, timeout=_PATIENCE))
    except AsidesError:
        return None


def _can_show(model: ModelInfo) -> bool:
    """Whether a model answers questions, as far as its provider or its name says, and its name can be in a list."""
    name = model.id
    if not (0 < len(name) <= _MAX_ID and name.isprintable() and not any(mark.isspace() for mark in name)):
        return False
    said = _read_ability(model.raw)
    return NO_CHAT.search(name) is None if said is None else said


def _read_ability(entry: dict[str, Any]) -> bool | None:
    """Whether the entry of a list says that the model answers questions. None: it does not say."""
    match entry:
        case {"supportedGenerationMethods": list(methods)}:
            # Image and speech models have this method too; their names show it.
            return None if "generateContent" in methods else False
        case {"architecture": {"output_modalities": list(outputs)}}:
            return "text" in outputs
        case {"capabilities": {"completion_chat": bool(chats)}}:
            return chats
        case {"type": str(kind)} if kind.lower() in _OTHER_TYPES:
            return False
        case {"type": "chat" | "language"}:
            return True
        case _:
            return None
