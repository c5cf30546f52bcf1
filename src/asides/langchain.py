"""`ChatAsides`: every provider of asides as a chat model of LangChain, with thinking as standard `reasoning` blocks.

It needs `langchain-core` and no other package of LangChain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any, Self, cast

try:
    from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "asides.langchain needs langchain-core, which is not installed. Run pip install 'asides[langchain]', or pip "
        "install langchain-core.",
        name=missing.name,
    ) from None

import msgspec
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field, PrivateAttr, SecretStr, model_validator

from asides import __version__
from asides.aio import AsyncClient
from asides.client import Client, get_shared_client
from asides.history.trim import CHARACTERS_PER_TOKEN
from asides.intake.objects.langchain_state import NAME
from asides.integrations.langchain_messages import read_history
from asides.integrations.langchain_replies import ChunkWriter, build_result
from asides.integrations.langchain_tools import (
    OutputMethod,
    OutputRequest,
    ToolInput,
    choose_tool,
    format_output,
    format_tools,
    parse_with,
)
from asides.options import OPTIONS, Options, ReplyLimits, Timeout, merge_options, read_options, suggest_option
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError, UnknownProvider
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.recover_policy import RecoverPolicy
from asides.values.thinking import Thinking

__all__ = ["ChatAsides"]

_ALIASES = {
    "max_retries": "retries",
    "model_kwargs": "extra",
    "model_name": "model",
    "request_timeout": "timeout",
    "response_format": "output",
    "stop_sequences": "stop",
}
"""LangChain's names for options of ours."""
_OPTION_OF_FIELD = {"prompt_cache": "cache", "request_metadata": "metadata"}
"""LangChain has another use for the names of these options."""
_NOT_SHOWN = frozenset({"api_key", "system", *_OPTION_OF_FIELD.values()})
_FOR_ONE_CALL = frozenset({"files", "output", "stream", "tool_choice", "tools"})


class _OwnClients:
    """The clients that a model made for itself. A copy of the model makes its own."""

    def __init__(self) -> None:
        self.sync: Client | None = None
        self.async_: AsyncClient | None = None

    def __reduce__(self) -> tuple[type[_OwnClients], tuple[()]]:
        return _OwnClients, ()


class ChatAsides(BaseChatModel):
    """A chat model that asks any provider: `ChatAsides("anthropic:claude-opus-5-5", thinking="high")`.

    `content` is the answer, never thinking; `content_blocks` has both, in order. The next turn sends back what the
    provider wants of the thinking, with no more code. Every option of `asides.ask` is an option here and of `invoke`
    and its kin. Only `cache` and `metadata`, which mean other things to LangChain, are `prompt_cache` and
    `request_metadata`. Errors are those of asides.
    """

    model: str | list[str] | None = None
    """The model as provider:model; several in order of fallback; None: that of the settings."""
    thinking: Any = None
    """The amount of thinking: "off", "low" … "max", a number of tokens, or a mapping."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: list[str] | None = None
    seed: int | None = None
    system: str | list[dict[str, Any]] | None = Field(default=None, repr=False)
    api_key: Any = Field(default=None, repr=False)
    """The key, or a function that returns it. It is never shown, and never serialised."""
    base_url: str | None = None
    timeout: Any = None
    retries: int | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache: bool | str | None = None
    request_metadata: dict[str, str] | None = None
    extra: dict[str, Any] | None = Field(default=None, repr=False)
    """Fields of the provider for the body of the request."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """All other options."""
    streaming: bool = False
    """Whether `invoke` streams too."""
    providers: Sequence[Provider] = Field(default=(), repr=False, exclude=True)
    """Your own rows."""
    settings: Settings | None = Field(default=None, repr=False, exclude=True)
    client: Client | None = Field(default=None, repr=False, exclude=True)
    """The client to ask with. Without an `async_client`, async calls use it too, in a thread."""
    async_client: AsyncClient | None = Field(default=None, repr=False, exclude=True)

    _clients: _OwnClients = PrivateAttr(default_factory=_OwnClients)

    def __init__(self, model: str | Sequence[str] | None = None, **options: Any) -> None:
        """Every option of `asides.ask`, and those of LangChain's chat models."""
        given: dict[str, Any] = options if model is None else {"model": model, **options}
        super().__init__(**given)

    @model_validator(mode="before")
    @classmethod
    def _read_fields(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields: dict[str, Any] = {}
        more: dict[str, Any] = dict(given.get("options") or {})
        for name, value in given.items():
            known = _ALIASES.get(name, name)
            if known in cls.model_fields:
                if known != name and fields.get(known, given.get(known)) not in (None, value):
                    raise ConfigError(f"{known} and {name} are the same option. Give one of them.")
                fields[known] = _simplify(value)
            elif known in OPTIONS and known not in _FOR_ONE_CALL:
                more[known] = _simplify(value)
            else:
                raise _build_unknown(name, cls.model_fields.keys())
        fields["options"] = more
        if isinstance(key := fields.get("api_key"), str):
            fields["api_key"] = SecretStr(key)
        if isinstance(stop := fields.get("stop"), str):
            fields["stop"] = [stop]
        return fields

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        read_options(Options(), self._collect_options({}))
        if self.settings is not None and self.client is not None:
            raise ConfigError("client and settings are both given. Give the settings to the client.")
        self._add_version(NAME, __version__)
        return self

    # --- the call -----------------------------------------------------------------------------------------------------

    def _collect_options(self, given: Mapping[str, Any], stop: Sequence[str] | None = None) -> Options:
        """The options of a call: those of the model, and above them those that were given for it."""
        below: dict[str, Any] = dict(self.options)
        for name in type(self).model_fields:
            option = _OPTION_OF_FIELD.get(name, name)
            if option in OPTIONS and name not in _OPTION_OF_FIELD.values():
                below[option] = getattr(self, name)
        above: dict[str, Any] = {} if stop is None else {"stop": stop}
        for name, value in given.items():
            option = _OPTION_OF_FIELD.get(name) or _ALIASES.get(name, name)
            above[option] = format_output(value) if option == "output" else value
        merged: dict[str, Any] = {**merge_options(cast("Options", below), cast("Options", above))}
        merged.pop("model", None)
        if not merged.get("stop"):
            merged.pop("stop", None)
        if isinstance(key := merged.get("api_key"), SecretStr):
            merged["api_key"] = key.get_secret_value()
        if merged.get("tools"):
            merged["tools"] = format_tools(merged["tools"])
            merged["tool_choice"] = choose_tool(merged.get("tool_choice"), merged["tools"])
        return cast("Options", {name: value for name, value in merged.items() if value is not None})

    def _find_model(self, given: Mapping[str, Any]) -> str | Sequence[str] | None:
        """The model of a call. A bare name that is not an alias means another model of the same provider."""
        model: str | Sequence[str] | None = given.get("model") or given.get("model_name")
        own = _find_first(self.model)
        if isinstance(model, str) and own is not None and ":" in own and not self._names_provider(model):
            return f"{own.partition(':')[0]}:{model}"
        return model or self.model

    def _read_call(
        self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]
    ) -> tuple[str | Sequence[str] | None, tuple[Message, ...], Options, tuple[Notice, ...]]:
        model = self._find_model(given)
        history, notices = read_history(messages, (_find_first(model) or "").partition(":")[0])
        if not any(message.parts for message in history if message.role != "system"):
            raise ConfigError("no message has content. Pass a HumanMessage with text.")
        return model, history, self._collect_options(given, stop), notices

    def _names_provider(self, model: str) -> bool:
        """Whether a model's name has its provider before it, or is an alias. A client may have rows of its own."""
        left, mark, _ = model.partition(":" if ":" in model else "/")
        if mark == ":" and (self.client is not None or self.async_client is not None):
            return True
        settings = load_settings() if self.settings is None else self.settings
        if not mark:
            return model in settings.aliases
        try:
            return bool(find_provider(left, (*self.providers, *settings.providers)))
        except UnknownProvider:
            return False

    @property
    def _sync_client(self) -> Client:
        if self.client is not None:
            return self.client
        if self.async_client is not None:
            raise ConfigError("the model has an async_client only. Pass client= too, or use ainvoke or astream.")
        if not self.providers and self.settings is None:
            return get_shared_client()
        if self._clients.sync is None:
            self._clients.sync = Client(providers=self.providers, settings=self.settings)
        return self._clients.sync

    @property
    def _own_async_client(self) -> AsyncClient:
        if self.async_client is not None:
            return self.async_client
        if self._clients.async_ is None:
            self._clients.async_ = AsyncClient(providers=self.providers, settings=self.settings)
        return self._clients.async_

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,
    ) -> ChatResult:
        model, history, options, notices = self._read_call(messages, stop, kwargs)
        return build_result(self._sync_client.ask(model, history, **options), notices)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.client is not None and self.async_client is None:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        model, history, options, notices = self._read_call(messages, stop, kwargs)
        return build_result(await self._own_async_client.ask(model, history, **options), notices)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        model, history, options, notices = self._read_call(messages, stop, kwargs)
        writer = ChunkWriter()
        with self._sync_client.stream(model, history, **options) as events:
            for event in events:
                if (chunk := writer.write(event)) is not None:
                    if run_manager is not None:
                        run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
                    yield chunk
            yield from writer.finish(events.reply, notices)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self.client is not None and self.async_client is None:
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
            return
        model, history, options, notices = self._read_call(messages, stop, kwargs)
        writer = ChunkWriter()
        async with self._own_async_client.stream(model, history, **options) as events:
            async for event in events:
                if (piece := writer.write(event)) is not None:
                    if run_manager is not None:
                        await run_manager.on_llm_new_token(str(piece.message.content), chunk=piece)
                    yield piece
            for last in writer.finish(events.reply, notices):
                yield last

    # --- tools and typed answers --------------------------------------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[ToolInput],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools: functions, classes of pydantic, tools of LangChain and of asides, and dicts.

        `tool_choice` is "auto", "none", "any" (or "required", or True), the name of a tool, or a provider's object.
        """
        formatted = format_tools(tools, strict)
        if (chosen := choose_tool(tool_choice, formatted)) is not None:
            kwargs["tool_choice"] = chosen
        return cast("Runnable[LanguageModelInput, AIMessage]", self.bind(tools=formatted, **kwargs))

    def with_structured_output(
        self,
        schema: Any,
        *,
        include_raw: bool = False,
        method: OutputMethod = "json_schema",
        strict: bool | None = None,
        tools: Sequence[ToolInput] = (),
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """The model with answers that fit a schema: a class of pydantic, a TypedDict or a JSON schema.

        "json_schema" asks the provider for the schema, and puts it into the instructions of a model that takes none.
        "function_calling" makes the model call a tool; one that cannot be made to while it thinks is asked to.
        "json_mode" asks for JSON, whose form your prompt says.
        """
        request = OutputRequest(schema, method, strict, tools)
        if method == "function_calling" and "on_conflict" not in self.options:
            kwargs.setdefault("on_conflict", "adjust")
        return parse_with(self.bind(**request.options, **kwargs), request.parser, include_raw=include_raw)

    def get_num_tokens(self, text: str) -> int:
        """An estimate of the tokens of a text: four characters count as one."""
        if self.custom_get_token_ids is not None:
            return len(self.custom_get_token_ids(text))
        return -(-len(text) // CHARACTERS_PER_TOKEN)

    # --- what LangChain writes about the model ------------------------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in type(self).model_fields if name in _SHOWN_FIELDS}
        return {name: value for name, value in {**named, **self.options}.items() if value is not None}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        if (first := _find_first(self._find_model(kwargs))) is not None:
            provider, _, name = first.partition(":")
            params["ls_provider"], params["ls_model_name"] = (provider, name) if name else (NAME, first)
        return params

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether LangChain can write it as JSON: yes. Clients and rows of yours are left out."""
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The environment variable from which LangChain reads the key again."""
        try:
            names = find_provider((_find_first(self.model) or "").partition(":")[0], self.providers).key_env
        except UnknownProvider:
            names = ()
        return {"api_key": names[0] if names else "ASIDES_API_KEY"}


_SHOWN_FIELDS = frozenset(ChatAsides.model_fields) & (OPTIONS | {"model", *_OPTION_OF_FIELD}) - _NOT_SHOWN


def _find_first(model: str | Sequence[str] | None) -> str | None:
    return model if isinstance(model, str) else model[0] if model else None


def _simplify(value: Any) -> Any:
    """A value of ours as a mapping, which LangChain can write as JSON; others unchanged."""
    return msgspec.to_builtins(value) if isinstance(value, (Thinking, Timeout, ReplyLimits, RecoverPolicy)) else value


def _build_unknown(name: str, fields: Collection[str]) -> TypeError:
    if name in _FOR_ONE_CALL:
        way = {"tools": "bind_tools", "tool_choice": "bind_tools", "output": "with_structured_output"}
        return TypeError(f"{name} is an option of one call. Use {way.get(name, 'bind')}(…), or invoke(…, {name}=…).")
    known = sorted({*fields, *OPTIONS} - _FOR_ONE_CALL)
    return TypeError(f"ChatAsides has no option {name!r}; {suggest_option(name, known)}")
