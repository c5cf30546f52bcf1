"""OpenAI's own clients, answered by any provider: `OpenAI` and `AsyncOpenAI`, from the package `openai`.

    from asides.openai import OpenAI
    OpenAI().chat.completions.create(model="anthropic:claude-opus-4-5", messages=[…])

The package's other names are found here as well, so one import changes. The clients for Azure and Bedrock are not: name
those providers in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from asides.integrations.client_arguments import ClientKeys, explain_import, fill_arguments

try:
    import openai as _openai
    from openai import (
        NOT_GIVEN,
        APIConnectionError,
        APIError,
        APIResponseValidationError,
        APIStatusError,
        APITimeoutError,
        AsyncStream,
        AuthenticationError,
        BadRequestError,
        BaseModel,
        ConflictError,
        ContentFilterFinishReasonError,
        InternalServerError,
        InvalidWebhookSignatureError,
        LengthFinishReasonError,
        NotFoundError,
        NotGiven,
        Omit,
        OpenAIError,
        PermissionDeniedError,
        RateLimitError,
        RequestOptions,
        Stream,
        Timeout,
        UnprocessableEntityError,
        file_from_path,
        not_given,
        omit,
        pydantic_function_tool,
        types,
    )
except ImportError as _problem:
    raise explain_import("openai", _problem) from None

from asides.integrations.httpx_transport import AsidesTransport, AsyncAsidesTransport
from asides.integrations.in_process_relay import RelayOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from asides.integrations.client_arguments import AsyncHttpClient, HttpClient, Url

__all__ = [
    "NOT_GIVEN",
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AsidesTransport",
    "AsyncAsidesTransport",
    "AsyncClient",
    "AsyncOpenAI",
    "AsyncStream",
    "AuthenticationError",
    "BadRequestError",
    "BaseModel",
    "Client",
    "ConflictError",
    "ContentFilterFinishReasonError",
    "InternalServerError",
    "InvalidWebhookSignatureError",
    "LengthFinishReasonError",
    "NotFoundError",
    "NotGiven",
    "Omit",
    "OpenAI",
    "OpenAIError",
    "PermissionDeniedError",
    "RateLimitError",
    "RelayOptions",
    "RequestOptions",
    "Stream",
    "Timeout",
    "UnprocessableEntityError",
    "file_from_path",
    "not_given",
    "omit",
    "pydantic_function_tool",
    "types",
]


class _Arguments(TypedDict, total=False):
    """What both official classes take, and `asides`."""

    asides: RelayOptions | Mapping[str, Any] | None
    admin_api_key: str | None
    workload_identity: Any
    organization: str | None
    project: str | None
    webhook_secret: str | None
    provider: Any
    base_url: str | Url | None
    data_residency: Any
    websocket_base_url: str | Url | None
    timeout: float | _openai.Timeout | _openai.NotGiven | None
    max_retries: int
    default_headers: Mapping[str, str] | None
    default_query: Mapping[str, object] | None


class OpenAIArguments(_Arguments, total=False):
    """The arguments of `OpenAI`: those of the official class, and `asides`."""

    api_key: str | Callable[[], str] | None
    http_client: HttpClient | None


class AsyncOpenAIArguments(_Arguments, total=False):
    """The arguments of `AsyncOpenAI`: those of the official class, and `asides`."""

    api_key: str | Callable[[], Awaitable[str]] | None
    http_client: AsyncHttpClient | None


class OpenAI(_openai.OpenAI):
    """The official client. A model may be named `provider:model`; without a provider it is asked as ever.

    `asides` holds options for every request: those of `asides.ask`, and `providers`, `settings`, `tenant` and `vault`.
    `extra_body={"asides": {…}}` holds those of one request. `api_key` may be left out, and goes to no other provider.
    """

    def __init__(self, **arguments: Unpack[OpenAIArguments]) -> None:
        super().__init__(**fill_arguments(arguments, _build_client, _KEYS))


class AsyncOpenAI(_openai.AsyncOpenAI):
    """The official client, awaiting, under asyncio. Its arguments are those of `OpenAI` here."""

    def __init__(self, **arguments: Unpack[AsyncOpenAIArguments]) -> None:
        super().__init__(**fill_arguments(arguments, _build_async_client, _KEYS))


Client = OpenAI
AsyncClient = AsyncOpenAI


def _build_client(options: RelayOptions | None) -> HttpClient:
    return _openai.DefaultHttpxClient(transport=AsidesTransport(options))


def _build_async_client(options: RelayOptions | None) -> AsyncHttpClient:
    return _openai.DefaultAsyncHttpxClient(transport=AsyncAsidesTransport(options))


# What the official class takes its credential from.
_KEYS = ClientKeys(arguments=("api_key", "workload_identity", "provider"), variables=("OPENAI_API_KEY",))
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("AzureOpenAI", "AsyncAzureOpenAI", "BedrockOpenAI", "AsyncBedrockOpenAI"):
            raise AttributeError(
                f"{name} is not in asides.openai. Use OpenAI and name the provider in the model, as in azure:…"
            )
        return getattr(_openai, name)
