"""Messages, the language of Claude and of the hosts that took it up: both halves of the dialect, as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asides.dialects.anthropic.decode import MessagesDecoder
from asides.dialects.anthropic.encode import encode
from asides.dialects.anthropic.stop_and_errors import decode_error
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.messages import Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asides.dialects.anthropic.server.write_reply import MessagesWriter


class AnthropicMessages:
    """The dialect of `POST /v1/messages`. The server half loads when it is first used."""

    name = "anthropic"

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Spell a planned prompt for its target."""
        return encode(prompt, target)

    def decoder(self, target: Target) -> MessagesDecoder:
        """A fresh decoder for one response."""
        return MessagesDecoder(target)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """The error that this response is. Header names are in lower case."""
        return decode_error(status, headers, body, target)

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Ask which models there are."""
        from asides.dialects.anthropic.model_list import models_request

        return models_request(target, after)

    def read_models(self, body: bytes) -> ModelPage:
        """A page of the list."""
        from asides.dialects.anthropic.model_list import read_models

        return read_models(body)

    def read(self, body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG002 - all of it is in the body
        """Server half: a client's request as a prompt. Raises ConfigError with words for the client."""
        from asides.dialects.anthropic.server.read_request import read

        return read(body)

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> MessagesWriter:
        """Server half: a fresh writer for one response."""
        from asides.dialects.anthropic.server.write_reply import MessagesWriter

        return MessagesWriter(model=model, stream=stream, include_usage=include_usage)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: an error body."""
        from asides.dialects.anthropic.server.write_reply import write_error

        return write_error(status, message, kind)

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: the page of the list that the query asks for."""
        from asides.dialects.anthropic.model_list import write_models

        return write_models(models, query)


dialect = AnthropicMessages()
