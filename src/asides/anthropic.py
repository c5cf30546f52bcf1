"""Anthropic's own clients, answered by any provider: `Anthropic` and `AsyncAnthropic`, from the package `anthropic`.

    from asides.anthropic import Anthropic
    Anthropic().messages.create(model="openai:gpt-5", max_tokens=4096, messages=[…])

The package's other names are found here as well, so one import changes. The clients for clouds are not: name those
providers in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from asides.integrations.client_arguments import ClientKeys, explain_import, fill_arguments

try:
    import anthropic as _anthropic
    from anthropic import (
        NOT_GIVEN,
        AnthropicError,
        APIConnectionError,
        APIError,
        APIResponseValidationError,
        APIStatusError,
        APITimeoutError,
        APIWebhookValidationError,
        AsyncStream,
        AuthenticationError,
        BadRequestError,
        BaseModel,
        BetaRefusalFallbackMiddleware,
        ConflictError,
        CredentialsError,
        InternalServerError,
        MiddlewareInput,
        NotFoundError,
        NotGiven,
        Omit,
        OverloadedError,
        PermissionDeniedError,
        RateLimitError,
        RequestOptions,
        RequestTooLargeError,
        ServiceUnavailableError,
        Stream,
        Timeout,
        UnprocessableEntityError,
        beta_async_tool,
        beta_tool,
        file_from_path,
        not_given,
        omit,
        transform_schema,
        types,
    )
except ImportError as _problem:
    raise explain_import("anthropic", _problem) from None

from asides.integrations.httpx_transport import AsidesTransport, AsyncAsidesTransport
from asides.integrations.in_process_relay import RelayOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asides.integrations.client_arguments import AsyncHttpClient, HttpClient, Url

__all__ = [
    "NOT_GIVEN",
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "APIWebhookValidationError",
    "Anthropic",
    "AnthropicError",
    "AsidesTransport",
    "AsyncAnthropic",
    "AsyncAsidesTransport",
    "AsyncClient",
    "AsyncStream",
    "AuthenticationError",
    "BadRequestError",
    "BaseModel",
    "BetaRefusalFallbackMiddleware",
    "Client",
    "ConflictError",
    "CredentialsError",
    "InternalServerError",
    "MiddlewareInput",
    "NotFoundError",
    "NotGiven",
    "Omit",
    "OverloadedError",
    "PermissionDeniedError",
    "RateLimitError",
    "RelayOptions",
    "RequestOptions",
    "RequestTooLargeError",
    "ServiceUnavailableError",
    "Stream",
    "Timeout",
    "UnprocessableEntityError",
    "beta_async_tool",
    "beta_tool",
    "file_from_path",
    "not_given",
    "omit",
    "transform_schema",
    "types",
]


class _Arguments(TypedDict, total=False):
    """What both official classes take, and `asides`."""

    asides: RelayOptions | Mapping[str, Any] | None
    api_key: str | None
    auth_token: str | None
    credentials: Any
    config: Mapping[str, Any] | None
    profile: str | None
    webhook_key: str | None
    base_url: str | Url | None
    timeout: float | _anthropic.Timeout | _anthropic.NotGiven | None
    max_retries: int
    default_headers: Mapping[str, str] | None
    default_query: Mapping[str, object] | None
    open_telemetry: _anthropic.OpenTelemetryClientOption
    middleware: Sequence[_anthropic.MiddlewareInput] | None


class AnthropicArguments(_Arguments, total=False):
    """The arguments of `Anthropic`: those of the official class, and `asides`."""

    http_client: HttpClient | None


class AsyncAnthropicArguments(_Arguments, total=False):
    """The arguments of `AsyncAnthropic`: those of the official class, and `asides`."""

    http_client: AsyncHttpClient | None


class Anthropic(_anthropic.Anthropic):
    """The official client. A model may be named `provider:model`; without a provider it is asked as ever.

    `asides` holds options for every request: those of `asides.ask`, and `providers`, `settings`, `tenant` and `vault`.
    `extra_body={"asides": {…}}` holds those of one request. `api_key` may be left out, and goes to no other provider.
    """

    def __init__(self, **arguments: Unpack[AnthropicArguments]) -> None:
        super().__init__(**fill_arguments(arguments, _build_client, _KEYS))


class AsyncAnthropic(_anthropic.AsyncAnthropic):
    """The official client, awaiting, under asyncio. Its arguments are those of `Anthropic` here."""

    def __init__(self, **arguments: Unpack[AsyncAnthropicArguments]) -> None:
        super().__init__(**fill_arguments(arguments, _build_async_client, _KEYS))


Client = Anthropic
AsyncClient = AsyncAnthropic


def _build_client(options: RelayOptions | None) -> HttpClient:
    return _anthropic.DefaultHttpxClient(transport=AsidesTransport(options))


def _build_async_client(options: RelayOptions | None) -> AsyncHttpClient:
    return _anthropic.DefaultAsyncHttpxClient(transport=AsyncAsidesTransport(options))


# What the official class takes its credential from.
_KEYS = ClientKeys(
    arguments=("api_key", "auth_token", "credentials", "config", "profile"),
    variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.removeprefix("Async").startswith("Anthropic"):
            raise AttributeError(
                f"{name} is not in asides.anthropic. Use Anthropic and name the provider in the model, such as "
                "bedrock-anthropic:…"
            )
        return getattr(_anthropic, name)
