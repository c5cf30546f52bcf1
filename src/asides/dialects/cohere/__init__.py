"""Cohere's chat in its second version, `/v2/chat`: both halves of the dialect, as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asides.dialects.cohere.decode import ChatDecoder
from asides.dialects.cohere.encode import encode
from asides.dialects.cohere.stop_and_errors import decode_error
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.messages import Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asides.dialects.cohere.server.write_reply import ChatWriter


class CohereChat:
    """The dialect of `POST /v2/chat`. The server half loads when it is first used."""

    name = "cohere"

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Spell a planned prompt for its target."""
        return encode(prompt, target)

    def decoder(self, target: Target) -> ChatDecoder:
        """A fresh decoder for one response."""
        return ChatDecoder(target)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """The error that this response is. Header names are in lower case."""
        return decode_error(status, headers, body, target)

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Ask which models there are."""
        from asides.dialects.cohere.model_list import models_request

        return models_request(target, after)

    def read_models(self, body: bytes) -> ModelPage:
        """A page of the list."""
        from asides.dialects.cohere.model_list import read_models

        return read_models(body)

    def read(self, body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG002 - all of it is in the body
        """Server half: a client's request as a prompt. Raises ConfigError with words for the client."""
        from asides.dialects.cohere.server.read_request import read

        return read(body)

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ChatWriter:
        """Server half: a fresh writer for one response."""
        from asides.dialects.cohere.server.write_reply import ChatWriter

        return ChatWriter(model=model, stream=stream, include_usage=include_usage)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: an error body."""
        from asides.dialects.cohere.server.write_reply import write_error

        return write_error(status, message, kind)

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: the page of the list that the query asks for."""
        from asides.dialects.cohere.model_list import write_models

        return write_models(models, query)


dialect = CohereChat()
