"""Answers about models, in the caller's shape: lists, one model, and what else clients of a dialect ask of a server.

A list holds the names of the settings, and the models of the home provider; without a home, those of every provider
that has a key. `?search=` keeps those with these characters in their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from asides.dialects import find_dialect, model_lists
from asides.dialects.server_half import RequestFields
from asides.flows.list_models import list_models
from asides.flows.steps import Emit, Flow, UseCall
from asides.options import ListOptions
from asides.relay.client_names import show_name
from asides.relay.endpoints import OLLAMA_VERSION
from asides.relay.error_response import RelayRefusal
from asides.relay.known_models import describe_model, list_known_models, select_models
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.routes import find_route, list_own_names
from asides.values.errors import AsidesError, ConfigError, UnknownModel, UnknownProvider
from asides.values.model_info import ModelInfo, ThinkingInfo
from asides.values.notices import Notice

_JSON = {"content-type": "application/json"}
_DETAILS = {
    "parent_model": "",
    "format": "relay",
    "family": "relay",
    "families": ["relay"],
    "parameter_size": "",
    "quantization_level": "",
}


def answer_about_models(caller: Caller) -> Flow[RelayOutcome]:
    """Answer a request that asks for no reply and no count."""
    action, dialect = caller.endpoint.action, caller.dialect
    headers, body = _JSON, b""
    match action:
        case "models":
            models = yield from _collect_models(caller)
            body = find_dialect(dialect).write_models(models, caller.endpoint.query)
        case "model":
            model = yield from _find_model(caller, caller.endpoint.names["model"])
            formats = getattr(model_lists, dialect.upper(), None)
            if formats is None:
                raise RelayRefusal(
                    "this dialect cannot describe a single model. Request the list of models.", status=501
                )
            body = msgspec.json.encode(formats.write_entry(model))
        case "model_details":
            body = yield from _show_details(caller)
        case "loaded_models":
            body = msgspec.json.encode({"models": []})
        case "version":
            body = msgspec.json.encode({"version": OLLAMA_VERSION})
        case "root":
            headers, body = {"content-type": "text/plain; charset=utf-8"}, b"Ollama is running"
        case _:
            raise RelayRefusal(_explain_missing(action), status=501)
    yield Emit([*caller.start(200, headers), body])
    return RelayOutcome(200, "own", "answered by the relay", notices=tuple(caller.notices))


def _explain_missing(action: str) -> str:
    what = {
        "tokenize": "the tokens of other makers' models are not known",
        "manage_models": "models are not pulled, changed or embedded here",
    }
    return f"{what.get(action, 'this is not relayed')}. Ask that provider itself."


def _collect_models(caller: Caller) -> Flow[tuple[ModelInfo, ...]]:
    """The models of the home provider, then the names of the settings. Without a home, all known models by the names
    that clients of this dialect show. A provider that gives no list is left out.
    """
    config, builder, allowed = caller.config, caller.builder, caller.allowed
    listed: Sequence[ModelInfo] = ()
    if config.home:
        own = [describe_model(name, builder) for name in list_own_names(builder)]
        if config.lists_home:
            given = {name: value for name in ("api_key", "base_url") if (value := config.home_options.get(name))}
            listed = yield from _ask_provider(caller, config.home, given)
        named = {model.id: model for model in (*listed, *own)}.values()
        return tuple(each for each in named if allowed is None or allowed.can_ask(each.id, builder, home=config.home))
    search = caller.endpoint.query.get("search", "").lower()
    return tuple(
        msgspec.structs.replace(model, id=show_name(model.id, caller.dialect), name=model.name or model.id)
        for model in select_models(list_known_models(builder, config.listed), builder, config.shown_models)
        if search in model.id.lower() and (allowed is None or allowed.can_ask(model.id, builder))
    )


def _ask_provider(caller: Caller, provider: str, given: dict[str, Any]) -> Flow[tuple[ModelInfo, ...]]:
    """The list of a provider; empty, with a notice, if it gives none."""
    options: dict[str, Any] = {"retries": 0, **given}
    try:
        call = caller.builder.build_model_list(provider, ListOptions(**options))  # type: ignore[typeddict-item]
        yield UseCall(call)  # type: ignore[arg-type]
        return (yield from list_models(call))
    except AsidesError as problem:
        caller.notices.append(Notice("models_not_listed", f"{provider} gave no list: {problem}"))
        return ()


def _find_model(caller: Caller, name: str) -> Flow[ModelInfo]:
    """One model. A name that leads to a provider is one; of the home provider, the entry of its list."""
    name = name.removeprefix("models/")
    models = yield from _collect_models(caller)
    found = next((model for model in models if model.id == name), None)
    if found is not None:
        return found
    try:
        route = find_route(name, caller.builder, "", caller.dialect)
        may_ask = caller.allowed is None or caller.allowed.can_ask(name, caller.builder, caller.dialect)
        if route.is_bare or not may_ask:
            raise _refuse_model(name)
        caller.builder.find_target(route.targets[0])
    except (UnknownModel, UnknownProvider):
        raise _refuse_model(name) from None
    except RelayRefusal:
        raise
    except ConfigError:
        return ModelInfo(name)  # Its address is not set; the model exists.
    return describe_model(name, caller.builder, target=route.targets[0])


def _refuse_model(name: str) -> RelayRefusal:
    return RelayRefusal(
        f"The model '{name[:200]}' does not exist. Name one as provider:model.",
        status=404,
        code="model_not_found",
        param="model",
    )


def _show_details(caller: Caller) -> Flow[bytes]:
    fields = RequestFields.parse_body(caller.request.body)
    name = fields.take("model", str) or fields.take("name", str) or ""
    model = yield from _find_model(caller, name)
    # A client does not offer what is missing here: of a model that we do not know, it may try thinking and tools.
    tools = model.tools is not False
    shown = msgspec.structs.replace(model, thinking=model.thinking or ThinkingInfo(True), tools=tools)
    known = {} if model.context is None else {"relay.context_length": model.context}
    return msgspec.json.encode(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": _DETAILS,
            "model_info": {"general.architecture": "relay", **known},
            "capabilities": model_lists.list_capabilities(shown),
            "modified_at": datetime.fromtimestamp(model.created or 0, UTC).isoformat(),
        }
    )
